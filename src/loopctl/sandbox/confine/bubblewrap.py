"""Confinement by bubblewrap: own namespaces, and only what a command needs of the files.

The worktree stands at the path of the user's checkout, so that editable installs, absolute paths
and caches lead to it and not to the user's files. Of ``.local`` there is the harness's own
repository, read-only, and what the step writes to.

Both ``--cap-drop ALL`` and ``--disable-userns`` are needed: root keeps its capabilities otherwise,
and could unmount what is read-only.
"""

import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopctl.domain import ExecResult
from loopctl.errors import SandboxError
from loopctl.records import Confined
from loopctl.sandbox.confine import places
from loopctl.sandbox.confine.limits import Limits
from loopctl.sandbox.confine.reach import Reach

_NAMESPACES: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
    *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session"),
)
_EMPTY: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - mounted empty
_NEVER_RAN: Final = frozenset({126, 127})


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Implements :class:`loopctl.ports.Confinement`.

    Attributes:
        program: ``bwrap``.
        reach: What commands may reach.
        limits: What one command may take.
    """

    program: str
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
        """What is shared is mounted."""
        return True

    def inside(self, workdir: Path) -> Path:
        """Return where a worktree stands for its commands."""
        del workdir
        return self.reach.checkout

    def wrap(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        writable: Sequence[Path],
        kept: Sequence[Path] = (),
        network: bool = False,
    ) -> Confined:
        """Return the command line that runs ``argv`` confined.

        Raises:
            SandboxError: A link stands where something has to be mounted, or nothing does.
        """
        with self._lock:
            if not self._fixed:
                self._fixed.extend(self._everywhere())
        words = (
            *(self.program, *_NAMESPACES),
            *(() if network or self.reach.network else ("--unshare-net",)),
            *self._fixed,
            *self._worktree(workdir),
            *self._kept(workdir, kept),
            *_binds("--bind", writable),
            # What is left of the root is the sandbox's own, and is lost with it: no place to write.
            *("--remount-ro", "/", "--chdir", str(self.reach.checkout), "--"),
            *self._started(argv),
        )
        return Confined(words, has_keeper=True, most=self.limits.most)

    def explain(self, ended: ExecResult) -> str:
        """Return which program a command missed inside, or which limit it has met."""
        if ended.returncode in _NEVER_RAN and (lacks := self.reach.lacks(ended.stdout)):
            return lacks
        return self.limits.explain(ended)

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        return f"bubblewrap, {'with the network' if self.reach.network else 'without network'}"

    def _everywhere(self) -> Iterator[str]:
        """Yield the options that are the same for each command of a run."""
        reach = self.reach
        yield from _system(reach.git_dir.parent / "etc", self.limits.folder_bytes)
        yield from _binds("--ro-bind", reach.readable())
        yield from _binds("--bind", reach.named(reach.write))
        for key in reach.hidden():
            if key.is_dir():
                yield from ("--tmpfs", str(key), "--remount-ro", str(key))
            elif key.is_file():
                yield from ("--ro-bind", os.devnull, str(key))

    def _worktree(self, workdir: Path) -> Iterator[str]:
        """Yield what puts the worktree in the checkout's place."""
        reach = self.reach
        local = reach.git_dir.parent
        if local.is_relative_to(reach.checkout):
            _refuse_links(workdir, local.relative_to(reach.checkout))
        pointer = workdir / ".git"
        if pointer.is_symlink() or not pointer.is_file():
            raise SandboxError(f"{pointer} is not the file that git has made; something took it")
        for at in dict.fromkeys((reach.checkout, Path(os.path.realpath(reach.checkout)))):
            yield from ("--bind", str(workdir), str(at))
            yield from ("--ro-bind", str(pointer), str(at / ".git"))
            for name, source in reach.folders(reach.share):
                if is_mount_point(workdir, name):
                    yield from ("--ro-bind", os.path.realpath(source), str(at / name))
        yield from ("--tmpfs", str(local))
        yield from _binds("--ro-bind", [reach.git_dir, reach.shim])
        for named, how in ((reach.read, "--ro-bind"), (reach.write, "--bind")):
            for name, source in reach.folders(named):
                if is_mount_point(workdir, name):
                    yield from (how, os.path.realpath(source), str(reach.checkout / name))

    def _kept(self, workdir: Path, kept: Sequence[Path]) -> Iterator[str]:
        """Yield what puts the user's own in the place of the worktree's."""
        names = (name for name, _ in self.reach.folders(self.reach.share))
        shared = [Path(name) for name in names if is_mount_point(workdir, name)]
        for place in kept:
            name = place.relative_to(self.reach.checkout)
            at = workdir / name
            if any(one in (name, *name.parents) for one in shared):
                continue
            above = [one for one in at.parents if workdir in one.parents]
            if any(one.is_symlink() for one in (at, *above)) or at.is_dir() != place.is_dir():
                raise SandboxError(
                    f"the worktree has no {name} any more, in whose place the checkout's is to be"
                )
            if not at.exists():
                raise SandboxError(f"the worktree has no {name}; commit it, or name it elsewhere")
            yield from ("--ro-bind", os.path.realpath(place), str(place))

    def _started(self, argv: Sequence[str]) -> Iterator[str]:
        """Yield the command behind what sets limits from inside, where they count for it alone.

        A shell starts it, so that a program that is not there ends with 127 in all cases.
        """
        if shutil.which("prlimit", path="/usr/bin:/bin") is not None:
            yield "prlimit"
            for name, _, value in self.limits.of_process():
                yield f"--{name}={value}"
            yield "--"
        if argv[0] != "sh":
            yield from ("sh", "-c", 'exec "$@"', "sh")
        yield from argv


def _system(etc: Path, folder_bytes: int) -> Iterator[str]:
    """Yield what makes the system's own folders, and those that are the sandbox's."""
    for root in places.SYSTEM:
        if Path(root).is_symlink():
            yield from ("--symlink", str(Path(root).readlink()), root)
        elif Path(root).is_dir():
            yield from ("--ro-bind", root, root)
    folders = tuple(places.copy_settings(etc))
    yield from ("--ro-bind", str(etc), "/etc")
    yield from _binds("--ro-bind", folders)
    # Who is root outside could set the kernel through /proc otherwise: that asks no capability.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    for empty in _EMPTY:
        yield from ("--size", str(folder_bytes), "--perms", "1777", "--tmpfs", empty)


def is_mount_point(workdir: Path, name: str) -> bool:
    """Return whether a folder can be mounted there: an empty one, below no link."""
    place = workdir / name
    above = [one for one in place.parents if workdir in one.parents]
    if any(one.is_symlink() for one in (place, *above)):
        return False
    return place.is_dir() and not any(place.iterdir())


def _refuse_links(workdir: Path, name: Path) -> None:
    place = workdir / name
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise SandboxError(
            f"{place} is no folder; the harness keeps its own things there, so no task may have it"
        )


def _binds(how: str, folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        yield from (how, str(folder), str(folder))
