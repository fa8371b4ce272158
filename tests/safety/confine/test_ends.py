"""Nothing of a confined command goes on after it; one that is to end is asked first."""

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loopctl.errors import CancelledError
from loopctl.sandbox.worktree import Worktree

from .conftest import LIMIT_S, Ground

STAYING = {
    "a job in the background": "sleep 86390.{mark} &",
    "a session of its own": "setsid sleep 86390.{mark} &",
    "nobody's child": "(setsid sh -c 'setsid sleep 86390.{mark} &' &) ;",
    "without its variables": "setsid env -i sleep 86390.{mark} &",
    "deaf to signals": "(trap '' TERM HUP INT; exec setsid sleep 86390.{mark}) &",
}


def alive(mark: str) -> list[int]:
    """Return the processes that sleep under a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", f"86390.{mark}".encode()]:
            found.append(int(path.parent.name))
    return found


def mark_of(by: str, name: str, more: int) -> str:
    return f"{os.getpid()}{more}{len(by)}{list(STAYING).index(name)}"


def cancelled(box: Worktree, cancel: threading.Event, command: str) -> None:
    """Run a command and cancel it as soon as it has written to ``up``."""
    for name in ("up", "never"):
        os.mkfifo(box.workdir / name)

    def wait() -> None:
        (box.workdir / "up").read_text()
        cancel.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    with pytest.raises(CancelledError):
        box.run(command, timeout_s=LIMIT_S)
    waiting.join(LIMIT_S)


@pytest.mark.parametrize("name", STAYING)
def test_nothing_outlives_its_command(ground: Ground, by: str, name: str) -> None:
    mark = mark_of(by, name, 1)
    box = ground.open(f"O-{mark}", by=by)
    ended = box.run(
        STAYING[name].format(mark=mark) + " echo begun > begun; exit 7", timeout_s=LIMIT_S
    )
    assert (ended.returncode, (box.workdir / "begun").read_text()) == (7, "begun\n")
    assert alive(mark) == []


@pytest.mark.parametrize("name", STAYING)
def test_nothing_outlives_a_command_that_is_cancelled(ground: Ground, by: str, name: str) -> None:
    mark = mark_of(by, name, 2)
    cancel = threading.Event()
    box = ground.open(f"C-{mark}", by=by, cancel=cancel)
    cancelled(box, cancel, STAYING[name].format(mark=mark) + " echo up > up; exec sleep 600")
    assert alive(mark) == []


def test_a_command_that_is_cancelled_is_asked_to_end_and_has_time_for_it(
    ground: Ground, by: str
) -> None:
    cancel = threading.Event()
    box = ground.open(f"A-{by}", by=by, cancel=cancel)
    # What it does when it is asked takes processes of its own.
    trap = "trap 'sh -c \"echo asked > asked\"; exit 0' TERM"
    cancelled(box, cancel, f"{trap}; echo up > up; while :; do read x < never; done")
    assert (box.workdir / "asked").read_text() == "asked\n"


def test_a_command_out_of_time_is_asked_to_end(ground: Ground, by: str) -> None:
    box = ground.open(f"T-{by}", by=by)
    os.mkfifo(box.workdir / "never")
    ended = box.run("trap 'echo asked; exit 3' TERM; echo on; read x < never", timeout_s=3)
    assert ended.timed_out
    # In between the shell may say that its reading was interrupted.
    assert ended.stdout.startswith(b"on\n")
    assert ended.stdout.endswith(b"asked\n")


DRIVER = """
import os, sys
from pathlib import Path
from loopctl.sandbox import process
from loopctl.sandbox.confine.bubblewrap import Bubblewrap
from loopctl.sandbox.confine.landlock import Landlock, abi
from loopctl.sandbox.confine.reach import Reach
root, mark, by, program = Path(sys.argv[1]), *sys.argv[2:]
checkout, work = root / "checkout", root / "work"
for folder in (checkout / ".local/git", checkout / ".local/shim", work):
    folder.mkdir(parents=True)
(work / ".git").touch()
path = {"PATH": os.environ["PATH"]}
reach = Reach(checkout, checkout / ".local/git", checkout / ".local/shim", path)
held = Bubblewrap(program, reach) if by == "bubblewrap" else Landlock(abi(), reach)
argv = ["sh", "-c", f"echo up > {root}/up/up; exec sleep 86390.{mark}"]
confined = held.wrap(argv, workdir=work, writable=[root / "up"])
process.run(confined.argv, cwd=work, env=path, timeout_s=200, has_keeper=confined.has_keeper)
"""


def test_a_command_goes_with_a_harness_that_is_killed(
    tmp_path: Path, by: str, bubblewrap: str
) -> None:
    mark = mark_of(by, "deaf to signals", 3)
    (tmp_path / "up").mkdir()
    os.mkfifo(tmp_path / "up/up")
    words = [sys.executable, "-c", DRIVER, str(tmp_path), mark, by, bubblewrap]
    harness = subprocess.Popen(words)
    watches = []
    try:
        assert (tmp_path / "up/up").read_text() == "up\n"
        # Between its word and its becoming a sleeper it is a shell, or its parent's child.
        watches = [os.pidfd_open(pid) for pid in alive(mark) or descendants(harness.pid)]
        assert watches
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait(30)
    for watch in watches:
        # The descriptor of a process is readable when it has ended.
        assert select.select([watch], [], [], 30)[0]
        os.close(watch)


def descendants(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            found += [child, *descendants(child)]
    return found
