"""Snapshots of a worktree in which nothing but contents has changed, without a process.

Which paths belong to a tree, and what attributes make of their contents, is git's to say. It has
said so in the index of the last snapshot; where no path came or went since, no rule file has
changed and no attributes are at work, only the contents of known files are left. libgit2 finds
those by the index, as git itself would, and stores them as they are. In every other case git
looks at the files again.

libgit2 is given a repository of its own, of which only the files are real: its objects are those
of the harness's repository, and no worker can reach its configuration.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopctl.errors import GitError
from loopctl.sandbox.files import write_if_changed
from loopctl.sandbox.git import quoted
from loopctl.sandbox.library import open_repository, writing
from loopctl.sandbox.survey import Survey

if TYPE_CHECKING:
    import pygit2

MOST_CHANGED: Final = 200
MOST_BYTES: Final = 8 << 20
MOST_RULES: Final = 100
_RULES: Final = frozenset({".gitignore", ".gitmodules", ".gitattributes"})


@dataclass(frozen=True, slots=True)
class Outline:
    """What has to be the same for contents to be all that can have changed.

    Attributes:
        paths: Of everything but folders.
        ignores: The contents of the files that say what git ignores, in the order of their paths.
    """

    paths: frozenset[str]
    ignores: tuple[bytes, ...]


def outline(found: Survey) -> Outline | None:
    """Return what a walk has found; ``None`` where more than contents is at stake."""
    if found.nested or found.has_attributes or len(found.ignores) > MOST_RULES:
        return None
    try:
        rules = tuple(Path(path).read_bytes() for path in found.ignores)
    except OSError:
        return None
    return Outline(frozenset(found.files), rules)


class Increment:
    """What is known of a worktree since git last looked at its files; for one thread.

    Args:
        folder: Of its own, with the index that git writes its snapshots with.
        objects: Those of the harness's repository.
        root: Of the worktree.
    """

    def __init__(self, folder: Path, objects: Path, root: Path) -> None:
        self._folder = folder
        self._objects = objects
        self._root = root
        self._opened: pygit2.Repository | None = None
        self._seen: Outline | None = None

    @property
    def index(self) -> Path:
        """The index file."""
        return self._folder / "index"

    def begin(self) -> None:
        """Make the folder, and know nothing: git has to look.

        Raises:
            OSError: It cannot be made.
        """
        self.close()
        (self._folder / "refs").mkdir(parents=True, exist_ok=True)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")
        config = f"[core]\n\tbare = false\n\tfilemode = true\n\tworktree = {quoted(self._root)}\n"
        write_if_changed(self._folder / "config", config.encode("utf-8", "surrogateescape"))
        with contextlib.suppress(FileExistsError):
            (self._folder / "objects").symlink_to(self._objects)

    def close(self) -> None:
        """Let go of all files."""
        self._seen = None
        if self._opened is not None:
            self._opened.free()
            self._opened = None

    def adopt(self, seen: Outline | None) -> str:
        """Return the tree of the index that git has just written, and go on from it.

        Args:
            seen: Before git has looked; ``None`` where it is to look next time too.

        Raises:
            GitError: The tree cannot be written.
        """
        self._seen = None
        with writing("write-tree"):
            if self._opened is None:
                self._opened = open_repository(self._folder)
            self._opened.index.read(False)  # noqa: FBT003 - only where the file is another one
            tree = str(self._opened.index.write_tree())
        self._seen = seen
        return tree

    def tree(self, seen: Outline) -> str | None:
        """Return the tree of the files as they are now; ``None`` where git has to look."""
        known, self._seen = self._seen, None
        if self._opened is None or known != seen:
            return None
        try:
            with writing("write-tree"):
                tree = self._changed_tree(self._opened.index)
        except GitError:
            return None
        self._seen = seen if tree is not None else None
        return tree

    def _changed_tree(self, index: "pygit2.Index") -> str | None:
        from pygit2.enums import DeltaStatus, DiffOption  # noqa: PLC0415

        changed = list(index.diff_to_workdir(DiffOption.IGNORE_SUBMODULES, 0, 0).deltas)
        if len(changed) > MOST_CHANGED:
            return None
        for delta in changed:
            file = delta.new_file
            is_plain = delta.status == DeltaStatus.MODIFIED and file.size <= MOST_BYTES
            if not is_plain or file.path.rpartition("/")[2] in _RULES:
                return None
            index.add(file.path)
        return str(index.write_tree())
