"""One task from its claim to its end, in a thread of its own: sandboxes, plan loops, the pick.

Nothing here touches the manifest, the branch or the end of the run: those are the driver's.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from loopctl.domain import (
    Axis,
    Baseline,
    Decision,
    DecisionDraft,
    Goal,
    Limits,
    Mode,
    Option,
    Sha,
    StopReason,
    Task,
)
from loopctl.engine import consent, forks, naming, questions, suspension
from loopctl.engine.answers import as_answered
from loopctl.engine.planloop import PlanLoop
from loopctl.engine.progress import StallLimits
from loopctl.engine.recovery import rescue_notice
from loopctl.engine.work import Ended, Tools, Work, todo_text
from loopctl.events import CandidateEnded, ForkResolved, SandboxOpened
from loopctl.plan import (
    OPEN_TODOS,
    Budget,
    Interrupt,
    Plan,
    PlanStatus,
    TodoStatus,
    single_todo,
)
from loopctl.ports import Sandbox, Worker
from loopctl.records import SessionRecord
from loopctl.settings import Settings
from loopctl.steps import Resume
from loopctl.verdict import Verdict


@dataclass(frozen=True, slots=True)
class RunContext:
    """What is the same for every task of a run."""

    run_id: str
    goal: Goal
    settings: Settings
    tools: Tools
    workers: Mapping[str, Worker]


@dataclass(frozen=True, slots=True)
class Start:
    """Where a task begins.

    Attributes:
        head: The commit that a new worktree is made from.
        answers: The task's answered decisions, oldest first.
        returned: Set where a landing failed: the candidate that goes on from ``head``.
        tree: Its diff on ``head``, where that could be carried.
        observation: What its next step is shown.
        is_to_be_asked: Of a returned one nothing but a person's word is missing; no step is taken.
        is_anew: What was made before rests on something that does not hold; nothing of it counts.
    """

    head: Sha
    answers: tuple[Decision, ...] = ()
    returned: str | None = None
    tree: str | None = None
    observation: str = ""
    is_to_be_asked: bool = False
    is_anew: bool = False


class TaskRun:
    """Runs one task once."""

    def __init__(self, context: RunContext, task: Task, start: Start) -> None:
        self._context = context
        self._mode = task.mode or context.settings.loop.mode
        self._settings = context.settings.for_mode(self._mode)
        stall = self._settings.stall
        self._tools = replace(
            context.tools, stall=StallLimits(stall.window, stall.replan_cap, stall.stuck_steps)
        )
        self._task = self._capped(as_answered(task, start.answers))
        self._start = start

    def run(self) -> Ended:
        """Return how the task ended: its only candidate, the winner, or the best loser.

        Raises:
            SandboxError: No sandbox could be made; the task is broken.
            CancelledError: The run was asked to stop; checkpoints stand.
        """
        options = self._task.options
        if self._start.returned is not None:
            named = [option for option in options if option.name == self._start.returned]
            return self._candidate(named[0] if named else None, shares=len(options) or 1)
        if not options:
            return self._candidate(None, shares=1)
        return self._compete(options)

    def _compete(self, options: tuple[Option, ...]) -> Ended:
        width = self._settings.sandbox.beam_width
        with ThreadPoolExecutor(width, thread_name_prefix=self._task.id) as pool:
            scored = list(pool.map(lambda option: self._score(option, len(options)), options))
        winner = forks.pick(scored)
        self._tools.emit(
            ForkResolved(
                task=self._task.id,
                winner=winner.ended.candidate if winner else None,
                reason=f"smallest passing diff, {winner.changed_lines} changed lines"
                if winner
                else "no candidate passed the gate",
            )
        )
        return winner.ended if winner else forks.without_winner(scored)

    def _score(self, option: Option, shares: int) -> forks.Scored:
        ended = self._candidate(option, shares)
        repository = self._tools.repository
        lines = repository.changed_lines(repository.tree_of(ended.base), ended.tree)
        judged = ended.gate.verdict if ended.gate is not None else Verdict.UNKNOWN
        self._tools.emit(
            CandidateEnded(
                task=self._task.id,
                name=ended.candidate,
                verdict=Verdict.PASS if ended.is_passed else judged,
                ref=ended.ref,
                reason=f"{ended.stop.axis}: {ended.stop.reason}",
                changed_lines=lines,
            )
        )
        return forks.Scored(ended, lines)

    def _candidate(self, option: Option | None, shares: int) -> Ended:
        name = option.name if option is not None else naming.MAIN
        run_id, task = self._context.run_id, self._task
        session = self._tools.sessions.open_session(run_id, task.id, name, self._start.head)
        plan = self._plan(option, session, shares)
        base, tree = self._origin(session)
        if self._start.is_anew:
            session = replace(session, interrupt=None)
        decision = self._decision(session)
        if session.interrupt is not None and decision is None:
            return self._still_waiting(session, session.interrupt, plan)
        label = naming.sandbox(run_id, task.id, name)
        rescue_ref = naming.rescue_ref(run_id, task.id, name)
        opened = self._tools.repository.open_sandbox(label, base, tree, rescue_ref=rescue_ref)
        with closing(opened) as sandbox, self._rescuing(sandbox):
            self._tools.emit(SandboxOpened(task=task.id, candidate=name, base=base, tree=tree))
            work = Work(
                task=task,
                goal=self._context.goal,
                run_id=run_id,
                session=session,
                plan=plan,
                tree=tree,
                ref=naming.ref(run_id, task.id, name),
                option=option,
                observation=self._observation(session),
                answer=self._answer(option),
                is_relay=self._mode is Mode.RELAY,
                resume=self._resume(session, decision),
            )
            return (
                self._set_up(sandbox, work)
                or PlanLoop(self._tools, self._worker(), sandbox, work).run()
            )

    def _decision(self, session: SessionRecord) -> Decision | None:
        """Return the answer to what the session's interrupt asks."""
        if session.interrupt is None:
            return None
        return suspension.answered(session.interrupt, self._start.answers)

    def _resume(self, session: SessionRecord, decision: Decision | None) -> Resume | None:
        if session.interrupt is None or decision is None:
            return None
        return suspension.resume(session.interrupt, decision, self._tools.calls)

    def _still_waiting(self, session: SessionRecord, saved: Interrupt, plan: Plan) -> Ended:
        """Ask again: a crash, or a person who has named the task, came before the answer."""
        draft = suspension.question(self._task, saved)
        return Ended(
            candidate=session.candidate,
            stop=StopReason(Axis.DEFER, draft.kind),
            tree=saved.checkpoint.tree,
            base=Sha(saved.checkpoint.base),
            plan=plan,
            ref=naming.ref(self._context.run_id, self._task.id, session.candidate),
            drafts=(draft,),
        )

    @contextmanager
    def _rescuing(self, sandbox: Sandbox) -> Iterator[None]:
        """Save the files of a step that is cut short: by the user, or by machinery that broke."""
        try:
            yield
        except BaseException:
            if notice := rescue_notice(sandbox.rescue(), self._task.id):
                self._tools.emit(notice)
            raise

    def _worker(self) -> Worker:
        return self._context.workers[self._task.worker or self._settings.loop.worker]

    def _origin(self, session: SessionRecord) -> tuple[Sha, str]:
        """Return commit and tree of the worktree: new, carried onto the head, or as it was left.

        Work that goes on is put onto the present head where its diff applies there, so that it is
        judged once and where it will land. A step in its middle stays on the files that it knows:
        one that waits for a person, and one whose model has answered already.
        """
        repository, head = self._tools.repository, self._start.head
        if self._start.returned is not None:
            return head, self._start.tree or repository.tree_of(head)
        if self._start.is_anew:
            return head, repository.tree_of(head)
        checkpoint = session.newest
        is_begun = session.interrupt is not None or self._has_replies(session)
        if checkpoint is None or not checkpoint.base:
            base = session.base if is_begun else head
            return base, repository.tree_of(base)
        if checkpoint.base == head or is_begun:
            return Sha(checkpoint.base), checkpoint.tree
        carried = repository.carry(checkpoint.base, checkpoint.tree, head)
        if carried.tree is None:
            return Sha(checkpoint.base), checkpoint.tree
        return head, carried.tree

    def _has_replies(self, session: SessionRecord) -> bool:
        replies = self._tools.replies
        return replies is not None and bool(replies.replies(session.id, session.iteration + 1))

    def _observation(self, session: SessionRecord) -> str:
        if self._start.returned is not None:
            return self._start.observation
        if self._start.is_anew:
            return ""
        return session.newest.observation if session.newest is not None else ""

    def _plan(self, option: Option | None, session: SessionRecord, shares: int) -> Plan:
        budget = forks.share(self._budget(), shares)
        goal = self._context.goal.text
        if session.newest is None or self._start.is_anew:
            if self._mode is not Mode.RELAY and self._worker().makes_plans:
                return Plan(goal=goal, budget=budget)
            return single_todo(goal, todo_text(self._task, option), budget)
        plan = session.newest.plan
        caps = replace(
            plan.budget,
            loops_max=budget.loops_max,
            tokens_max=budget.tokens_max,
            wall_max_ms=budget.wall_max_ms,
            usd_max=budget.usd_max,
        )
        # A candidate that is stuck stays so where nothing that could help it has happened.
        is_helped = self._answer(option) is not None or self._start.returned is not None
        progress = () if is_helped else plan.progress
        plan = replace(plan, budget=caps, status=PlanStatus.ACTIVE, stop=None, progress=progress)
        if self._start.returned is not None:
            return plan if self._start.is_to_be_asked else self._taken_back(plan)
        return self._to_be_judged(plan) if self._is_loosened() else plan

    def _is_loosened(self) -> bool:
        """The newest answer lets a result land that the gate has refused so far."""
        answer = self._start.answers[-1] if self._start.answers else None
        return (
            answer is not None
            and questions.is_about_baseline(answer)
            and answer.answer == Baseline.NO_NEW_FAILURES
        )

    def _to_be_judged(self, plan: Plan) -> Plan:
        """Close the todo that the gate's refusal has opened: the work is judged as it stands."""
        last = len(plan.todos) - 1
        if any(todo.status in OPEN_TODOS for todo in plan.todos[:last]):
            return plan
        return plan.with_todo(last, status=TodoStatus.DONE)

    def _taken_back(self, plan: Plan) -> Plan:
        """Open the last todo of a plan whose result came back from its landing.

        The step that it takes to catch up with the head is not the worker's fault, so it is given
        one more; each task that lands meanwhile can cause one such step, so there is an end.
        """
        budget = replace(plan.budget, loops_used=max(0, plan.budget.loops_used - 1))
        last = len(plan.todos) - 1
        plan = replace(plan, budget=budget)
        return plan.with_todo(last, status=TodoStatus.ACTIVE, summary="")

    def _answer(self, option: Option | None) -> str | None:
        """Return the newest answer to what this candidate has asked."""
        answers = tuple(
            one
            for one in self._start.answers
            if not consent.is_consent(one) and not questions.is_about_landing(one)
        )
        if option is not None:
            answers = tuple(one for one in answers if forks.is_asked_by(one, option.name))
        return answers[-1].answer if answers else None

    def _capped(self, task: Task) -> Task:
        """Return the task with the caps that count: its own, else those of the settings."""
        caps, defaults = task.budget, self._settings.budget
        spends = (task.worker or self._settings.loop.worker) != "command"
        tokens = defaults.task_tokens if caps.tokens is None else caps.tokens
        usd = defaults.task_usd if caps.usd is None else caps.usd
        limits = Limits(
            tokens=tokens if spends else None,
            usd=usd if spends else None,
            loops=defaults.loops if caps.loops is None else caps.loops,
            wall_s=defaults.wall_s if caps.wall_s is None else caps.wall_s,
        )
        baseline = task.baseline or self._settings.gate.baseline
        return replace(task, budget=limits, baseline=baseline)

    def _budget(self) -> Budget:
        caps = self._task.budget
        return Budget(
            loops_max=caps.loops,
            tokens_max=caps.tokens,
            usd_max=caps.usd,
            wall_max_ms=None if caps.wall_s is None else int(caps.wall_s * 1000),
        )

    def _set_up(self, sandbox: Sandbox, work: Work) -> Ended | None:
        """Run ``setup_cmd``; a machine on which it fails is a decision, not a failure.

        Nothing is run of a task that cannot be undone and that nobody has approved.
        """
        permission = self._tools.permission
        withheld = permission.withheld(self._task) if permission is not None else None
        if withheld is not None:
            return _put_aside(sandbox, work, withheld)
        command = self._settings.sandbox.setup_cmd
        if not command:
            return None
        result = sandbox.run(command, timeout_s=self._settings.gate.timeout_s)
        if result.returncode == 0:
            return None
        tail = result.stdout[-2048:].decode("utf-8", "replace").strip()
        what = f"setup_cmd `{command}` ended with exit code {result.returncode}: {tail}."
        return _put_aside(sandbox, work, questions.environment(self._task, what))


def _put_aside(sandbox: Sandbox, work: Work, draft: DecisionDraft) -> Ended:
    """Return the end of a candidate of which no step was issued."""
    return Ended(
        candidate=work.session.candidate,
        stop=StopReason(Axis.DEFER, draft.kind),
        tree=work.tree,
        base=sandbox.base,
        plan=work.plan,
        ref=work.ref if work.session.newest is not None else "",
        drafts=(draft,),
    )
