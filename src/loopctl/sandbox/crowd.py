"""Looks at what a command and all that has come of it take together: processes and memory.

No limit of the kernel does it everywhere: it does not count the processes of root, and a limit of
memory is one process's. A control group would; but the groups of most machines are the init
system's, which has no place for another's.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.records import Most
from loopctl.sandbox import proctree

_PROC: Final = Path("/proc")
_SPARING: Final = 10
"""Looking takes at most this part of the time, unless the machine as a whole says to hurry."""

_LEAST_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Machine:
    tasks: int
    available: int


class Crowd:
    """All that has come of one process.

    Args:
        leader: The first of them, a child of this process.
        tag: That they carry.
        most: What they may take; ``None`` for whatever they like.
    """

    def __init__(self, leader: int, tag: proctree.Tag | None, most: Most | None) -> None:
        is_there = (_PROC / "self" / "task").is_dir()
        self._most = most if is_there else None
        self._leader = leader
        self._tag = tag
        self._next = 0.0
        self._before = _machine() if self._most is not None else _Machine(0, 0)

    @property
    def is_watched(self) -> bool:
        """Somebody has to look now and then."""
        return self._most is not None

    def excess(self) -> str:
        """Return in words what they take too much of; empty for nothing, or if not looked."""
        most, begun = self._most, time.monotonic()
        if most is None or (begun < self._next and not self._is_urgent(most)):
            return ""
        orphans = proctree.orphans(self._tag, self._leader)
        family = tuple(_family((self._leader, *orphans)))
        tasks = sum(count for _, count in family)
        found = ""
        if tasks > most.processes:
            found = f"it had more than {most.processes} processes and threads at once"
            found += " ([sandbox] processes)"
        elif _used(family, "status", _IN_STATUS) > most.memory_bytes and (
            # Pages that several share were counted for each of them.
            _used(family, "smaps_rollup", _IN_ROLLUP) > most.memory_bytes
        ):
            found = f"it used more than {most.memory_bytes >> 20} MiB of memory"
            found += " ([sandbox] memory_mb)"
        now = time.monotonic()
        self._next = now + max(_LEAST_S, _SPARING * (now - begun))
        return found

    def _is_urgent(self, most: Most) -> bool:
        now = _machine()
        return (
            now.tasks - self._before.tasks > most.processes // 2
            or self._before.available - now.available > most.memory_bytes // 2
        )


_IN_STATUS: Final = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_IN_ROLLUP: Final = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")


def _family(roots: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the processes that have come of others, themselves included, with their threads."""
    waiting, seen = list(roots), set(roots)
    while waiting:
        pid = waiting.pop()
        try:
            threads = len(os.listdir(f"{_PROC}/{pid}/task"))  # noqa: PTH208 - names alone
        except OSError:
            continue
        yield pid, threads
        fresh = set(proctree.children(pid)) - seen
        seen |= fresh
        waiting += fresh


def _used(family: tuple[tuple[int, int], ...], file: str, names: tuple[bytes, ...]) -> int:
    """Return the sum of some lines of a file of each process, in bytes."""
    total = 0
    for pid, _ in family:
        for line in _read(f"{_PROC}/{pid}/{file}").splitlines():
            if line.startswith(names):
                total += int(line.split()[1]) << 10
    return total


def _machine() -> _Machine:
    """Return how many processes and threads the machine has, and what memory it has to give."""
    words = _read(f"{_PROC}/loadavg").split()
    tasks = int(words[3].partition(b"/")[2]) if len(words) > 3 else 0  # noqa: PLR2004 - the field
    after = _read(f"{_PROC}/meminfo").partition(b"MemAvailable:")[2].split(maxsplit=1)
    return _Machine(tasks, int(after[0]) << 10 if after else 0)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - many times a second
            return file.read()
    except OSError:
        return b""
