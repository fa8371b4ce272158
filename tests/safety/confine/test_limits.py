"""A command that takes too much is ended, and told so in words; an ordinary one is not."""

import sys
from typing import Any

import pytest

from loopctl.sandbox.worktree import Worktree

from .conftest import LIMIT_S, Ground

SMALL: dict[str, Any] = {"processes": 60, "memory_mb": 160, "file_mb": 1}
CROWD = """
import os, signal
for _ in range(400):
    try:
        if os.fork() == 0:
            signal.pause()
    except OSError:
        break
signal.pause()
"""
THREADS = """
import threading
end = threading.Event()
for _ in range(200):
    threading.Thread(target=end.wait, daemon=True).start()
end.wait()
"""
HOG = "import signal; held = bytearray(400 << 20); signal.pause()"
HOGS = """
import os, signal
for _ in range(5):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        signal.pause()
signal.pause()
"""


@pytest.fixture
def small(ground: Ground, by: str, request: pytest.FixtureRequest) -> Worktree:
    name = "".join(letter for letter in request.node.name if letter.isalnum())
    return ground.open(f"L-{name[-60:]}", by=by, **SMALL)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (CROWD, "more than 60 processes and threads at once ([sandbox] processes)"),
        (THREADS, "more than 60 processes and threads at once ([sandbox] processes)"),
        (HOG, "more than 160 MiB of memory ([sandbox] memory_mb)"),
        (HOGS, "more than 160 MiB of memory ([sandbox] memory_mb)"),
    ],
    ids=["processes", "threads", "memory", "memory of several"],
)
def test_what_takes_too_much_is_ended_and_told_why(small: Worktree, script: str, says: str) -> None:
    ended = small.run([sys.executable, "-c", script], timeout_s=LIMIT_S)
    assert not ended.timed_out
    assert says in ended.excess
    assert f"loop: ended, since {ended.excess}\n".encode() in ended.stdout
    assert ended.returncode != 0


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("head -c 3000000 /dev/zero > big", 1),
        (f"{sys.executable} -c \"open('big', 'wb').write(bytes(3 << 20))\"", 1),
    ],
    ids=["ended by a signal", "told by an error"],
)
def test_a_file_has_an_end_that_is_told(small: Worktree, command: str, code: int) -> None:
    ended = small.run(command, timeout_s=LIMIT_S)
    assert ended.returncode >= code
    assert b"a file may have 1 MiB inside the confinement; [sandbox] file_mb" in ended.stdout
    assert (small.workdir / "big").stat().st_size <= 1 << 20


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("for i in 1 2 3 4 5 6 7 8 9; do sleep 0 & done; wait; echo done", "done"),
        ("head -c 900000 /dev/zero > f && wc -c < f", "900000"),
        (f"{sys.executable} -c 'held = bytearray(40 << 20); print(\"held\")'", "held"),
        ("ulimit -c", "0"),
    ],
)
def test_an_ordinary_command_is_let_be(small: Worktree, command: str, says: str) -> None:
    ended = small.run(command, timeout_s=LIMIT_S)
    assert (ended.returncode, ended.stdout.decode().strip(), ended.excess) == (0, says, "")


def test_folders_in_memory_have_an_end(ground: Ground) -> None:
    box = ground.open("L-folders", **{**SMALL, "file_mb": 100})
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run"):  # noqa: S108 - inside
        ended = box.run(f"head -c 60000000 /dev/zero > {folder}/big", timeout_s=LIMIT_S)
        assert b"No space left on device" in ended.stdout, folder
        assert box.run(f"head -c 900000 /dev/zero > {folder}/f", timeout_s=LIMIT_S).returncode == 0


def test_open_files_have_an_end(small: Worktree) -> None:
    script = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= 65536)"
    ended = small.run([sys.executable, "-c", script], timeout_s=LIMIT_S)
    assert ended.stdout == b"True\n"
