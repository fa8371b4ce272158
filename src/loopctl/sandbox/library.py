"""libgit2 on repositories of the harness's own: writes objects and refs without a process.

A step keeps a tree, a commit and a ref. What goes into a tree is git's to say; writing down what
it has said needs no judgment, and is three processes less for each step. libgit2 runs no hook,
filter, signer or helper, and reads no configuration here but what the harness has written.

It is imported when the first object is written, since that takes about as long as a step.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopctl import failpoints
from loopctl.errors import GitError
from loopctl.sandbox.git import COMMITTER, COMMITTER_EMAIL

if TYPE_CHECKING:
    import pygit2

_SHA1_DIGITS: Final = 40
_FAILED: Final = 128


def can_write(name: str) -> bool:
    """Return whether objects with such ids can be written: those of SHA-256 cannot."""
    return len(name) == _SHA1_DIGITS


class Library:
    """The objects and refs of the harness's repository; threads may share it.

    Args:
        git_dir: The repository. It is opened when it is needed first.
    """

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._lock = threading.Lock()
        self._opened: pygit2.Repository | None = None

    def commit(self, tree: str, parent: str, message: bytes) -> str:
        """Return the id of a new commit.

        Raises:
            GitError: It cannot be written.
        """
        import pygit2  # noqa: PLC0415 - see above

        with self._repository("commit-tree") as repository:
            who = pygit2.Signature(COMMITTER, COMMITTER_EMAIL)
            oids = pygit2.Oid(hex=tree), [pygit2.Oid(hex=parent)]
            text = message if message.endswith(b"\n") else message + b"\n"
            return str(repository.create_commit(None, who, who, text, *oids))

    def point(self, ref: str, commit: str) -> None:
        """Point ``ref`` at ``commit``, wherever it points now.

        Raises:
            GitError: It cannot be moved.
        """
        import pygit2  # noqa: PLC0415

        with self._repository("update-ref") as repository:
            repository.references.create(ref, pygit2.Oid(hex=commit), force=True)

    @contextlib.contextmanager
    def _repository(self, what: str) -> Iterator["pygit2.Repository"]:
        with self._lock, writing(what):
            if self._opened is None:
                self._opened = open_repository(self._git_dir)
            yield self._opened


@contextlib.contextmanager
def writing(what: str) -> Iterator[None]:
    """Pass the crash points around one write, and say in git's manner what went wrong.

    Args:
        what: The git command that would do the same.

    Raises:
        GitError: What libgit2 says where it cannot be done.
    """
    import pygit2  # noqa: PLC0415

    failpoints.reach(f"library.before_{what}")
    try:
        yield
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        raise GitError((what,), _FAILED, str(error)) from error
    failpoints.reach(f"library.after_{what}")


def open_repository(folder: Path) -> "pygit2.Repository":
    """Return a repository that the harness has made, read by its own configuration alone."""
    import pygit2  # noqa: PLC0415
    from pygit2.enums import ConfigLevel, Option, RepositoryOpenFlag  # noqa: PLC0415

    for level in (
        ConfigLevel.PROGRAMDATA,
        ConfigLevel.SYSTEM,
        ConfigLevel.XDG,
        ConfigLevel.GLOBAL,
    ):
        pygit2.settings.search_path[level] = ""
    # It may belong to another account, as with root in a container.
    pygit2.option(Option.SET_OWNER_VALIDATION, False)  # noqa: FBT003
    # git wrote the objects before it named them in the index; looking for each takes long.
    pygit2.option(Option.ENABLE_STRICT_OBJECT_CREATION, False)  # noqa: FBT003
    # What was written is there after a power cut too, as with git's own core.fsync.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)  # noqa: FBT003
    return pygit2.Repository(str(folder), RepositoryOpenFlag.NO_SEARCH)
