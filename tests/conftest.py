import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def heard_interrupts() -> None:
    """Have processes hear SIGINT that tests start, also where a shell's ``&`` has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
