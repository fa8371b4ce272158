"""Confinement by bubblewrap: own namespaces, and only what a command needs of the files.

The worktree stands at the path of the user's checkout, so that editable installs, absolute paths
and caches lead to it and not to the user's files. Of ``.local`` there is the harness's own
repository, read-only, and what the step writes to.

Both ``--cap-drop ALL`` and ``--disable-userns`` are needed: root keeps its capabilities otherwise,
and could unmount what is read-only.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopctl.sandbox.confine import places

_NAMESPACES: Final = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"),
    *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL"),
    *("--die-with-parent", "--new-session", "--hostname", "sandbox"),
)
_LIMITS: Final = ("--core=0", "--nofile=65536", "--nproc=4096", f"--fsize={16 << 30}")
_NOT_FOUND: Final = re.compile(rb"(?:^|: |line \d+: )([\w.+-]+): (?:command )?not found", re.MULTILINE)
_START: Final = ("sh", "-c", 'exec "$@"', "sh")
"""A program that is not there ends as in any shell, with 127."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Implements :class:`loopctl.ports.Confinement`.

    Attributes:
        program: ``bwrap``.
        checkout: The user's checkout; never mounted itself, but for ``share``.
        git_dir: The harness's own repository.
        shim: The folder that holds ``loop`` for commands.
        env: The caller's environment.
        home: The caller's home folder.
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
    home: Path
    own: tuple[Path, ...] = ()
    share: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    _fixed: list[str] = field(default_factory=list, init=False, repr=False)

    @property
    def is_holding(self) -> bool:
        """Commands are held."""
        return True

    def inside(self, workdir: Path) -> Path:
        """Return where a worktree stands for its commands."""
        del workdir
        return self.checkout

    def wrap(self, argv: Sequence[str], *, workdir: Path, writable: Sequence[Path]) -> list[str]:
        """Return the command line that runs ``argv`` confined."""
        if not self._fixed:
            self._fixed.extend(self._everywhere())
        return [
            *(self.program, *_NAMESPACES, *self._fixed),
            *self._worktree(workdir),
            *_binds("--bind", writable),
            *("--chdir", str(self.checkout), "--"),
            *_limited(),
            *_START,
            *argv,
        ]

    def lacks(self, output: bytes) -> str:
        """Return which program a command did not find that the machine has, and how to show it."""
        for found in _NOT_FOUND.finditer(output[-4096:]):
            name = found[1].decode(errors="replace")
            place = shutil.which(name, path=self.env.get("PATH"))
            if place is not None:
                folder = Path(os.path.realpath(place)).parent
                return (
                    f"{name} is there as {place}, but not inside the sandbox; "
                    f'name what it needs in [sandbox] read, as read = ["{folder}"]'
                )
        return ""

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        net = "with the network" if self.network else "without network"
        return f"bubblewrap, {net}"

    def _everywhere(self) -> Iterator[str]:
        """Yield the options that are the same for each command of a run."""
        if not self.network:
            yield "--unshare-net"
        for root in places.SYSTEM:
            if Path(root).is_symlink():
                yield from ("--symlink", str(Path(root).readlink()), root)
            elif Path(root).is_dir():
                yield from ("--ro-bind", root, root)
        for name in places.ETC:
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        yield from ("--proc", "/proc", "--dev", "/dev")
        for empty in ("/tmp", "/var/tmp", "/run", "/dev/shm"):  # noqa: S108 - mounted empty
            yield from ("--tmpfs", empty)
        known = places.readable(self.env, self.home, self.own)
        named = tuple(self._named(self.read))
        written = tuple(self._named(self.write))
        shown = [place for place in known if not self._is_in_checkout(place)]
        yield from _binds("--ro-bind", places.outermost([*shown, *named]))
        yield from _binds("--bind", written)
        for key in places.keys_below([*shown, *named, *written], self.home):
            if key.is_dir():
                yield from ("--tmpfs", str(key))
            elif key.is_file():
                yield from ("--ro-bind", os.devnull, str(key))

    def _named(self, words: Sequence[str]) -> Iterator[Path]:
        for word in words:
            place = self.home / word[2:] if word.startswith("~/") else Path(self.checkout, word)
            if place.exists():
                yield place

    def _is_in_checkout(self, place: Path) -> bool:
        return place == self.checkout or self.checkout in place.parents

    def _worktree(self, workdir: Path) -> Iterator[str]:
        """Yield what puts the worktree in the checkout's place."""
        yield from ("--bind", str(workdir), str(self.checkout))
        yield from ("--ro-bind", str(workdir / ".git"), str(self.checkout / ".git"))
        for name in self.share:
            source, own = self.checkout / name, workdir / name
            is_free = own.is_dir() and not own.is_symlink()
            if source.is_dir() and is_free:
                yield from ("--ro-bind", os.path.realpath(source), str(source))
        local = self.checkout / ".local"
        yield from ("--tmpfs", str(local))
        yield from _binds("--ro-bind", [self.git_dir, self.shim])


def _binds(how: str, folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        yield from (how, str(folder), str(folder))


def _limited() -> tuple[str, ...]:
    """Return what sets limits from inside, so that they count for the sandbox alone."""
    return ("prlimit", *_LIMITS, "--") if shutil.which("prlimit", path="/usr/bin:/bin") else ()
