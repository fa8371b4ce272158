"""The harness's own repository beside the user's: what the engine sees of git."""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from loopctl.domain import Sha
from loopctl.errors import RepositoryError, SandboxError
from loopctl.ports import Confinement
from loopctl.records import Carried, Landed, Rescued
from loopctl.redaction import Redactor
from loopctl.sandbox import proctree
from loopctl.sandbox.branch import IntegrationBranch
from loopctl.sandbox.checkout import Checkout, inspect
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.git import Git
from loopctl.sandbox.landing import FastForward, fast_forward
from loopctl.sandbox.leftovers import Leftover, leftovers, names
from loopctl.sandbox.library import Library
from loopctl.sandbox.mirror import Mirror
from loopctl.sandbox.objects import KEPT, Objects
from loopctl.sandbox.owned import USER_HEAD, Layout, config_text, global_config
from loopctl.sandbox.wip import CheckoutFiles, Uncommitted
from loopctl.sandbox.worktree import Surroundings, Worktree
from loopctl.trees import Change, TreeFile

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


class OwnedRepository:
    """The harness's own repository ``.local/git/`` of one checkout.

    Making one looks at the user's repository and changes nothing; :meth:`sync`, which comes before
    all other work, sets up ``.local/``.

    Args:
        checkout: The root of the user's checkout.
        local: ``.local`` in it.
        branch: The integration branch, without ``refs/heads/``.
        share: Folders of the checkout that worktrees see.
        env: The caller's environment.
        cancel: Ends the commands of all sandboxes when set; git calls go on, so that what was
            done can still be saved.
        confinement: What keeps commands inside; nothing where ``None``.

    Raises:
        RepositoryError: The user's repository cannot be worked on; says why.
        MachineError: git is missing or too old.
    """

    def __init__(
        self,
        checkout: Path,
        local: Path,
        *,
        branch: str,
        share: tuple[str, ...] = (),
        env: Mapping[str, str],
        cancel: threading.Event | None = None,
        confinement: Confinement | None = None,
        redact: Redactor | None = None,
    ) -> None:
        path = env.get("PATH", "")
        self._env = env
        self._layout = Layout(local)
        self._checkout = inspect(checkout, path)
        trusted = global_config(self._layout, self._checkout)
        plain = Git(path, self._layout.global_config, global_content=trusted)
        self._own = plain.at(self._layout.git_dir).keeping(config_text(self._checkout.head))
        self._users = plain.on_users(self._checkout.common_dir)
        self._objects = Objects(self._own, Library(self._layout.git_dir), local)
        self._mirror = Mirror(
            self._layout, self._checkout, git=plain, own=self._own, share=share, env=env
        )
        self._branch = IntegrationBranch(
            self._own, self._users, self._objects, branch, self._layout.landing, self._mirror.sync
        )
        self._around = Surroundings(
            layout=self._layout,
            checkout=checkout,
            git=self._own,
            objects=self._objects,
            share=share,
            env=env,
            confinement=confinement or Unconfined(),
            cancel=cancel,
            redact=redact or Redactor(env),
        )

    @property
    def checkout(self) -> Checkout:
        """The user's checkout as it was when this was made."""
        return self._checkout

    @property
    def confinement(self) -> Confinement:
        """What keeps commands inside."""
        return self._around.confinement

    def before_close(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` told the name of each sandbox that is about to be closed."""
        self._around.before_close.append(listener)

    def sync(self) -> None:
        """Fetch the user's branches and tags into the harness's own repository."""
        self._mirror.sync()

    def head(self) -> Sha:
        """Return the commit of the user's HEAD as of the last :meth:`sync`."""
        return Sha(self._own.line("rev-parse", "--verify", f"{USER_HEAD}^{{commit}}"))

    def integration(self) -> Sha | None:
        """Return the commit of the integration branch in the user's repository now."""
        return self._branch.tip()

    def prepare_branch(self) -> tuple[Sha, str]:
        """Return the commit that a run starts from, and what there is to say about it.

        Raises:
            RepositoryError: The integration branch and HEAD have diverged.
            LandingRefusedError: It is checked out somewhere and has to be moved up to HEAD.
        """
        return self._branch.prepare(self.head())

    def tree_of(self, commit: str) -> str:
        """Return the tree id of a commit."""
        return self._objects.tree_of(commit)

    def open_sandbox(
        self, name: str, base: Sha, tree: str | None = None, *, rescue_ref: str = ""
    ) -> Worktree:
        """Return a new worktree of ``base``, its files those of ``tree`` where one is given.

        A worktree of that name is removed first, unless it holds what no ref keeps yet.

        Args:
            name: Unique in the repository.
            base: A commit.
            tree: Instead of that of ``base``.
            rescue_ref: Where the sandbox is a worker's: the ref (below ``refs/loop/``) under which
                its files are saved when a step is cut short. A number is added where it is taken.

        Raises:
            SandboxError: It could not be made; says why.
        """
        if not _NAME.fullmatch(name) or name.endswith((".lock", ".")) or ".." in name:
            raise SandboxError(
                f"{name!r} is no name for a sandbox; use letters, digits, '.', '_' and '-'"
            )
        sandbox = Worktree(self._around, name, base, rescue_ref)
        left = sandbox.rescue()
        if not left.is_complete:
            raise SandboxError(
                f"{left.folder} holds what an earlier step has made and what could not be saved "
                f"({left.why}); move it elsewhere and run the command again"
            )
        try:
            sandbox.create(tree or base)
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def drain(self) -> None:
        """Remove the worktrees that are kept for those to come; none is kept from now on."""
        self._around.spares.drain()

    def leftovers(self) -> tuple[Leftover, ...]:
        """Return what dead processes have left of sandboxes; nobody may be at work meanwhile."""
        return leftovers(self._layout)

    def rescue_leftovers(self) -> tuple[Rescued, ...]:
        """Save what dead processes have left in worktrees, and remove all that was theirs.

        Nobody else may work on the repository meanwhile. What cannot be saved stays.

        Returns:
            One entry for each worktree whose files hold something new.
        """
        self.sync()
        left = names(self._layout)
        if left:
            # What still runs in them would go on writing.
            proctree.end_strays()
        found = []
        for name in left:
            sandbox = Worktree(self._around, name, self.head())
            found.append(sandbox.rescue())
            sandbox.close()
        return tuple(rescued for rescued in found if rescued != Rescued())

    def keep(self, ref: str, tree: str, base: Sha, message: str) -> Sha:
        """Commit ``tree`` on ``base`` and point ``ref`` (below ``refs/loop/``) at it."""
        return self._objects.keep(ref, tree, base, message)

    def kept(self, prefix: str = KEPT) -> Mapping[str, Sha]:
        """Return the refs that keep trees, with their commits."""
        return self._objects.kept(prefix)

    def kept_trees(self) -> Mapping[str, tuple[str, Sha]]:
        """Return for each ref that keeps a tree that tree, and the commit that it builds on."""
        return self._objects.kept_trees()

    def drop(self, ref: str) -> None:
        """Forget a kept tree."""
        self._objects.drop(ref)

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return what differs between two trees, by path; renames are two changes."""
        return self._objects.changes(old, new)

    def changed_lines(self, old: str, new: str) -> int:
        """Return the number of added and removed lines; a binary file counts as one."""
        return self._objects.changed_lines(old, new)

    def messages(self, tip: Sha, count: int) -> tuple[tuple[str, str], ...]:
        """Return ids and messages of the newest commits, the newest first, merges left out."""
        return self._objects.messages(tip, count)

    def patch(self, commit: str) -> str:
        """Return what a commit changed, as a patch without context and without prefixes."""
        return self._objects.patch(commit)

    def read_blob(self, tree: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return at most ``limit`` bytes of a file of a tree; ``None`` where there is none."""
        return self._objects.read_blob(tree, path, limit)

    def files(self, tree: str) -> tuple[TreeFile, ...]:
        """Return the regular files of a tree by path; no links, nothing of submodules."""
        return self._objects.files(tree)

    def read_blobs(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return the whole contents of several blobs in one go; one that is missing is left out."""
        return self._objects.read_blobs(blobs)

    def carry(self, base: str, tree: str, onto: str) -> Carried:
        """Return the diff from ``base`` to ``tree`` applied to the tree of ``onto``."""
        return self._objects.carry(base, tree, onto)

    def overlaid(self, tree: str, changes: Sequence[Change]) -> str:
        """Return a tree that has the files of ``tree``, and over them the new side of changes."""
        return self._objects.overlaid(tree, changes)

    def commit(self, tree: str, parent: Sha, message: str) -> Sha:
        """Return a new commit in the harness's own repository."""
        return self._objects.commit(tree, parent, message)

    def advance(self, new: Sha, old: Sha | None) -> None:
        """Move the integration branch of the user's repository from ``old`` to ``new``.

        Raises:
            LandingRefusedError: It is not at ``old`` any more, is checked out somewhere, the move
                is no fast-forward, or would bring back history that the user has thrown away.
                Nothing was changed.
        """
        self._branch.advance(new, old)

    def landings(self, base: Sha | None = None) -> tuple[Landed, ...]:
        """Return the commits with our trailers on the integration branch, newest first."""
        return self._branch.landings(base)

    def fast_forward(self) -> FastForward:
        """Move the user's current branch, index and files up to the integration branch.

        Raises:
            LandingRefusedError: Nothing was changed; says why.
        """
        self.sync()
        checkout = self._now()
        tip = self._branch.tip()
        return fast_forward(checkout, self._own, self._objects, tip, self._branch.name, self._env)

    def uncommitted(self, *, leaving_out: str = "") -> Uncommitted:
        """Return how many files the checkout has beyond its HEAD, which are no part of a run.

        Args:
            leaving_out: A path, with slashes, that does not count: the manifest, which the
                harness itself writes.
        """
        return self._files().uncommitted(leaving_out=leaving_out)

    def snapshot_checkout(self) -> Sha:
        """Return a commit on HEAD of the checkout's files, ignored ones left out.

        Index and HEAD stay as they are. HEAD itself is returned where nothing is uncommitted.

        Raises:
            RepositoryError: They cannot be saved; says why.
        """
        return self._files().snapshot()

    def is_within(self, commit: Sha, tip: Sha) -> bool:
        """Return whether ``tip`` is ``commit`` or builds on it."""
        return self._objects.is_ancestor(commit, tip)

    def retire_branch(self, tip: Sha) -> None:
        """Take the integration branch away where it is at ``tip``; its tree must be kept before.

        Raises:
            LandingRefusedError: It is elsewhere by now, or checked out.
        """
        self._branch.retire(tip)

    def apply_to_checkout(self, base_tree: str, tree: str, expected_tree: str) -> None:
        """Put the diff from ``base_tree`` to ``tree`` onto the checkout's files.

        Raises:
            LandingRefusedError: A file of the diff is not as in ``expected_tree`` any more; no
                file was changed.
        """
        self._files().apply(base_tree, tree, expected_tree)

    def _files(self) -> CheckoutFiles:
        self.sync()
        return CheckoutFiles(self._now(), self._own, self._objects, self._env, self._layout.root)

    def _now(self) -> Checkout:
        return inspect(self._checkout.root, self._env.get("PATH", ""))

    def recover(self, ref: str, branch: str) -> Sha:
        """Bring a kept tree back as a new branch of the user's repository; return its commit.

        Raises:
            RepositoryError: There is no such ref, or the branch exists.
        """
        commit = self.kept(ref).get(ref)
        if commit is None:
            raise RepositoryError(f"nothing is kept as {ref}; `loop recover` lists what is")
        self._branch.create_elsewhere(branch, commit)
        return commit
