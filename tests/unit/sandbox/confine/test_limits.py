"""How limits are found and told."""

import signal
from pathlib import Path

import pytest

from loopctl.domain import ExecResult
from loopctl.sandbox.confine.limits import Limits, limits
from loopctl.sandbox.confine.reach import Reach
from loopctl.settings import SandboxSettings

SMALL = Limits(processes=60, memory_bytes=64 << 20, file_bytes=5 << 20)


@pytest.mark.parametrize(
    ("code", "said", "says"),
    [
        (128 + signal.SIGXFSZ, b"", "file_mb"),
        (-signal.SIGXFSZ, b"", "file_mb"),
        (1, b"OSError: [Errno 27] File too large", "file_mb"),
        (1, b"npm ERR! EFBIG: file too large, write", "file_mb"),
        (2, b"sh: 1: Cannot fork", "processes"),
        (254, b"bash: fork: retry: Resource temporarily unavailable", "processes"),
        (1, b"RuntimeError: can't start new thread", "processes"),
        (1, b"Error: spawn node EAGAIN", "processes"),
        (1, b"AssertionError", ""),
        (1, b"BlockingIOError: [Errno 35] not that", ""),
    ],
)
def test_a_limit_that_was_met_is_told_with_its_setting(code: int, said: bytes, says: str) -> None:
    told = SMALL.explain(ExecResult(code, said))
    assert (says in told, bool(told)) == (True, bool(says))


def test_limits_are_those_of_the_settings() -> None:
    found = limits(SandboxSettings(memory_mb=100, processes=7, file_mb=3))
    assert found == Limits(processes=7, memory_bytes=100 << 20, file_bytes=3 << 20)


def test_the_usual_limit_of_memory_leaves_the_machine_some() -> None:
    text = Path("/proc/meminfo").read_text()
    total = int(text.partition("MemTotal:")[2].split()[0]) << 10
    assert 0 < limits(SandboxSettings()).memory_bytes < total


def test_the_kernel_is_given_values_that_it_takes() -> None:
    values = {name: value for name, _, value in SMALL.of_process()}
    assert values["core"] == 0
    assert values["fsize"] <= 5 << 20
    assert values["nproc"] <= 120


def test_a_program_that_can_be_reached_is_not_said_to_be_missing(tmp_path: Path) -> None:
    reach = Reach(tmp_path, tmp_path / "git", tmp_path / "shim", {"PATH": "/usr/bin:/bin"})
    assert reach.lacks(b"sh: 1: git: not found") == ""
    hidden = tmp_path.parent / f"{tmp_path.name}-apart"
    hidden.mkdir()
    (hidden / "tool").write_text("")
    (hidden / "tool").chmod(0o700)
    for said in (f"sh: 1: {hidden}/tool: not found", f"sh: 1: {hidden}/tool: Permission denied"):
        assert f'read = ["{hidden.resolve()}"]' in reach.lacks(said.encode())
    assert reach.lacks(b"./tool: Permission denied") == ""
