"""Kill the process at its system calls, where ptrace is allowed: before each that changes a file.

strace counts the calls of every thread by itself. So that the N-th call of one thread can be told
from all others, that thread begins with more failing calls of that name than any thread makes.
"""

import itertools
import re
import signal
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

KILLED = -signal.SIGKILL
BURNT: Final = 5_000
"""More calls of one name than any thread makes by itself."""

SAMPLE = 5
"""At so many calls the fast suite kills; the slow one at all of them."""

SHARDS = 8
HOURS = pytest.mark.timeout(4 * 3600)
CALLS: Final = (
    "ftruncate,link,mkdir,openat,pwrite64,rename,rmdir,sendfile,symlink,truncate,unlink,unlinkat,"
    "write"
)
"""Not fsync: what a process has written outlives its kill, so a kill before it is one before the next."""
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
PLACE = re.compile(r"<[^>]*>|\"[^\"]*/")
"""The file of a descriptor, or the folder of a path."""

MARK = re.compile(r'"/nonexistent/thread/(\d+)"')

OUTSIDE: Final = {("send", 0), ("put", 1), ("send", 2), ("send", 4)}
LINES: Final = [word for n in range(5) for word in ("did", str(n))]

Attempt = Callable[[str, str, Callable[[], int]], str]
Shared = Callable[[str, Callable[[], str]], str]


pytestmark = pytest.mark.usefixtures("traceable")


@contextmanager
def strace(pid: int, *words: str) -> Iterator[None]:
    """Trace a process and all its threads, but not what it starts, to its end."""
    argv = ["strace", "-f", "-b", "execve", *words, "-p", str(pid)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        assert b"attached" in said, said
        yield
        tracer.communicate(timeout=180)


def drive(rig: Any, stage: str, burn: str, *words: str, **more: Any) -> int:
    """Run, or answer what is open, in a process that is traced; return the exit code."""
    how = {"CHAOS_BURN": burn, "traced": lambda pid: strace(pid, *words), **more}
    code: int
    code = rig.answer(rig.open_decisions(), **how) if stage == "asked" else rig.loop(**how)
    return code


def disturb(rig: Any, point: str, what: str, after: str = "", **more: Any) -> int:
    """Drive up to the call of a point, where ``what`` is injected; return the exit code."""
    stage, thread, call, count = point.split()
    inject = f"inject={call}:{what}:when={BURNT + int(count)}{after}"
    words = ("-o", "/dev/null", "-e", f"trace={call}", "-e", inject)
    return drive(rig, stage, f"{thread}:{call}:{BURNT}", *words, **more)


def kill(rig: Any, point: str) -> int:
    return disturb(rig, point, "signal=SIGKILL")


def found_in(log: Path, place: Path) -> list[str]:
    """Return ``THREAD CALL N`` for each call of a trace that changes something in the project.

    Of many of one kind in a row, such as the removals of a folder's files, the first and the last.
    """
    threads: dict[str, str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    made: set[str] = set()
    rows: dict[str, list[tuple[str, str]]] = {}
    for line in log.read_text(errors="replace").splitlines():
        if not (match := LINE.match(line)):
            continue
        thread, call, rest = match.groups()
        if mark := MARK.search(rest):
            threads[thread] = mark[1]
        counts[thread, call] += 1
        if thread in threads and changes(call, rest, place, made):
            point = f"{threads[thread]} {call} {counts[thread, call]}"
            rows.setdefault(thread, []).append((f"{call} {place_of(rest)}", point))
    found: list[str] = []
    for row in rows.values():
        for _, group in itertools.groupby(row, key=lambda one: one[0]):
            alike = [point for _, point in group]
            found += dict.fromkeys((alike[0], alike[-1]))
    return found


def changes(call: str, rest: str, place: Path, made: set[str]) -> bool:
    """Say whether a call changes a file of the project, or adds an effect."""
    if not any(str(place / name) in rest for name in ("project", "tmp", "effects")):
        return False
    if call != "openat":
        return True
    is_new = "O_CREAT" in rest and (rest not in made or "O_TRUNC" in rest or "O_EXCL" in rest)
    made.add(rest)
    return is_new


def place_of(rest: str) -> str:
    """Return the folder or the file that a call is about, without what it does there."""
    return (PLACE.search(rest) or [""])[0]


@pytest.fixture(scope="module")
def points(rig: Any, shared: Shared) -> list[str]:
    """``STAGE THREAD CALL N``: every call that changes a file of the project."""

    def trace() -> str:
        lines = []
        for stage in ("new", "asked"):
            rig.back_to(stage)
            log = rig.place / "strace"
            drive(rig, stage, "-", "-y", "-o", str(log), "-e", f"trace={CALLS}")
            lines += [f"{stage} {found}" for found in found_in(log, rig.place)]
        return "\n".join(lines)

    return shared("syscalls", trace).splitlines()


def sweep(points: list[str], rig: Any, attempt: Attempt) -> list[str]:
    found = (
        attempt(point.split()[0], f"call {point}", lambda point=point: kill(rig, point))  # type: ignore[misc]
        for point in points
    )
    return [wrong for wrong in found if wrong]


def test_kills_at_some_system_calls_change_nothing(
    points: list[str], rig: Any, attempt: Attempt
) -> None:
    assert len(points) >= 300
    assert max(int(point.split()[3]) for point in points) < BURNT
    assert sweep(points[7 :: len(points) // SAMPLE], rig, attempt) == []


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kills_at_all_system_calls_change_nothing(
    points: list[str], rig: Any, attempt: Attempt, shard: int
) -> None:
    mine = [point for point in points if zlib.crc32(point.encode()) % SHARDS == shard]
    assert sweep(mine, rig, attempt) == []


def writes(points: list[str]) -> list[str]:
    calls = {"mkdir", "pwrite64", "rename", "sendfile", "write"}
    return [point for point in points if point.split()[2] in calls]


def fill(rig: Any, point: str, journal: Callable[[str], None]) -> str:
    """Say at one call that the disk is full; return what did not come to its end after that.

    What SQLite writes fails from there on: one failure alone it would try again.
    """
    stage = point.split(maxsplit=1)[0]
    rig.back_to(stage)
    codes = frozenset({0, 2, 3, 4})
    code = 0
    try:
        after = "+" * ("pwrite64" in point)
        code = disturb(rig, point, "error=ENOSPC", after, codes=codes)
        rig.finish_by_name()
        rig.look_for_leftovers()
        assert set(rig.happened()) == OUTSIDE
        assert rig.git("show", "loop/integration:calls.txt").split() == LINES
    except (AssertionError, subprocess.SubprocessError) as error:
        journal(f"WRONG full disk {point}: {error}")
        return f"{point}: {error}"
    journal(f"full disk, exit code {code}: {point}")
    return ""


def test_a_disk_that_is_full_at_some_calls_loses_nothing(
    points: list[str], rig: Any, journal: Callable[[str], None]
) -> None:
    chosen = writes(points)[11 :: len(points) // 4]
    found = [fill(rig, point, journal) for point in chosen]
    assert [wrong for wrong in found if wrong] == []


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_disk_that_is_full_at_any_call_loses_nothing(
    points: list[str], rig: Any, journal: Callable[[str], None], shard: int
) -> None:
    mine = [point for point in writes(points) if zlib.crc32(point.encode()) % SHARDS == shard]
    found = [fill(rig, point, journal) for point in mine[::3]]
    assert [wrong for wrong in found if wrong] == []
