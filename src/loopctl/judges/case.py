"""What a judge is handed: the candidate, the tree that would land, and fresh checkouts."""

import secrets
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from loopctl.domain import Sha
from loopctl.errors import SandboxError
from loopctl.judges.evidence import tail
from loopctl.ports import Repository, Sandbox
from loopctl.records import Candidate
from loopctl.verdict import Check, CheckResult, Hit


class Checkouts:
    """Fresh checkouts under unique names, made when they are asked for, all closed at the end.

    ``setup_cmd`` has run in each of them before it is handed out.
    """

    def __init__(self, repository: Repository, *, setup_cmd: str, timeout_s: float) -> None:
        self._repository = repository
        self._setup_cmd = setup_cmd
        self._timeout_s = timeout_s
        self._shared: dict[str, Sandbox] = {}
        self._open: list[Sandbox] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._open:
            self._open.pop().close()

    def shared(self, head: Sha, tree: str) -> Sandbox:
        """Return the checkout of ``tree`` that all checks of this gate run use."""
        if tree not in self._shared:
            self._shared[tree] = self.fresh(head, tree)
        return self._shared[tree]

    def is_untouched(self, tree: str) -> bool:
        """Return whether nothing has run so far in the shared checkout of ``tree``."""
        return not self._setup_cmd and tree not in self._shared

    def fresh(self, head: Sha, tree: str) -> Sandbox:
        """Return a checkout of ``tree`` that nothing has run in but the set-up.

        Raises:
            SandboxError: It could not be made, or ``setup_cmd`` did not exit 0 in it.
        """
        sandbox = self._repository.open_sandbox(f"gate-{secrets.token_hex(8)}", head, tree)
        self._open.append(sandbox)
        if self._setup_cmd:
            ended = sandbox.run(self._setup_cmd, timeout_s=self._timeout_s)
            if ended.returncode != 0 or ended.timed_out:
                how = "ran out of time" if ended.timed_out else f"ended with {ended.returncode}"
                how = f"was ended, since {ended.excess}" if ended.excess else how
                raise SandboxError(
                    f"setup_cmd {how} in a fresh checkout ({self._setup_cmd}); "
                    f"its output ends: {tail(ended.stdout, 600)}"
                )
        return sandbox


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate before the judges.

    Attributes:
        tree: The diff on the head: what would land. Empty before ``apply`` has made it.
        head_tree: The base of the comparison: the head without the diff.
        hits: What the judges before have found that a person must let land.
    """

    candidate: Candidate
    tree: str
    head_tree: str
    checkouts: Checkouts
    hits: tuple[Hit, ...] = ()


class Judge(Protocol):
    """One check of the gate."""

    @property
    def check(self) -> Check:
        """Which one."""
        ...

    def judge(self, case: Case) -> CheckResult | None:
        """Return the evidence; ``None`` where this check does not apply to the project.

        Raises:
            SandboxError: A checkout could not be made or used.
            GitError: git could not read a tree.
            CancelledError: The run was asked to stop.
        """
        ...
