"""The user's uncommitted work: counted, saved below a run, and the run's diff put onto the files.

All of it is done with the harness's own repository and a copy of the user's index: the index
itself, HEAD and the user's configuration are neither written nor obeyed.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loopctl.domain import Sha
from loopctl.errors import GitError, LandingRefusedError, RepositoryError, SandboxError
from loopctl.sandbox.checkout import Checkout
from loopctl.sandbox.git import Git, git_words
from loopctl.sandbox.landing import file_settings
from loopctl.sandbox.leftout import gitlinks
from loopctl.sandbox.objects import Objects, copy_objects
from loopctl.sandbox.survey import refuse_filters
from loopctl.trees import ChangeType

_GITLINK = "160000"
_NOTHING = "000000"
_MESSAGE = "Uncommitted changes of the checkout, taken below a run"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """How many files of the checkout are no part of its HEAD."""

    changed: int
    untracked: int


class CheckoutFiles:
    """The files of the user's checkout.

    Args:
        checkout: As it is now.
        own: git on the harness's own repository.
        objects: The same repository; holds the checkout's HEAD.
        env: The caller's environment, for the user's own settings of line endings.
        scratch: Where the index is copied to; private.
    """

    def __init__(
        self,
        checkout: Checkout,
        own: Git,
        objects: Objects,
        env: Mapping[str, str],
        scratch: Path,
    ) -> None:
        self._checkout = checkout
        self._own = own
        self._objects = objects
        self._users = own.on_users(checkout.git_dir)
        self._settings = file_settings(self._users, env)
        self._scratch = scratch

    def uncommitted(self, *, leaving_out: str = "") -> Uncommitted:
        """Return how many files the checkout has beyond its HEAD.

        Args:
            leaving_out: A path, with slashes, that does not count.
        """
        left_out = leaving_out.encode(errors="surrogateescape")
        with self._copied_index() as git:
            git.run("update-index", "-q", "--refresh")
            # Whether a submodule's own files have changed, git would ask the git in there.
            only = ("--name-only", "-z", "--ignore-submodules=dirty")
            changed = git.ask("diff-index", *only, self._checkout.head)
            untracked = git.ask("ls-files", "--others", "--exclude-standard", "-z")
        return Uncommitted(
            *(
                sum(path not in {b"", left_out} for path in listed.split(b"\0"))
                for listed in (changed, untracked)
            )
        )

    def snapshot(self) -> Sha:
        """Return a commit of the files as they are; HEAD itself where nothing is uncommitted.

        Raises:
            RepositoryError: They cannot be saved (a merge is under way, a file needs a filter).
        """
        with self._copied_index() as git:
            tree = self._tree(git)
        if tree == self._objects.tree_of(self._checkout.head):
            return self._checkout.head
        return self._objects.commit(tree, self._checkout.head, _MESSAGE)

    def apply(self, base_tree: str, tree: str, expected_tree: str) -> None:
        """Put the diff from ``base_tree`` to ``tree`` onto the files; index and HEAD stay.

        Args:
            base_tree: What the run has begun from.
            tree: What it has made of that.
            expected_tree: What the files were when they were taken.

        Raises:
            LandingRefusedError: A file of the diff has changed since, or an ignored one is in its
                way; no file was changed.
        """
        with self._copied_index() as git:
            now = self._tree(git)
            touched = {change.path for change in self._objects.changes(base_tree, tree)}
            moved = {change.path for change in self._objects.changes(expected_tree, now)}
            if clash := sorted(touched & moved):
                more = f" and {len(clash) - _SHOWN} more" if len(clash) > _SHOWN else ""
                raise LandingRefusedError(
                    f"changed since the run took them: {', '.join(clash[:_SHOWN])}{more}; "
                    "commit or stash your changes, and merge the integration branch by hand"
                )
            carried = self._objects.carry(base_tree, tree, now)
            if carried.tree is None:
                raise LandingRefusedError(f"the run's diff does not apply: {carried.detail}")
            self._refuse_obstacles(now, carried.tree)
            try:
                git.ask("read-tree", "-m", "-u", now, carried.tree)
            except GitError as error:
                raise LandingRefusedError(
                    f"the files cannot take the run's diff: {git_words(error)}"
                ) from error

    def _refuse_obstacles(self, now: str, target: str) -> None:
        """Make sure that no ignored file stands where a new one goes: git would overwrite it."""
        changes = self._objects.changes(now, target)
        gone = {change.path for change in changes if change.type is ChangeType.DELETED}
        for change in changes:
            if change.type is not ChangeType.ADDED:
                continue
            place = self._checkout.root / change.path
            parents = [
                parent
                for parent in place.relative_to(self._checkout.root).parents
                if str(parent) not in gone
            ]
            blocked = [p for p in parents if _is_no_folder(self._checkout.root / p)]
            if blocked or os.path.lexists(place):
                raise LandingRefusedError(
                    f"{blocked[0] if blocked else change.path} is in the way of the run's diff; "
                    "move it elsewhere and run `loop land` again"
                )

    @contextmanager
    def _copied_index(self) -> Iterator[Git]:
        with tempfile.TemporaryDirectory(dir=self._scratch, prefix="wip-") as folder:
            index = Path(folder, "index")
            git = self._own.at(self._own_dir(), self._checkout.root, index)
            git = git.having(*self._settings)
            source = self._checkout.git_dir / "index"
            if any(self._checkout.git_dir.glob("sharedindex.*")):
                # Half of a split index is in another file, which is looked for beside HEAD.
                git.ask("read-tree", self._checkout.head)
            elif source.exists():
                shutil.copyfile(source, index)
            yield git

    def _own_dir(self) -> Path:
        assert self._own.git_dir is not None  # noqa: S101 - for the type checker: made with one
        return self._own.git_dir

    def _tree(self, git: Git) -> str:
        try:
            if git.ask("ls-files", "--unmerged"):
                raise RepositoryError(
                    f"{self._checkout.root} has unmerged files; finish the merge first"
                )
            _pass_submodules_by(git)
            objects = self._checkout.common_dir / "objects"
            # What is staged may be in the user's repository alone.
            git.having(GIT_ALTERNATE_OBJECT_DIRECTORIES=_quoted(objects)).ask("add", "--all")
            self._take_staged(git)
            refuse_filters(git, self._checkout.head)
            return git.line("write-tree")
        except (GitError, SandboxError) as error:
            said = git_words(error) if isinstance(error, GitError) else str(error)
            raise RepositoryError(f"uncommitted changes cannot be taken along: {said}") from error

    def _take_staged(self, git: Git) -> None:
        """Bring staged content here, and leave repositories within the checkout as in HEAD."""
        said = git.ask(
            *("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames"),
            *("--ignore-submodules=none", self._checkout.head),
        )
        fields = said.split(b"\0")
        blobs: list[str] = []
        links: list[bytes] = []
        for meta, path in zip(fields[::2], fields[1::2], strict=False):
            old_mode, new_mode, old, new = meta.decode().removeprefix(":").split(" ")[:4]
            if _GITLINK in {old_mode, new_mode}:
                was_link = old_mode == _GITLINK
                links.append(f"{old_mode if was_link else '0'} {old}\t".encode() + path)
            elif new_mode != _NOTHING:
                blobs.append(new)
        if links:
            git.ask("update-index", "-z", "--index-info", stdin=b"\0".join([*links, b""]))
        missing = [name for name, here in self._objects.has(blobs).items() if not here]
        if missing:
            copy_objects(self._users, self._own, missing, (), self._scratch)


def _pass_submodules_by(git: Git) -> None:
    """Have git not look into submodules: what it starts in there obeys their configuration."""
    if links := gitlinks(git):
        paths = b"".join(path + b"\0" for path in links)
        git.ask("update-index", "--skip-worktree", "-z", "--stdin", stdin=paths)


def _is_no_folder(path: Path) -> bool:
    return path.is_symlink() or (path.exists() and not path.is_dir())


def _quoted(path: Path) -> str:
    # As git reads it: a name in quotes may hold the colon that parts the list.
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
