"""Keeps the harness's own repository up to date with the user's."""

from collections.abc import Mapping
from pathlib import Path

from loopctl.disk import machine_errors
from loopctl.errors import GitError, MachineError, RepositoryError
from loopctl.sandbox.checkout import Checkout
from loopctl.sandbox.git import Git, git_words
from loopctl.sandbox.lock import Presence, locked
from loopctl.sandbox.owned import USER_HEAD, Layout, set_up


class Mirror:
    """The user's branches, tags and HEAD in the harness's own repository.

    Args:
        layout: Where that is; set up by the first :meth:`sync`.
        checkout: The user's checkout.
        git: Without a repository.
        own: git on the harness's own repository.
        share: Folders of the checkout that worktrees see.
        env: The caller's environment.
    """

    def __init__(
        self,
        layout: Layout,
        checkout: Checkout,
        *,
        git: Git,
        own: Git,
        share: tuple[str, ...],
        env: Mapping[str, str],
    ) -> None:
        self._layout = layout
        self._checkout = checkout
        self._git = git
        self._own = own
        self._share = share
        self._env = env
        self._presence: Presence | None = None

    @property
    def source(self) -> Path:
        """What is mirrored: the user's checkout."""
        return self._checkout.root

    def sync(self) -> None:
        """Fetch what is new; what is gone there, goes here.

        Raises:
            RepositoryError: The user's repository cannot be read.
            MachineError: ``.local`` cannot be written.
        """
        if self._presence is None:
            what = f"{self._layout.root} could not be set up"
            with machine_errors(what):
                try:
                    self._presence = set_up(
                        self._layout, self._checkout, self._git, self._share, self._env
                    )
                except GitError as error:
                    raise MachineError(f"{what}: {git_words(error)}") from error
        # A worker may have switched its worktree to a branch, which git would not fetch into.
        args = (
            *("fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head"),
            *("--no-auto-maintenance", "--no-recurse-submodules", "--update-head-ok"),
            *("--update-shallow", "--upload-pack=git-upload-pack", str(self.source)),
            *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", f"+HEAD:{USER_HEAD}"),
        )
        try:
            # Of a worktree that is being added git knows a HEAD for a moment that names no commit.
            with (
                machine_errors(f"{self._layout.root} is locked"),
                locked(self._layout.worktree_lock),
            ):
                self._own.having("transfer.fsckObjects=false").ask(*args)
        except GitError as error:
            raise RepositoryError(f"{self.source} could not be read: {git_words(error)}") from error
