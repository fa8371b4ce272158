"""Scripted doubles for the ports, shipped so that others can test their own adapters.

They keep everything in memory and do exactly what they were told: no process, no file, no time.
A tree is any text; a commit is ``c1``, ``c2``, … in the order in which they were made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from loopctl.domain import ExecResult, Sha, TaskId
from loopctl.errors import LandingRefusedError, SandboxError
from loopctl.events import AnyEvent
from loopctl.plan import Checkpoint, Interrupt
from loopctl.ports import Exchange, Sandbox
from loopctl.records import Candidate, Capsule, Carried, Landed, Rescued, SessionRecord
from loopctl.steps import StepEvent, StepRequest, WorkerProgress
from loopctl.trees import Change, ChangeType, TreeFile
from loopctl.verdict import Check, CheckResult, GateResult, Verdict


@dataclass
class StillClock:
    """The port ``Clock``: time passes only when :meth:`pass_time` is called."""

    moment: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    seconds: float = 0.0

    def now(self) -> datetime:
        """Return the moment that the clock stands at."""
        return self.moment

    def monotonic(self) -> float:
        """Return the seconds that were passed so far."""
        return self.seconds

    def pass_time(self, seconds: float) -> None:
        """Move both clocks on."""
        self.seconds += seconds
        self.moment += timedelta(seconds=seconds)


@dataclass(frozen=True)
class ScriptedStep:
    """What a scripted worker does in one step.

    Attributes:
        tree: What the worktree holds afterwards; ``None`` leaves it as it is.
        events: All but the last.
        answer: Stands for the words of the worker: equal for equal ones.
        seconds: How long it takes.
    """

    tree: str | None = None
    events: tuple[StepEvent, ...] = ()
    answer: str = ""
    tool_calls: str = ""
    seconds: float = 0.0


@dataclass
class ScriptedWorker:
    """The port ``Worker``: plays its steps one after the other, then the last one for ever."""

    steps: Sequence[ScriptedStep]
    clock: StillClock | None = None
    makes_plans: bool = False
    requests: list[StepRequest] = field(default_factory=list)

    def execute_step(self, request: StepRequest, sandbox: Sandbox) -> Iterator[StepEvent]:
        """Yield the events of the step whose turn it is."""
        step = self.steps[min(len(self.requests), len(self.steps) - 1)]
        self.requests.append(request)
        if step.tree is not None:
            sandbox.restore(step.tree)
        if self.clock is not None:
            self.clock.pass_time(step.seconds)
        yield from step.events
        yield WorkerProgress(
            made_tool_calls=bool(step.tool_calls),
            tool_calls_errored=False,
            response_delta_hash=step.answer,
            tool_calls_hash=step.tool_calls,
        )


@dataclass
class MemorySandbox:
    """The port ``Sandbox``: its files are one text."""

    name: str
    base: Sha
    tree: str
    on_close: Callable[[str], None] = lambda _name: None
    is_broken: bool = False
    rescued: Rescued = field(default_factory=Rescued)
    rescues: int = 0

    @property
    def workdir(self) -> Path:
        """Nowhere."""
        return Path("/nowhere") / self.name

    @property
    def inside(self) -> Path:
        """The same."""
        return self.workdir

    @property
    def scratch(self) -> Path:
        """Nowhere either."""
        return self.workdir / "tmp"

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        """Return success; a double starts no process."""
        del command, timeout_s, env
        return ExecResult(returncode=0)

    def exchange(self) -> Exchange:
        """Raise: a scripted worker sends no messages."""
        raise SandboxError("a memory sandbox has no exchange folder")

    def snapshot(self) -> str:
        """Return the text that the files are."""
        if self.is_broken:
            self.is_broken = False
            raise SandboxError("the worktree is gone")
        return self.tree

    def left_out(self) -> str:
        """Return nothing: one text is never ignored."""
        return ""

    def restore(self, tree: str) -> None:
        """Put the files to ``tree``."""
        self.tree = tree

    def rescue(self) -> Rescued:
        """Return what was asked for; keeps nothing."""
        self.rescues += 1
        return self.rescued

    def close(self) -> None:
        """Tell that the worktree is gone."""
        self.on_close(self.name)


class MemoryRepository:
    """The port ``Repository``: commits are numbered, a diff always applies unless told not to."""

    def __init__(self, base_tree: str = "base") -> None:
        self.trees: dict[str, str] = {"c1": base_tree}
        self.parents: dict[str, str | None] = {"c1": None}
        self.messages: dict[str, str] = {"c1": "begin"}
        self.refs: dict[str, Sha] = {}
        self.branch: Sha | None = None
        self.open: set[str] = set()
        self.most_open = 0
        self.refusal: str | None = None
        self.conflict: str | None = None

    def sync(self) -> None:
        """Do nothing: there is no other repository."""

    def head(self) -> Sha:
        """Return the first commit."""
        return Sha("c1")

    def integration(self) -> Sha | None:
        """Return the commit of the branch."""
        return self.branch

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self.trees[commit]

    def open_sandbox(
        self, name: str, base: Sha, tree: str | None = None, *, rescue_ref: str = ""
    ) -> MemorySandbox:
        """Return a new sandbox, counted as open until it is closed."""
        del rescue_ref
        self.open.add(name)
        self.most_open = max(self.most_open, len(self.open))
        return MemorySandbox(name, base, tree or self.tree_of(base), self.open.discard)

    def keep(self, ref: str, tree: str, base: Sha, message: str) -> Sha:
        """Point ``ref`` at a new commit of ``tree``."""
        self.refs[ref] = self.commit(tree, base, message)
        return self.refs[ref]

    def kept(self, prefix: str = "refs/loop/") -> Mapping[str, Sha]:
        """Return the refs below ``prefix``."""
        return {ref: commit for ref, commit in self.refs.items() if ref.startswith(prefix)}

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return one change where the trees differ."""
        if old == new:
            return ()
        return (Change("file", ChangeType.MODIFIED, "100644", "100644", old, new),)

    def changed_lines(self, old: str, new: str) -> int:
        """Return how many characters the trees differ by in length, at least one."""
        return 0 if old == new else max(1, abs(len(new) - len(old)))

    def read_blob(self, tree: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return the tree's text as the only file."""
        return tree.encode()[:limit] if path == "file" else None

    def files(self, tree: str) -> tuple[TreeFile, ...]:
        """Return the tree's text as the only file; its blob is that text too."""
        return (TreeFile("file", tree, len(tree.encode())),)

    def read_blobs(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return each text, which is its own blob."""
        return {blob: blob.encode() for blob in blobs}

    def carry(self, base: str, tree: str, onto: str) -> Carried:
        """Return the tree, or the conflict that was asked for."""
        del base, onto
        return Carried(None, self.conflict) if self.conflict else Carried(tree)

    def overlaid(self, tree: str, changes: Sequence[Change]) -> str:
        """Return the text of the last change, which is its blob; that of the tree without one."""
        return changes[-1].new_blob if changes else tree

    def commit(self, tree: str, parent: Sha, message: str) -> Sha:
        """Return the next commit."""
        commit = Sha(f"c{len(self.trees) + 1}")
        self.trees[commit] = tree
        self.parents[commit] = parent
        self.messages[commit] = message
        return commit

    def advance(self, new: Sha, old: Sha | None) -> None:
        """Move the branch, unless a refusal was asked for or it is elsewhere."""
        if self.refusal is not None or self.branch != old:
            raise LandingRefusedError(self.refusal or "the branch has moved")
        self.branch = new

    def landings(self, base: Sha | None = None) -> tuple[Landed, ...]:
        """Return what the messages of the branch's commits say."""
        found: list[Landed] = []
        commit: str | None = self.branch
        while commit is not None and commit != base:
            trailers = dict(
                line.split(": ", 1)
                for line in self.messages[commit].splitlines()
                if line.startswith("Loop-")
            )
            if trailers:
                found.append(
                    Landed(
                        commit=Sha(commit),
                        task=TaskId(trailers["Loop-Task"]),
                        run_id=trailers["Loop-Run"],
                        key=trailers["Loop-Key"],
                    )
                )
            commit = self.parents[commit]
        return tuple(found)


@dataclass
class ScriptedGate:
    """The port ``Gate``: a tree passes when it is among ``passing``.

    Attributes:
        failing: What a tree that does not pass is answered with.
        scripted: Answers that come before all others, one a call.
    """

    passing: frozenset[str] = frozenset()
    failing: CheckResult = field(
        default_factory=lambda: CheckResult(Check.VERIFY, Verdict.FAIL, reason="verify is red")
    )
    scripted: list[CheckResult] = field(default_factory=list)
    seen: list[Candidate] = field(default_factory=list)
    met: frozenset[str] = frozenset()

    def judge(self, candidate: Candidate) -> GateResult:
        """Return the verdict on the candidate's tree."""
        self.seen.append(candidate)
        if self.scripted:
            result = self.scripted.pop(0)
        elif candidate.tree in self.passing:
            result = CheckResult(Check.VERIFY, Verdict.PASS)
        else:
            result = self.failing
        result = replace(result, tree=candidate.tree)
        return GateResult(head=candidate.head, tree=candidate.tree, checks=(result,))

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        """Return ``pass`` for the commands in ``met``."""
        del commit
        verdict = Verdict.PASS if command in self.met else Verdict.FAIL
        return CheckResult(Check.VERIFY, verdict, command=command)


class MemorySessions:
    """The port ``SessionStore``."""

    def __init__(self) -> None:
        self.records: dict[str, SessionRecord] = {}
        self.saved: list[tuple[str, int, Checkpoint]] = []

    def open_session(self, run_id: str, task: TaskId, candidate: str, base: Sha) -> SessionRecord:
        """Return the session, made now or earlier."""
        session_id = f"{run_id}/{task}/{candidate}"
        new = SessionRecord(session_id, run_id, task, candidate, base, 0, None)
        return self.records.setdefault(session_id, new)

    def last_run(self, task: TaskId) -> str | None:
        """Return the run of the newest session of a task."""
        runs = [record.run_id for record in self.records.values() if record.task == task]
        return runs[-1] if runs else None

    def save_checkpoint(self, session_id: str, iteration: int, checkpoint: Checkpoint) -> None:
        """Remember the checkpoint as the session's last."""
        self.saved.append((session_id, iteration, checkpoint))
        if session_id in self.records:
            self.records[session_id] = replace(
                self.records[session_id],
                iteration=iteration,
                checkpoint=checkpoint,
                interrupt=None,
            )

    def save_interrupt(self, session_id: str, iteration: int, interrupt: Interrupt) -> None:
        """Remember that the session's next step waits for a person."""
        del iteration
        self.records[session_id] = replace(self.records[session_id], interrupt=interrupt)


class MemoryBrain:
    """The port ``Brain``."""

    def __init__(self, goal: str = "") -> None:
        self.capsule = Capsule(goal=goal)

    def boot(self) -> Capsule:
        """Return the capsule."""
        return self.capsule

    def carry(self, capsule: Capsule) -> None:
        """Replace the capsule."""
        self.capsule = capsule

    def update(self, change: Callable[[Capsule], Capsule]) -> None:
        """Replace the capsule by what ``change`` makes of it."""
        self.capsule = change(self.capsule)


@dataclass
class MemoryEventLog:
    """An event log that numbers the events and keeps them in a list."""

    events: list[AnyEvent] = field(default_factory=list)

    def append(self, event: AnyEvent) -> AnyEvent:
        """Return the event with its number."""
        written = event.model_copy(update={"seq": len(self.events) + 1})
        self.events.append(written)
        return written

    def read(self) -> Iterable[AnyEvent]:
        """Return all events so far."""
        return tuple(self.events)

    def emit(self, event: AnyEvent) -> AnyEvent:
        """Append the event; fits the port ``Emit``."""
        return self.append(event)
