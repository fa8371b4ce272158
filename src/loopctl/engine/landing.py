"""Landing: a gated diff becomes one commit on the integration branch, by compare-and-swap.

Every commit of the branch has passed the gate at exactly its tree: where the head has moved
since the gate ran, the diff is carried onto the new head and gated again.
"""

import hashlib
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Sha, Task
from loopctl.engine import naming
from loopctl.engine.telling import Teller
from loopctl.engine.thread import write_next
from loopctl.engine.work import Ended, Tools
from loopctl.events import TaskLanded
from loopctl.records import Candidate
from loopctl.trees import Change
from loopctl.verdict import GateResult

_SUBJECT_CHARS: Final = 72


@dataclass(frozen=True, slots=True)
class Returned:
    """A result that no longer passes on the moved head; the task goes on from there.

    Attributes:
        tree: The diff on the new head; ``None`` where it does not apply.
        observation: What the worker is shown.
        is_to_be_asked: Nothing keeps it from landing but a person's word.
    """

    tree: str | None
    observation: str
    is_to_be_asked: bool = False


class Landing:
    """Lands one result at a time; the driver's thread alone calls it.

    Args:
        head: Where the next commit goes: the commit that the run starts from.
        tip: The integration branch as it is; ``None`` where there is none yet.
    """

    def __init__(self, tools: Tools, run_id: str, branch: str, head: Sha, tip: Sha | None) -> None:
        self._tools = tools
        self._run_id = run_id
        self._branch = branch
        self._head = head
        self._tip = tip

    @property
    def head(self) -> Sha:
        """The commit that new work starts from."""
        return self._head

    def land(self, task: Task, ended: Ended) -> TaskLanded | Returned:
        """Return the landing, written to the branch; or why there is none.

        Whoever calls puts it into the events: from here on the task has landed, whatever fails.

        Raises:
            LandingRefusedError: The branch was moved or checked out by somebody else.
            CancelledError: The run was asked to stop.
        """
        gate = ended.gate
        if gate is None or gate.head != self._head:
            gate = self._gate_again(task, ended)
            if not gate.is_passed:
                return Returned(
                    tree=gate.tree or None,
                    observation=self._tools.describe(gate),
                    is_to_be_asked=gate.is_to_be_approved,
                )
        repository = self._tools.repository
        changes = repository.changes(repository.tree_of(self._head), gate.tree)
        key = landing_key(self._run_id, task.id, ended.candidate, ended.base, ended.tree)
        commit = repository.commit(gate.tree, self._head, self._message(task, gate, key))
        repository.advance(commit, self._tip)
        self._head = self._tip = commit
        return self._landed(task, ended, gate, changes, key)

    def _gate_again(self, task: Task, ended: Ended) -> GateResult:
        candidate = Candidate(
            task=task, name=ended.candidate, base=ended.base, tree=ended.tree, head=self._head
        )
        words = f"landing: gate again on head {self._head}"
        write_next(self._tools.brain, "landing", words, task)
        gate = self._tools.gate.judge(candidate)
        Teller(self._tools.emit, task.id, ended.candidate).gate_finished(gate)
        return gate

    def _message(self, task: Task, gate: GateResult, key: str) -> str:
        checks = ", ".join(f"{result.check} {result.verdict}" for result in gate.checks)
        title = " ".join(task.title.split())
        subject = f"{task.id}: {title}"
        body = f"{title}\n\n" if len(subject) > _SUBJECT_CHARS else ""
        return (
            f"{subject[:_SUBJECT_CHARS]}\n\n{body}"
            f"Loop-Task: {task.id}\n"
            f"Loop-Run: {self._run_id}\n"
            f"Loop-Gate: {checks}{' (vacuous)' if gate.is_vacuous else ''}\n"
            f"Loop-Key: {key}\n"
        )

    def _landed(
        self, task: Task, ended: Ended, gate: GateResult, changes: tuple[Change, ...], key: str
    ) -> TaskLanded:
        return TaskLanded(
            task=task.id,
            commit=self._head,
            tree=gate.tree,
            branch=self._branch,
            key=key,
            files=len(changes),
            result=ended.result,
        )


def landing_key(run_id: str, task: str, candidate: str, base: str, tree: str) -> str:
    """Return the same key for every attempt to land the same result of the same run.

    It can be told from the ref that keeps the result: names are taken as they stand there.
    """
    fields = (run_id, naming.part(task), naming.part(candidate), base, tree)
    text = "".join(f"{len(field)}:{field}" for field in fields)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def key_of_kept(ref: str, base: str, tree: str) -> str:
    """Return the key with which the result that ``ref`` keeps would have landed."""
    run_id, task, candidate = ref.removeprefix("refs/loop/").split("/")
    return landing_key(run_id, naming.unpart(task), naming.unpart(candidate), base, tree)
