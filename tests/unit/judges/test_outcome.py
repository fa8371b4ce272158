import signal

import pytest

from loopctl.domain import ExecResult
from loopctl.judges.outcome import End, classify

COMMAND = "python -m pytest"


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (ExecResult(0), End.GREEN),
        (ExecResult(0, b"No space left on device"), End.GREEN),
        (ExecResult(1), End.RED),
        (ExecResult(2, b"connection refused"), End.RED),
        (ExecResult(126), End.MISSING),
        (ExecResult(127), End.MISSING),
        (ExecResult(1, b"/usr/bin/python: No module named pytest\n"), End.MISSING),
        (ExecResult(1, b"ModuleNotFoundError: No module named 'mine'\n"), End.RED),
        (ExecResult(0, timed_out=True), End.STOPPED),
        (ExecResult(-9, timed_out=True), End.STOPPED),
        (ExecResult(-signal.SIGKILL), End.STOPPED),
        (ExecResult(-signal.SIGTERM), End.STOPPED),
        (ExecResult(-40), End.STOPPED),
        (ExecResult(128 + signal.SIGKILL), End.STOPPED),
        (ExecResult(128 + signal.SIGTERM), End.STOPPED),
        (ExecResult(-signal.SIGSEGV), End.RED),
        (ExecResult(128 + signal.SIGSEGV), End.RED),
        (ExecResult(128 + signal.SIGABRT), End.RED),
        (ExecResult(200), End.RED),
        (ExecResult(1, b"OSError: [Errno 28] No space left on device"), End.STARVED),
        (ExecResult(1, b"Disk quota exceeded"), End.STARVED),
        (ExecResult(1, b"", b"curl: (6) Could not resolve host: example.org"), End.STARVED),
        (ExecResult(1, b"npm ERR! getaddrinfo ENOTFOUND registry"), End.STARVED),
    ],
)
def test_end_is_told_by_exit_code_and_output(ended: ExecResult, expected: End) -> None:
    end, why = classify(COMMAND, ended, 60)
    assert end is expected
    assert bool(why) is (end in {End.MISSING, End.STOPPED, End.STARVED})
