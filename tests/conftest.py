import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# In CI every run tries the same examples: what is green there is green on the next machine too.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session", autouse=True)
def heard_interrupts() -> None:
    """Have processes hear SIGINT that tests start, also where a shell's ``&`` has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
