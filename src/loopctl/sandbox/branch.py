"""The integration branch in the user's repository: read, moved by compare-and-swap, landed."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from loopctl import failpoints
from loopctl.domain import Sha, TaskId
from loopctl.errors import GitError, LandingRefusedError, RepositoryError
from loopctl.records import Landed
from loopctl.sandbox.files import write_if_changed
from loopctl.sandbox.git import COMMITTER_EMAIL, Git
from loopctl.sandbox.objects import Objects, copy_objects

TRAILERS = ("Loop-Task", "Loop-Run", "Loop-Key")

_UNDER_WAY = ("rebase-merge", "rebase-apply")
_FIELD = "%x1f"


class IntegrationBranch:
    """``loop/integration`` in the user's repository.

    Args:
        own: git on the harness's own repository.
        users: git on the user's repository, its common folder.
        objects: The harness's own objects.
        name: Without ``refs/heads/``.
        marker: A file that exists while the branch is being moved, and names the lock on it.
        sync: Brings the user's branches into the harness's own repository.
    """

    def __init__(
        self,
        own: Git,
        users: Git,
        objects: Objects,
        name: str,
        marker: Path,
        sync: Callable[[], None],
    ) -> None:
        self._own = own
        self._users = users
        self._objects = objects
        self.name = name
        self._ref = f"refs/heads/{name}"
        self._marker = marker
        self._sync = sync

    def tip(self) -> Sha | None:
        """Return the branch's commit now."""
        found = self._users.run("rev-parse", "--verify", "--quiet", f"{self._ref}^{{commit}}")
        return Sha(found.stdout.decode().strip()) if found.returncode == 0 else None

    def advance(self, new: Sha, old: Sha | None) -> None:
        """Move the branch from ``old`` to ``new``.

        Raises:
            LandingRefusedError: Nothing was changed; says why.
        """
        self._refuse_checked_out()
        tips = self._known_tips()
        if tips.get(self._ref) != old:
            raise self._moved(tips.get(self._ref), old)
        if old is not None and not self._objects.is_ancestor(old, new):
            raise LandingRefusedError(
                f"{self.name} is at {old[:10]}, which {new[:10]} does not contain; "
                "moving it would lose commits"
            )
        self._refuse_purged(new, tips.values())
        try:
            copy_objects(self._own, self._users, [new], set(tips.values()), self._marker.parent)
        except GitError as error:
            raise LandingRefusedError(
                f"the user's repository does not take the commits for {self.name}: {error}"
            ) from error
        self._swap(new, old)

    def landings(self, base: Sha | None) -> tuple[Landed, ...]:
        """Return the commits with our trailers, newest first; those above ``base`` only."""
        tip = self.tip()
        if tip is None:
            return ()
        if not self._objects.has([tip])[tip]:
            self._sync()
        values = (f"%(trailers:key={key},valueonly,separator=%x20,unfold)" for key in TRAILERS)
        said = self._own.ask(
            *("log", "-z", f"--format={_FIELD.join(('%H', *values))}"),
            *("--grep=^Loop-Key:", tip, *([f"^{base}"] if base else [])),
        )
        found = []
        for record in filter(None, said.decode(errors="replace").split("\0")):
            commit, task, run_id, key = (field.strip() for field in record.split("\x1f"))
            if task and key:
                found.append(Landed(Sha(commit), TaskId(task), run_id, key))
        return tuple(found)

    def prepare(self, head: Sha) -> tuple[Sha, str]:
        """Return the commit that a run starts from, and what there is to say about it.

        A branch that HEAD contains is moved up to HEAD; one that is ahead is started from.

        Raises:
            RepositoryError: The branch and HEAD have diverged, or its name is none.
            LandingRefusedError: It is checked out, or cannot be moved up; says why.
        """
        if self._users.run("check-ref-format", self._ref).returncode != 0:
            raise RepositoryError(f"{self.name!r} is no branch name; mend [land] branch")
        # What would keep every landing from happening is said before any work is done.
        self._refuse_checked_out()
        tip = self.tip()
        if tip is None:
            self._refuse_obstructed()
        if tip is None or tip == head:
            return head, ""
        if not self._objects.has([tip])[tip]:
            self._sync()
        if self._objects.is_ancestor(tip, head):
            self.advance(head, tip)
            return head, ""
        count = int(self._own.line("rev-list", "--count", f"{head}..{tip}"))
        plural = "commit" if count == 1 else "commits"
        if self._objects.is_ancestor(head, tip):
            return tip, f"starting from {self.name}, {count} {plural} ahead of HEAD"
        raise RepositoryError(
            f"{self.name} and HEAD have diverged ({count} {plural} on {self.name} alone); "
            f"bring them together with `git merge {self.name}`, or give them up with "
            f"`git branch -D {self.name}`"
        )

    def create_elsewhere(self, branch: str, commit: Sha) -> None:
        """Make another branch of the user's repository, which must not exist yet.

        Raises:
            RepositoryError: It exists, or its name is none.
        """
        ref = f"refs/heads/{branch}"
        if branch.startswith("-") or self._users.run("check-ref-format", ref).returncode != 0:
            raise RepositoryError(f"{branch!r} is no branch name")
        if self._users.run("show-ref", "--verify", "--quiet", ref).returncode == 0:
            raise RepositoryError(f"the branch {branch} exists; name another one")
        tips = self._known_tips()
        try:
            copy_objects(self._own, self._users, [commit], set(tips.values()), self._marker.parent)
            self._users.ask(
                "update-ref", "--no-deref", "-m", "loop recover", ref, commit, "0" * len(commit)
            )
        except GitError as error:
            raise RepositoryError(f"the branch {branch} could not be made: {error}") from error

    def _refuse_checked_out(self) -> None:
        if place := self._checked_out():
            raise LandingRefusedError(
                f"{self.name} is checked out in {place}; switch that checkout to another branch "
                f"(`git -C {place} switch --detach`), then run the task again"
            )

    def _refuse_obstructed(self) -> None:
        """Make sure that no other branch's name keeps the branch from being made."""
        above = [str(parent) for parent in PurePosixPath(self._ref).parents][:-3]
        said = self._users.ask("for-each-ref", "--format=%(refname)", *above, f"{self._ref}/")
        for ref in said.decode(errors="surrogateescape").splitlines():
            if ref in above or ref.startswith(f"{self._ref}/"):
                other = ref.removeprefix("refs/heads/")
                raise RepositoryError(
                    f"the branch {other} keeps {self.name} from being made; rename it "
                    f"(`git branch -m {other} ...`) or set [land] branch"
                )

    def _checked_out(self) -> str:
        """Return a checkout of the user's that the branch's move would pull out from under."""
        said = self._users.ask("worktree", "list", "--porcelain")
        place = ""
        for line in said.decode(errors="surrogateescape").splitlines():
            if line.startswith("worktree "):
                place = line.removeprefix("worktree ")
            elif line == f"branch {self._ref}":
                return place
        return self._under_way()

    def _under_way(self) -> str:
        """Return a checkout whose rebase will end on the branch."""
        common = self._users.git_dir
        for folder in (common, *(common.glob("worktrees/*") if common else ())):
            for name in _UNDER_WAY:
                path = Path(folder or "", name, "head-name")
                with contextlib.suppress(OSError):
                    if path.read_text(errors="replace").strip() == self._ref:
                        return str(folder)
        return ""

    def _known_tips(self) -> dict[str, Sha]:
        """Return the user's branches, tags and HEAD, all of whose commits are here too."""
        tips = self._tips()
        if not all(self._objects.has(tips.values()).values()):
            self._sync()
            have = self._objects.has(tips.values())
            tips = {ref: tip for ref, tip in tips.items() if ref == self._ref or have[tip]}
        return tips

    def _tips(self) -> dict[str, Sha]:
        said = self._users.ask(
            "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags"
        )
        lines = said.decode(errors="surrogateescape").splitlines()
        tips = {ref: Sha(name) for name, ref in (line.split(" ", 1) for line in lines)}
        head = self._users.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if head.returncode == 0:
            tips["HEAD"] = Sha(head.stdout.decode().strip())
        return tips

    def _refuse_purged(self, new: Sha, tips: Iterable[str]) -> None:
        """Make sure that no commit comes along that the user has thrown away.

        All that a landing brings was committed by the harness; another commit among it was once
        the user's and no branch of theirs holds it any more.
        """
        known = "".join(f"^{tip}\n" for tip in set(tips)).encode()
        said = self._own.ask("log", "--format=%H %ce", "--stdin", new, stdin=known)
        for line in said.decode(errors="replace").splitlines():
            commit, _, email = line.partition(" ")
            if email != COMMITTER_EMAIL:
                raise LandingRefusedError(
                    f"the work is based on {commit[:10]}, which no branch of yours holds any more; "
                    "its history was rewritten. Run the task again on the new history"
                )

    def _swap(self, new: Sha, old: Sha | None) -> None:
        expected = old or "0" * len(new)
        args = ("update-ref", "--no-deref", "-m", "loop: landed", self._ref, new, expected)
        with self._marked():
            result = self._users.run(*args)
        if result.returncode == 0:
            return
        now = self.tip()
        if now != old:
            raise self._moved(now, old)
        said = result.stderr.decode(errors="replace").strip()
        raise LandingRefusedError(
            f"{self.name} could not be moved: {said}; where another branch is in the way, "
            "rename it or set [land] branch"
        )

    def retire(self, tip: Sha) -> None:
        """Take the branch away, by compare-and-swap.

        Raises:
            LandingRefusedError: It is not at ``tip`` any more, or is checked out.
        """
        if place := self._checked_out():
            raise LandingRefusedError(f"{self.name} is checked out in {place}; it stays")
        with self._marked():
            gone = self._users.run("update-ref", "--no-deref", "-d", self._ref, tip)
        if gone.returncode != 0:
            raise self._moved(self.tip(), tip)

    @contextlib.contextmanager
    def _marked(self) -> Iterator[None]:
        """Note which lock is ours in the user's repository, should a kill leave it there."""
        write_if_changed(self._marker, os.fsencode(f"{self._users.git_dir}/{self._ref}.lock"))
        yield
        failpoints.reach("branch.before_unmark")
        self._marker.unlink(missing_ok=True)
        failpoints.reach("branch.after_unmark")

    def _moved(self, now: Sha | None, old: Sha | None) -> LandingRefusedError:
        if now is None and old is not None:
            return LandingRefusedError(
                f"{self.name} was at {old[:10]} and is gone; put it back with "
                f"`git branch {self.name} {old}` and run the task again. Without it, a new one "
                "begins at HEAD, and what had landed on the old one is only among the kept trees "
                "(`loop recover`)"
            )
        found = f"at {now[:10]}" if now else "missing"
        expected = f"at {old[:10]}" if old else "missing"
        return LandingRefusedError(
            f"{self.name} is {found}, not {expected} as expected: somebody has moved it meanwhile; "
            "run the task again, and it begins from there"
        )
