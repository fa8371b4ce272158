"""What a command and all that came of it take together, looked at once."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from loopctl.records import Most
from loopctl.sandbox.crowd import Crowd

MIB = 1 << 20
SCRIPT = """
import os, sys
held = bytearray(80 << 20)
own = sys.argv[1] == "own"
children = []
for _ in range(4):
    begun, begin = os.pipe()
    stay, end = os.pipe()
    if os.fork() == 0:
        os.close(end)
        if own:
            held[:] = bytes(80 << 20)
        os.write(begin, b"x")
        os.read(stay, 1)
        os._exit(0)
    os.close(stay)
    os.read(begun, 1)
    children.append(end)
os.write(1, b"up")
os.read(0, 1)
"""


def family(kind: str) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(
        [sys.executable, "-S", "-c", SCRIPT, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stdout.read(2) == b"up"
        yield started
        started.communicate(timeout=60)


@pytest.fixture
def sharing() -> "Iterator[subprocess.Popen[bytes]]":
    yield from family("shared")


@pytest.fixture
def owning() -> "Iterator[subprocess.Popen[bytes]]":
    yield from family("own")


def test_memory_that_processes_share_counts_once(sharing: "subprocess.Popen[bytes]") -> None:
    assert Crowd(sharing.pid, None, Most(50, 200 * MIB)).excess() == ""


def test_memory_that_each_has_for_itself_counts_for_each(
    owning: "subprocess.Popen[bytes]",
) -> None:
    said = Crowd(owning.pid, None, Most(50, 200 * MIB)).excess()
    assert said == "it used more than 200 MiB of memory ([sandbox] memory_mb)"


def test_all_that_came_of_it_is_counted(sharing: "subprocess.Popen[bytes]") -> None:
    assert Crowd(sharing.pid, None, Most(5, 1 << 40)).excess() == ""
    said = Crowd(sharing.pid, None, Most(4, 1 << 40)).excess()
    assert said == "it had more than 4 processes and threads at once ([sandbox] processes)"


def test_nobody_looks_where_nothing_is_limited(sharing: "subprocess.Popen[bytes]") -> None:
    crowd = Crowd(sharing.pid, None, None)
    assert (crowd.is_watched, crowd.excess()) == (False, "")
