"""Confinement by bubblewrap: own namespaces, and only what a command needs of the files.

The worktree stands at the path of the user's checkout, so that editable installs, absolute paths
and caches lead to it and not to the user's files. Of ``.local`` there is the harness's own
repository, read-only, and what the step writes to.

Both ``--cap-drop ALL`` and ``--disable-userns`` are needed: root keeps its capabilities otherwise,
and could unmount what is read-only.
"""

import os
import re
import resource
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopctl.errors import SandboxError
from loopctl.sandbox.confine import places

_NAMESPACES: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
    *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session"),
)
_LIMITS: Final = (
    ("core", resource.RLIMIT_CORE, 0),
    ("nofile", resource.RLIMIT_NOFILE, 65536),
    ("nproc", resource.RLIMIT_NPROC, 8192),
    ("fsize", resource.RLIMIT_FSIZE, 16 << 30),
)
_EMPTY: Final = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - mounted empty
_NOT_FOUND: Final = re.compile(
    rb"(?:^|: |line \d+: )([\w.+/-]+): (?:command )?not found"
    rb"|failed to execute ([\w.+/-]+): No such file"
    rb"|env: \W{0,3}([\w.+/-]+?)\W{0,3}: No such file",
    re.MULTILINE,
)
_LOOKED_AT: Final = 4096


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Implements :class:`loopctl.ports.Confinement`.

    Attributes:
        program: ``bwrap``.
        checkout: The user's checkout; never mounted itself, but for ``share``.
        git_dir: The harness's own repository, in ``.local``.
        shim: The folder that holds ``loop`` for commands.
        env: The caller's environment.
        own: What this harness runs from.
        share: Folders of the checkout that are read-only on top of the worktree.
        read: More that may be read; ``~`` is the caller's home folder.
        write: More that may be written.
        network: Commands may use the network.
    """

    program: str
    checkout: Path
    git_dir: Path
    shim: Path
    env: Mapping[str, str]
    own: tuple[Path, ...] = ()
    share: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    _fixed: list[str] = field(default_factory=list, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def is_holding(self) -> bool:
        """Commands are held."""
        return True

    def inside(self, workdir: Path) -> Path:
        """Return where a worktree stands for its commands."""
        del workdir
        return self.checkout

    def wrap(self, argv: Sequence[str], *, workdir: Path, writable: Sequence[Path]) -> list[str]:
        """Return the command line that runs ``argv`` confined.

        Raises:
            SandboxError: A link stands where something has to be mounted.
        """
        with self._lock:
            if not self._fixed:
                self._fixed.extend(self._everywhere())
        return [
            *(self.program, *_NAMESPACES, *self._fixed),
            *self._worktree(workdir),
            *_binds("--bind", writable),
            # What is left of the root is the sandbox's own, and is lost with it: no place to write.
            *("--remount-ro", "/", "--chdir", str(self.checkout), "--"),
            *_started(argv),
        ]

    def lacks(self, output: bytes) -> str:
        """Return which program a command did not find that the machine has, and how to show it."""
        for found in _NOT_FOUND.finditer(output[-_LOOKED_AT:]):
            name = os.fsdecode(found[1] or found[2] or found[3])
            place = shutil.which(name, path=self.env.get("PATH"))
            if place is not None:
                folder = Path(os.path.realpath(place)).parent
                return (
                    f"{name} is on this machine as {place}, but cannot be seen inside the "
                    f'confinement; show it with [sandbox] read = ["{folder}"]'
                )
        return ""

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        return f"bubblewrap, {'with the network' if self.network else 'without network'}"

    @property
    def _home(self) -> Path:
        return Path(self.env.get("HOME") or os.devnull)

    def _everywhere(self) -> Iterator[str]:
        """Yield the options that are the same for each command of a run."""
        if not self.network:
            yield "--unshare-net"
        yield from _system(self.git_dir.parent / "etc")
        known = places.readable(self.env, self._home, (*self.own, *self._shared_bases()))
        named, written = self._named(self.read), self._named(self.write)
        shown = [place for place in known if not self._is_in_checkout(place)]
        yield from _binds("--ro-bind", places.outermost([*shown, *named]))
        yield from _binds("--bind", written)
        for key in places.keys_below([*shown, *named, *written], self._home):
            if key in named or key in written:
                continue
            if key.is_dir():
                yield from ("--tmpfs", str(key), "--remount-ro", str(key))
            elif key.is_file():
                yield from ("--ro-bind", os.devnull, str(key))

    def _shared_bases(self) -> Iterator[Path]:
        """Yield what the virtual environments among the shared folders are based on."""
        for name in self.share:
            yield from places.installation(self.checkout / name / "bin")

    def _named(self, words: Sequence[str]) -> list[Path]:
        """Return the places outside the checkout that a setting names."""
        found = []
        for word in words:
            whole = self._home / word[2:] if word.startswith("~/") else Path(self.checkout, word)
            place = self._home if word == "~" else Path(os.path.normpath(whole))
            if place.exists() and not self._is_in_checkout(place):
                found.append(place)
        return found

    def _is_in_checkout(self, place: Path) -> bool:
        return place == self.checkout or self.checkout in place.parents

    def _worktree(self, workdir: Path) -> Iterator[str]:
        """Yield what puts the worktree in the checkout's place."""
        local = self.git_dir.parent
        if local.is_relative_to(self.checkout):
            _refuse_links(workdir, local.relative_to(self.checkout))
        pointer = workdir / ".git"
        if pointer.is_symlink() or not pointer.is_file():
            raise SandboxError(f"{pointer} is not the file that git has made; something took it")
        for at in dict.fromkeys((self.checkout, Path(os.path.realpath(self.checkout)))):
            yield from ("--bind", str(workdir), str(at))
            yield from ("--ro-bind", str(pointer), str(at / ".git"))
            for name, source in shared_folders(self.checkout, self.share):
                if is_mount_point(workdir, name):
                    yield from ("--ro-bind", os.path.realpath(source), str(at / name))
        yield from ("--tmpfs", str(local))
        yield from _binds("--ro-bind", [self.git_dir, self.shim])
        for named, how in ((self.read, "--ro-bind"), (self.write, "--bind")):
            for name, source in shared_folders(self.checkout, named):
                if is_mount_point(workdir, name):
                    yield from (how, os.path.realpath(source), str(self.checkout / name))


def _system(etc: Path) -> Iterator[str]:
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
        yield from ("--perms", "1777", "--tmpfs", empty)


def shared_folders(checkout: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the names of folders that are there in the checkout, and where; none of its own."""
    for word in names:
        name = os.path.normpath(word.strip("/") if word.startswith("/") else word)
        first = next(iter(Path(name).parts), "")
        is_within = not Path(word).is_absolute() or not Path(word).exists()
        if first in {"", ".", "..", ".git", ".local", "~"} or not is_within:
            continue
        if (checkout / name).is_dir():
            yield name, checkout / name


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


def _started(argv: Sequence[str]) -> Iterator[str]:
    """Yield the command behind what sets limits from inside, so that they count for it alone.

    A shell starts it, so that a program that is not there ends with 127 in all cases.
    """
    if shutil.which("prlimit", path="/usr/bin:/bin") is not None:
        yield "prlimit"
        for name, number, most in _LIMITS:
            _, hard = resource.getrlimit(number)
            yield f"--{name}={most if hard == resource.RLIM_INFINITY else min(most, hard)}"
        yield "--"
    if argv[0] != "sh":
        yield from ("sh", "-c", 'exec "$@"', "sh")
    yield from argv
