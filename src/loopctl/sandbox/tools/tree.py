"""Files below one folder, and nothing outside of it: every path is walked folder by folder.

Each folder on the way is opened relative to the one before it, never through a symbolic link of
the system's choosing. Links are read and followed here, so that one that leaves is refused, also
when it is put there in the middle of a walk.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from loopctl.errors import SandboxError
from loopctl.sandbox.tools.tool import RefusalError

MAX_READ_BYTES: Final = 16 << 20
"""Of a file that is read; more than the kept output of a command can have."""

MAX_WRITE_BYTES: Final = 4 << 20
"""Of a file that is written or edited."""

_LINKS: Final = 40
_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_MODE: Final = 0o644
# What some file systems leave out of a name: git takes what is left for its own folder.
_UNSEEN: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_GITS: Final = frozenset({".git", "git~1"})
_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: a name in an open folder, never a link.

    Attributes:
        folder: A descriptor, good as long as the walk is open.
        name: In that folder; ``.`` for the folder itself.
        path: Relative to the root, links resolved; ``.`` for the root.
        found: What is there; ``None`` where nothing is.
    """

    folder: int
    name: str
    path: str
    found: os.stat_result | None


class Tree:
    """The files below ``root``.

    Args:
        root: Not followed where it is a link itself.
        label: What error messages call it: ``the worktree``.
    """

    def __init__(self, root: Path, label: str) -> None:
        self.root = root
        self._label = label
        self._spellings = tuple(dict.fromkeys((root, Path(os.path.realpath(root)))))

    def holds(self, path: str) -> bool:
        """Return whether ``path`` is absolute and leads here by its words."""
        return any(PurePosixPath(path).is_relative_to(one) for one in self._spellings)

    def read(self, path: str, limit: int = MAX_READ_BYTES) -> tuple[bytes, int]:
        """Return a file's content and mode.

        Raises:
            RefusalError: It is no ordinary file of at most ``limit`` bytes, or not in here.
            SandboxError: The root is gone.
            OSError: It cannot be read.
        """
        with self.walk(path) as place:
            _require_file(path, place.found)
            descriptor = os.open(place.name, _READ, dir_fd=place.folder)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                _require_file(path, status)
                content = file.read(limit + 1)
        if len(content) > limit:
            size = max(status.st_size, len(content))
            raise RefusalError(f"{path} has {size} bytes, more than the {limit} that are taken")
        return content, stat.S_IMODE(status.st_mode)

    def write(
        self, path: str, content: bytes, mode: int | None = None, *, limit: int = MAX_WRITE_BYTES
    ) -> bool:
        """Make ``content`` what a file holds, all or nothing; missing folders are made.

        A file that is there keeps its mode unless ``mode`` is given. It is replaced, not written
        to: what else has it open or linked keeps the old content.

        Returns:
            Whether the file is new.

        Raises:
            RefusalError: Something else than an ordinary file is there, the content is too large,
                or the path is not in here.
            SandboxError: The root is gone.
            OSError: It cannot be written.
        """
        if len(content) > limit:
            raise RefusalError(
                f"{path} would have {len(content)} bytes, more than the {limit} that are written "
                "at once"
            )
        with self.walk(path, make=True) as place:
            if place.found is not None:
                _require_file(path, place.found)
                mode = mode if mode is not None else stat.S_IMODE(place.found.st_mode)
            _replace(place, content, (_NEW_MODE if mode is None else mode) & 0o777)
            return place.found is None

    def remove(self, path: str) -> None:
        """Remove an ordinary file.

        Raises:
            RefusalError: It is none, or not in here.
            SandboxError: The root is gone.
            OSError: It cannot be removed.
        """
        with self.walk(path) as place:
            _require_file(path, place.found)
            os.unlink(place.name, dir_fd=place.folder)

    @contextlib.contextmanager
    def walk(self, path: str, *, make: bool = False) -> Iterator[Place]:
        """Yield where ``path`` leads, its folder open until the end.

        Args:
            path: Relative to the root, or absolute and below it.
            make: Missing folders on the way are made.

        Raises:
            RefusalError: It leads out of here or into git's own folder, or a folder on the way
                is missing or is none.
            SandboxError: The root is gone.
        """
        with contextlib.ExitStack() as opened:
            yield _Walk(self._open_root(opened), path, self._label, opened).go(
                self._parts(path), self._spellings, make=make
            )

    def _open_root(self, opened: contextlib.ExitStack) -> int:
        try:
            return _held(opened, os.open(self.root, _FOLDER))
        except OSError as error:
            raise SandboxError(
                f"{self._label} is gone ({self.root}); something has removed it"
            ) from error

    def _parts(self, path: str) -> list[str]:
        if not path or "\0" in path:
            raise RefusalError("a path is needed, without a NUL character")
        pure = PurePosixPath(path)
        if pure.is_absolute():
            below = _below(pure, self._spellings)
            if below is None:
                raise RefusalError(f"{path} is outside of {self._label}; use a path relative to it")
            pure = below
        if ".." in pure.parts:
            raise RefusalError(f"{path} has '..' in it; name the file from the top of the worktree")
        return list(pure.parts)


class _Walk:
    """One walk; keeps the folders from the root to where it is open."""

    def __init__(self, root: int, path: str, label: str, opened: contextlib.ExitStack) -> None:
        self._path = path
        self._label = label
        self._opened = opened
        self._folders = [root]
        self._names: list[str] = []
        self._links = 0

    def go(self, parts: list[str], roots: Sequence[Path], *, make: bool) -> Place:
        """Return where the parts lead."""
        left = deque(parts)
        while left:
            name = left.popleft()
            if name == "..":
                self._leave_folder()
                continue
            self._refuse_git(name)
            found = self._look(name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                left.extendleft(reversed(self._follow(name, roots)))
            elif left:
                self._enter(name, found, make=make)
            else:
                path = "/".join([*self._names, name])
                return Place(self._folders[-1], name, path, found)
        path = "/".join(self._names) or "."
        return Place(self._folders[-1], ".", path, os.fstat(self._folders[-1]))

    def _look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._folders[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _follow(self, name: str, roots: Sequence[Path]) -> tuple[str, ...]:
        self._links += 1
        if self._links > _LINKS:
            raise RefusalError(f"{self._path} goes through too many symbolic links")
        target = PurePosixPath(os.readlink(name, dir_fd=self._folders[-1]))
        if target.is_absolute():
            below = _below(target, roots)
            if below is None:
                raise self._leaves(target)
            target = below
            del self._folders[1:], self._names[:]
        return target.parts

    def _leave_folder(self) -> None:
        if not self._names:
            raise self._leaves("..")
        self._folders.pop()
        self._names.pop()

    def _enter(self, name: str, found: os.stat_result | None, *, make: bool) -> None:
        where = "/".join([*self._names, name])
        if found is None:
            if not make:
                raise RefusalError(f"{self._path} does not exist: there is no folder {where}")
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folders[-1])
        elif not stat.S_ISDIR(found.st_mode):
            raise RefusalError(f"{self._path} does not exist: {where} is no folder")
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=self._folders[-1])
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise RefusalError(f"{where} was changed meanwhile; try again") from error
            raise
        self._folders.append(_held(self._opened, descriptor))
        self._names.append(name)

    def _refuse_git(self, name: str) -> None:
        plain = _UNSEEN.sub("", name).casefold().partition(":")[0].rstrip(" .")
        if plain in _GITS:
            raise RefusalError(f"{self._path}: git's own folder is not to be read or written")

    def _leaves(self, target: object) -> RefusalError:
        return RefusalError(
            f"{self._path} leads out of {self._label} by a symbolic link (to {target})"
        )


def _held(opened: contextlib.ExitStack, descriptor: int) -> int:
    opened.callback(os.close, descriptor)
    return descriptor


def _below(path: PurePosixPath, roots: Sequence[Path]) -> PurePosixPath | None:
    for root in roots:
        with contextlib.suppress(ValueError):
            return path.relative_to(root)
    return None


def _require_file(path: str, found: os.stat_result | None) -> None:
    if found is None:
        raise RefusalError(f"{path} does not exist")
    if stat.S_ISDIR(found.st_mode):
        raise RefusalError(f"{path} is a folder; bash can list it")
    for is_kind, words in _KINDS:
        if is_kind(found.st_mode):
            raise RefusalError(f"{path} is {words}, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise RefusalError(f"{path} is no ordinary file")


def _replace(place: Place, content: bytes, mode: int) -> None:
    fresh = f".loop-{secrets.token_hex(8)}.new"
    descriptor = os.open(fresh, _NEW, 0o600, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
        os.rename(fresh, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(fresh, dir_fd=place.folder)
        raise
