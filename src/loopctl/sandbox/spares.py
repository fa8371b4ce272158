"""Worktrees that workers are done with, kept for the next one: cleaned instead of made anew.

Writing the files is most of what a worktree of many files costs. One that was closed lies in the
trash as it was left; who takes it removes all that its index does not hold, and git writes what
differs. A gate's worktree is never one of these: what a worker did to its files ends with them.
"""

import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.errors import SandboxError
from loopctl.sandbox.files import remove_tree
from loopctl.sandbox.survey import entries

MOST: Final = 4
"""So many are kept; more are at work side by side only where somebody asked for many jobs."""

_FILE: Final = "100644"
_PROGRAM: Final = "100755"
_LINK: Final = "120000"
_RULES: Final = ".gitattributes"


class Spares:
    """Folders of the trash that hold a closed worktree; safe for several threads."""

    def __init__(self) -> None:
        self._folders: deque[Path] = deque()
        self._lock = threading.Lock()
        self._is_open = True

    def offer(self, folder: Path) -> bool:
        """Keep a folder for whoever comes next; say whether there is room for it."""
        with self._lock:
            if not self._is_open or len(self._folders) >= MOST:
                return False
            self._folders.append(folder)
            return True

    def take(self) -> Path | None:
        """Return a folder, which is the caller's from now on; ``None`` where there is none."""
        with self._lock:
            return self._folders.pop() if self._folders else None

    def drain(self, *, is_last: bool = True) -> None:
        """Remove all folders.

        Args:
            is_last: None is kept from now on.
        """
        with self._lock:
            self._is_open = self._is_open and not is_last
            left, self._folders = self._folders, deque()
        for folder in left:
            remove_tree(folder)


@dataclass(frozen=True, slots=True)
class Modes:
    """How what git makes here can be read and written.

    Attributes:
        umask: Of this process, which git inherits.
    """

    umask: int

    @property
    def folder(self) -> int:
        """Of a folder."""
        return 0o777 & ~self.umask

    def of(self, mode: str) -> int:
        """Return the permissions of a file with that mode in a tree."""
        return (0o777 if mode == _PROGRAM else 0o666) & ~self.umask


def modes(folder: Path) -> Modes:
    """Return the modes that new files have, by making a folder.

    Asking for the umask would change it for a moment, also for other threads.
    """
    probe = folder / "probe"
    probe.mkdir()
    found = stat.S_IMODE(probe.stat().st_mode)
    probe.rmdir()
    return Modes(0o777 & ~found)


def parse_index(listing: bytes) -> Mapping[str, str]:
    """Return the mode of each path, from what ``git ls-files --stage -z`` printed.

    Raises:
        SandboxError: Its files cannot be told from its index: there are submodules, conflicts, or
            attributes, by which files are more than what the index knows.
    """
    found: dict[str, str] = {}
    for line in filter(None, os.fsdecode(listing).split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, number = facts.split(" ")
        if mode not in {_FILE, _PROGRAM, _LINK} or number != "0" or is_rules(path):
            raise SandboxError(f"{path} keeps a worktree from being used again")
        found[path] = mode
    return found


def is_rules(path: str) -> bool:
    """Return whether a file says what becomes of others when they are written."""
    return path.rpartition("/")[2].casefold() == _RULES


def scour(root: Path, known: Mapping[str, str], made: Modes) -> None:
    """Remove from a worktree what is not in ``known`` or is not as git makes it.

    Contents are not looked at: git finds by its index which ones are others. What is removed
    although it is known, git writes anew.

    Args:
        root: Of the worktree.
        known: The mode of each path.
        made: What git gives to new files here.

    Raises:
        SandboxError: Something is mounted there.
        OSError: Something cannot be removed.
    """
    folders = _folders(known)
    device = root.lstat().st_dev
    root.chmod(made.folder)
    waiting = [(str(root), "")]
    while waiting:
        folder, above = waiting.pop()
        for entry in entries(folder):
            path = above + entry.name
            found = entry.stat(follow_symlinks=False)
            if found.st_dev != device:
                raise SandboxError(f"another file system is mounted at {entry.path}")
            if stat.S_ISDIR(found.st_mode) and path in folders and not _has_labels(entry.path):
                if stat.S_IMODE(found.st_mode) != made.folder:
                    Path(entry.path).chmod(made.folder)
                waiting.append((entry.path, f"{path}/"))
            elif not _is_as_made(entry.path, found, known.get(path), made):
                _remove(Path(entry.path))


def _folders(paths: Iterable[str]) -> set[str]:
    """Return the folders that hold the paths, at any depth."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _remove(place: Path) -> None:
    remove_tree(place)
    if os.path.lexists(place):
        raise SandboxError(f"{place} cannot be removed")


def _has_labels(place: str) -> bool:
    """Return whether a file has attributes beside its mode, like a list of who may read it."""
    if sys.platform != "linux":
        return False
    with suppress(OSError):
        labels = os.listxattr(place, follow_symlinks=False)
        return any(not label.startswith("security.") for label in labels)
    return False


def _is_as_made(place: str, found: os.stat_result, mode: str | None, made: Modes) -> bool:
    if mode is None or found.st_nlink != 1 or _has_labels(place):
        return False
    if mode == _LINK:
        return stat.S_ISLNK(found.st_mode)
    return stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == made.of(mode)
