"""Kill git in the middle of its work together with its harness: its locks stay, and are made good.

A script in git's place counts the calls. At the one that is wanted git runs under strace, which
kills it at a system call; the script then kills the harness before that has heard of it.
"""

import re
import shutil
import signal
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

KILLED = -signal.SIGKILL
SAMPLE = 3
SHARDS = 4
HOURS = pytest.mark.timeout(4 * 3600)
CALLS: Final = "link,mkdir,rename,rmdir,unlink"
"""What git takes its locks back with, and puts things in their place; its writes come between."""

LINE = re.compile(r"(\w+)\(")
SCRIPT: Final = """#!/bin/sh
echo >> '{place}/count'
n=$(wc -l < '{place}/count')
{body}
exec '{git}' "$@"
"""
TRACE: Final = "exec strace -qq -o '{place}/git-log-'$n -e trace={calls} '{git}' \"$@\""
KILL: Final = """
if [ "$n" = {number} ]; then
    strace -qq -o /dev/null -e trace={call} -e inject={call}:signal=SIGKILL:when={count} '{git}' "$@"
    code=$?
    [ $code = 137 ] && kill -KILL $PPID
    exit $code
fi
"""

Attempt = Callable[[str, str, Callable[[], int]], str]
Shared = Callable[[str, Callable[[], str]], str]
pytestmark = pytest.mark.usefixtures("traceable")


def drive(rig: Any, stage: str, body: str, **fields: Any) -> int:
    """Run, or answer what is open, with a git that does ``body`` first; return the exit code."""
    names = {"place": rig.place, "git": shutil.which("git"), **fields}
    folder = rig.place / "bin"
    folder.mkdir()
    script = folder / "git"
    script.write_text(SCRIPT.format(body=body.format(**names), **names))
    script.chmod(0o755)
    path = f"{folder}:{rig.path}"
    code: int
    code = rig.answer(rig.open_decisions(), PATH=path) if stage == "asked" else rig.loop(PATH=path)
    return code


@pytest.fixture(scope="module")
def points(rig: Any, shared: Shared) -> list[str]:
    """``STAGE NUMBER CALL N``: every call of every git that puts something in its place."""

    def trace() -> str:
        found = []
        for stage in ("new", "asked"):
            rig.back_to(stage)
            drive(rig, stage, TRACE, calls=CALLS)
            logs = {int(log.name.rpartition("-")[2]): log for log in rig.place.glob("git-log-*")}
            for number in sorted(logs):
                names = LINE.findall(logs[number].read_text(errors="replace"))
                counts: Counter[str] = Counter()
                for name in names:
                    counts[name] += 1
                    found.append(f"{stage} {number} {name} {counts[name]}")
        return "\n".join(found)

    return shared("git-calls", trace).splitlines()


def kill(rig: Any, point: str) -> int:
    stage, number, call, count = point.split()
    return drive(rig, stage, KILL, number=number, call=call, count=count)


def sweep(points: list[str], rig: Any, attempt: Attempt) -> list[str]:
    found = (
        attempt(point.split()[0], f"git {point}", lambda point=point: kill(rig, point))  # type: ignore[misc]
        for point in points
    )
    return [wrong for wrong in found if wrong]


def test_some_kills_of_git_change_nothing(points: list[str], rig: Any, attempt: Attempt) -> None:
    assert len(points) >= 100
    assert sweep(points[3 :: len(points) // SAMPLE], rig, attempt) == []


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kills_of_git_wherever_it_changes_a_file_change_nothing(
    points: list[str], rig: Any, attempt: Attempt, shard: int
) -> None:
    mine = [point for point in points if zlib.crc32(point.encode()) % SHARDS == shard]
    assert sweep(mine, rig, attempt) == []
