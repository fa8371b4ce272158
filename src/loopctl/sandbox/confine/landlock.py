"""Confinement by Landlock, where bubblewrap does not hold: the kernel refuses what is not listed.

Nothing is mounted: commands see the machine's paths, and the worktree at its own. They share the
machine's processes, whose numbers they see.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopctl.domain import ExecResult
from loopctl.records import Confined
from loopctl.sandbox.confine import lockin, places
from loopctl.sandbox.confine.limits import Limits
from loopctl.sandbox.confine.reach import Reach

_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_ALSO: Final = ("/proc", "/dev/random", "/dev/urandom")
_NEVER_RAN: Final = frozenset({126, 127})


def abi() -> int:
    """Return the version of the kernel's Landlock; 0 where it has none."""
    if sys.platform != "linux":
        return 0
    library = ctypes.CDLL(None, use_errno=True)
    version: int = library.syscall(lockin.CREATE_RULESET, None, 0, lockin.VERSION)
    return max(0, version)


def why_not(version: int, machine: str) -> str:
    """Return why that version of Landlock cannot hold commands; empty where it can."""
    if not version:
        return "the kernel has no Landlock"
    if version < lockin.TRUNCATING:
        return "the kernel's Landlock lets any file be emptied (Linux 6.2 mends that)"
    if machine not in lockin.CALLS:
        return f"there is no filter of system calls for {machine}"
    return ""


@dataclass(frozen=True, slots=True)
class Landlock:
    """Implements :class:`loopctl.ports.Confinement`.

    Attributes:
        version: Of the kernel's Landlock; :func:`why_not` has nothing against it.
        reach: What commands may reach.
        limits: What one command may take.
    """

    version: int
    reach: Reach
    limits: Limits = field(default_factory=Limits)
    _fixed: list[str] = field(default_factory=list, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def is_holding(self) -> bool:
        """Commands are held."""
        return True

    @property
    def has_mounts(self) -> bool:
        """All stands where it is."""
        return False

    def inside(self, workdir: Path) -> Path:
        """Return ``workdir`` as it is."""
        return workdir

    def wrap(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        writable: Sequence[Path],
        kept: Sequence[Path] = (),
        network: bool = False,
    ) -> Confined:
        """Return the command line that runs ``argv`` confined."""
        with self._lock:
            if not self._fixed:
                self._fixed.extend(self._everywhere())
        words = (
            *(sys.executable, "-I", "-S", lockin.__file__),
            *(("n",) if network or self.reach.network else ()),
            *self._fixed,
            *(f"r{path}" for path in kept),
            *(f"w{path}" for path in (workdir, *writable)),
            *("--", *argv),
        )
        return Confined(words, most=self.limits.most)

    def explain(self, ended: ExecResult) -> str:
        """Return which program a command could not reach, or which limit it has met."""
        if ended.returncode in _NEVER_RAN and (lacks := self.reach.lacks(ended.stdout)):
            return lacks
        return self.limits.explain(ended)

    def describe(self) -> str:
        """Return what keeps a command inside and what does not, in a few words."""
        sockets = "no Unix sockets, but the network" if self.reach.network else "no sockets at all"
        others = "see" if self.version >= lockin.SCOPED else "see and end"
        return (
            f"Landlock, {sockets}; commands {others} other processes of yours, can change modes "
            "and times of your files, and do not find the worktree at your checkout's path"
        )

    def _everywhere(self) -> Iterator[str]:
        """Yield the words that are the same for each command of a run."""
        reach = self.reach
        hidden = reach.hidden()
        shared = [source for _, source in reach.folders((*reach.share, *reach.read))]
        settings = [Path("/etc", name) for name in places.ETC]
        system = [Path(name) for name in (*places.SYSTEM, *_ALSO)]
        own = (reach.git_dir, reach.shim, *shared)
        for place in (*system, *settings, *own, *reach.readable()):
            yield from (f"r{part}" for part in without(place, hidden))
        written = [source for _, source in reach.folders(reach.write)]
        for place in (*written, *reach.named(reach.write)):
            yield from (f"w{part}" for part in without(place, hidden))
        yield from (f"d{name}" for name in _DEVICES)
        yield from (f"l{number}={value}" for _, number, value in self.limits.of_process())


def without(place: Path, hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield a place, or what is in it where something of that is to stay hidden.

    A rule counts for all that is below its folder, and nothing can be taken out again.
    """
    within = [one for one in hidden if one == place or place in one.parents]
    if not within:
        if os.path.lexists(place):
            yield place
    elif place not in within and place.is_dir():
        for one in sorted(place.iterdir()):
            yield from without(one, within)
