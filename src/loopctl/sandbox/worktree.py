"""One sandbox: a worktree of the harness's own repository, its index, home and exchange folder.

The index that snapshots are made with lies outside the worktree, and git is always told its
repository and its files: whatever a worker stages, commits, flags or puts in the place of ``.git``
changes nothing of what the harness sees.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopctl.domain import ExecResult, Sha
from loopctl.errors import GitError, SandboxError
from loopctl.ports import Confinement
from loopctl.records import Rescued
from loopctl.redaction import Redactor
from loopctl.sandbox import process
from loopctl.sandbox.environment import command_environment, write_home
from loopctl.sandbox.exchange import OutboxExchange
from loopctl.sandbox.files import disk_errors, move, remove_tree, write_if_changed
from loopctl.sandbox.git import Git, git_words
from loopctl.sandbox.gitfile import point
from loopctl.sandbox.hardlinks import part
from loopctl.sandbox.increment import Increment, Outline, outline
from loopctl.sandbox.leftout import left_out
from loopctl.sandbox.library import can_write
from loopctl.sandbox.lock import locked
from loopctl.sandbox.objects import Objects
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.rescue import Origin, forget, rescue
from loopctl.sandbox.spares import Spares, modes, parse_index, scour
from loopctl.sandbox.survey import Survey, forbidden, refuse_filters, survey

_ROUNDS = 3
_FILES = "files"
_INDEX = "index"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all the sandboxes of a repository share.

    Attributes:
        git: On the harness's own repository, without files.
        objects: The same repository.
        share: Folders of the checkout that worktrees see.
        env: The caller's environment.
        cancel: Ends commands when set.
        redact: Takes keys out of what commands say, before anybody reads it.
        spares: Worktrees that workers are done with.
        before_close: Told the name of each sandbox that is about to be closed; must not raise.
    """

    layout: Layout
    checkout: Path
    git: Git
    objects: Objects
    share: tuple[str, ...]
    env: Mapping[str, str]
    confinement: Confinement
    cancel: threading.Event | None
    redact: Redactor
    spares: Spares = field(default_factory=Spares)
    before_close: list[Callable[[str], None]] = field(default_factory=list)


class Worktree:
    """A sandbox; its folders are made by :meth:`create`.

    Args:
        rescue_ref: Under which its files are saved when a step is cut short; empty where no
            worker is at work in it.
    """

    def __init__(
        self, surroundings: Surroundings, name: str, base: Sha, rescue_ref: str = ""
    ) -> None:
        self._around = surroundings
        self._name = name
        self._base = base
        self._increment = Increment(
            surroundings.layout.indexes / name,
            surroundings.layout.git_dir / "objects",
            surroundings.layout.worktrees / name,
        )
        self._index = self._increment.index
        self._git = surroundings.git.at(
            surroundings.layout.git_dir, surroundings.layout.worktrees / name, self._index
        )
        self._exchange = OutboxExchange(surroundings.layout.exchange / name)
        self._scratch = surroundings.layout.scratch(name)
        self._rescue_ref = rescue_ref
        self._is_unsaved = False
        self._is_rescued = False

    @property
    def name(self) -> str:
        """Unique in the repository."""
        return self._name

    @property
    def workdir(self) -> Path:
        """The worktree's root."""
        return self._around.layout.worktrees / self._name

    @property
    def inside(self) -> Path:
        """Where the worktree's root is for its commands."""
        return self._around.confinement.inside(self.workdir)

    @property
    def scratch(self) -> Path:
        """The private folder that commands know as ``TMPDIR``; goes with the sandbox."""
        return self._scratch / "tmp"

    @property
    def base(self) -> Sha:
        """The commit that it was made from."""
        return self._base

    def create(self, tree: str) -> None:
        """Make the worktree anew with the files of ``tree``; one of that name is removed first.

        Raises:
            SandboxError: It could not be made; says why.
        """
        what = f"the worktree {self._name} could not be made"
        self._is_rescued = False
        with disk_errors(what):
            forget(self._around.layout, self._name)
            try:
                if not (self._rescue_ref and self._reuse(tree)):
                    self._add()
                    self._increment.begin()
                    self._git.ask("read-tree", "--reset", "-u", tree)
                self._settle(tree)
            except GitError as error:
                raise SandboxError(f"{what}: {git_words(error)}") from error
            self._exchange.offer("")
            self._make_scratch()
            if self._rescue_ref:
                origin = Origin(self._base, self._around.objects.tree_of(tree), self._rescue_ref)
                origin.write(self._around.layout.origins / self._name)

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Return how ``command`` (a string is for ``sh -c``) ended; stderr is merged into stdout.

        Raises:
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        self._require()
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        with disk_errors(f"the sandbox {self._name} has lost its private folders"):
            if not self._scratch.is_dir():
                self._make_scratch()
        confinement = self._around.confinement
        writable = (self._scratch, self._exchange.folder)
        confined = confinement.wrap(argv, workdir=self.workdir, writable=writable)
        ended = process.run(
            confined.argv,
            cwd=self.workdir,
            env=command_environment(
                self._around.env,
                env or {},
                shim=self._around.layout.shim,
                home=self._scratch / "home",
                scratch=self.scratch,
            ),
            timeout_s=timeout_s,
            merge_stderr=True,
            cancel=self._around.cancel,
            has_keeper=confined.has_keeper,
            most=confined.most,
        )
        return replace(ended, stdout=self._around.redact.data(_explained(ended, confinement)))

    def exchange(self) -> OutboxExchange:
        """Return the folder pair through which the running step and the harness speak."""
        return self._exchange

    def snapshot(self) -> str:
        """Return the tree id of the worktree's files, ignored ones left out.

        Raises:
            SandboxError: The worktree is gone, or holds something that git must not touch.
        """
        with disk_errors(f"the files of {self._name} could not be saved"):
            self._require()
            found = survey(self.workdir)
            seen = outline(found) if can_write(self._base) else None
            tree = self._increment.tree(seen) if seen is not None else None
            if tree is None:
                tree = self._staged(found, seen)
        self._is_unsaved = False
        return tree

    def _staged(self, found: Survey, seen: Outline | None) -> str:
        """Have git look at the files; return their tree."""
        self._stage(found)
        try:
            tree = self._write_tree(seen)
            if found.mentions_filters:
                refuse_filters(self._git, self._base)
        except GitError as error:
            raise self._unsaved(error) from error
        return tree

    def _write_tree(self, seen: Outline | None = None) -> str:
        if can_write(self._base):
            return self._increment.adopt(seen)
        return self._git.line("write-tree")

    def left_out(self) -> str:
        """Return in words what the last snapshot left out; empty for nothing, or if untold."""
        with contextlib.suppress(GitError, SandboxError, OSError):
            return left_out(self._git, self.workdir, self._around.share)
        return ""

    def rescue(self) -> Rescued:
        """Save the files under a ref of their own, whatever state they are in.

        Where that did not save all of them, :meth:`close` leaves the worktree in its place.
        """
        around = self._around
        found = rescue(around.layout, around.git, around.objects, self._name)
        self._is_unsaved = not found.is_complete
        self._is_rescued = True
        return found

    def restore(self, tree: str) -> None:
        """Make the worktree's files those of ``tree``, remaking the worktree where it is gone.

        Ignored files stay, unless the worktree is in a state that git cannot deal with.
        """
        # What a rescue has renamed leaves folders that git does not see.
        if not self._is_rescued:
            with contextlib.suppress(SandboxError, GitError, OSError):
                self._return_to(tree)
                return
        self.create(tree)

    def close(self) -> None:
        """Remove the worktree. What was kept under refs stays. Never raises for a missing one."""
        self._increment.close()
        for listener in self._around.before_close:
            listener(self._name)
        # The scratch folder first: it is found by the names of the others.
        for folder in (self._scratch, self._exchange.folder):
            with contextlib.suppress(OSError):
                remove_tree(folder)
        if self._is_unsaved:
            return
        with contextlib.suppress(OSError):
            with locked(self._around.layout.worktree_lock):
                left = self._discard()
            if not (self._is_reusable() and self._around.spares.offer(left)):
                remove_tree(left)
            forget(self._around.layout, self._name)

    def _require(self) -> None:
        if self.workdir.is_symlink() or not self.workdir.is_dir():
            raise SandboxError(
                f"the worktree of {self._name} is gone ({self.workdir}); something has removed it"
            )

    def _stage(self, found: Survey) -> None:
        """Put the files as they are into the private index."""
        # Nobody else uses this index: a lock on it is of a git that was killed.
        self._index.with_name("index.lock").unlink(missing_ok=True)
        if found.nested and (path := forbidden(self._git, found.nested)):
            raise SandboxError(
                f"{self._name} holds a repository of its own at {path}, which git must not enter; "
                "remove its .git, or make the folder outside the worktree"
            )
        result = self._git.run("add", "--all")
        if result.returncode != 0:
            raise self._unsaved(self._git.error(("add", "--all"), result))

    def _unsaved(self, error: GitError) -> SandboxError:
        return SandboxError(f"the files of {self._name} could not be saved: {git_words(error)}")

    def _return_to(self, tree: str) -> None:
        self._require()
        part(self.workdir)
        # A changed .gitignore hides files from the first round; those appear in the second.
        for _ in range(_ROUNDS):
            self._require()
            self._stage(survey(self.workdir))
            if self._write_tree() == tree:
                self._settle(tree)
                return
            self._git.ask("read-tree", "--reset", "-u", tree)
        raise SandboxError(f"the worktree {self._name} does not come back to {tree}")

    def _add(self) -> None:
        layout = self._around.layout
        # git itself fails now and then when worktrees are added or pruned at the same time.
        with contextlib.ExitStack() as outside, locked(layout.worktree_lock):
            outside.callback(remove_tree, self._discard())
            self._around.git.ask(
                *("worktree", "add", "--quiet", "--no-checkout", "--detach"),
                *(str(self.workdir), self._base),
            )

    def _is_reusable(self) -> bool:
        """Return whether a worker was at work here, and its files are as it left them."""
        return bool(self._rescue_ref) and not self._is_rescued

    def _reuse(self, tree: str) -> bool:
        """Make the worktree of one that is spare; say whether that could be done."""
        spare = self._around.spares.take()
        if spare is None:
            return False
        with contextlib.ExitStack() as outside:
            outside.callback(remove_tree, spare)
            with contextlib.suppress(OSError, SandboxError, GitError):
                with locked(self._around.layout.worktree_lock):
                    outside.callback(remove_tree, self._discard())
                    move(spare / _FILES, self.workdir)
                    self._increment.begin()
                    move(spare / _INDEX / self._index.name, self._index)
                    self._around.layout.admin(self._name).mkdir(mode=0o700, parents=True)
                known = parse_index(self._git.ask("ls-files", "--stage", "-z"))
                scour(self.workdir, known, modes(spare))
                self._git.ask("read-tree", "--reset", "-u", tree)
                parse_index(self._git.ask("ls-files", "--stage", "-z"))
                return True
        return False

    def _discard(self) -> Path:
        """Move all that there is of this name out of the way, in the lock; return where it is."""
        layout = self._around.layout
        trash = Path(tempfile.mkdtemp(dir=layout.trash))
        places = {
            _FILES: self.workdir,
            "admin": layout.admin(self._name),
            _INDEX: self._index.parent,
        }
        for name, place in places.items():
            if place.exists() or place.is_symlink():
                move(place, trash / name)
        return trash

    def _settle(self, tree: str) -> None:
        """Put what is not in the tree in its place: shared folders, and git's own view inside."""
        for name in self._around.share:
            self._share(self._around.checkout / name, self.workdir / name)
        admin = self._around.layout.admin(self._name)
        point(self.workdir / ".git", admin)
        for lock in admin.glob("*.lock"):
            lock.unlink(missing_ok=True)
        # Replaced and not written over: a worker may have put links in their places.
        write_if_changed(admin / "HEAD", f"{self._base}\n".encode())
        write_if_changed(admin / "index", self._index.read_bytes())
        if tree != self._base:
            # Inside, what differs from the base is work that is not staged, as a worker expects.
            git = self._around.git.at(self._around.layout.git_dir, self.workdir, admin / "index")
            git.ask("read-tree", "-m", self._base)

    def _share(self, source: Path, place: Path) -> None:
        """Make a link to a shared folder, or an empty folder that it is mounted on."""
        is_held = self._around.confinement.has_mounts
        if is_held and place.is_symlink() and place.readlink() == source:
            place.unlink()
        if not source.is_dir() or os.path.lexists(place) or not place.parent.is_dir():
            return
        with contextlib.suppress(FileExistsError):
            if is_held:
                place.mkdir()
            else:
                place.symlink_to(source)

    def _make_scratch(self) -> None:
        if self._scratch.is_symlink() or self._scratch.exists():
            remove_tree(self._scratch)
        self._scratch.mkdir(mode=0o700)
        self.scratch.mkdir(mode=0o700)
        write_home(self._scratch / "home")


def _explained(ended: ExecResult, confinement: Confinement) -> bytes:
    """Return what a command said, and what the confinement had to do with its end."""
    why = f"ended, since {ended.excess}" if ended.excess else ""
    if not why and ended.returncode != 0:
        why = confinement.explain(ended)
    if not why:
        return ended.stdout
    begin = b"\n" if ended.stdout and not ended.stdout.endswith(b"\n") else b""
    return ended.stdout + begin + f"loop: {why}\n".encode(errors="replace")
