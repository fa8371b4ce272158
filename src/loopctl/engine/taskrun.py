"""One task from its claim to its end, in a thread of its own: sandboxes, plan loops, the pick.

Nothing here touches the manifest, the branch or the end of the run: those are the driver's.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from loopctl.domain import Decision, Goal, Limits, Mode, Option, Sha, Task
from loopctl.engine import consent, forks, naming, questions
from loopctl.engine.answers import as_answered
from loopctl.engine.beam import Beam, tell_end
from loopctl.engine.candidate import Candidates, is_loosened, to_be_judged
from loopctl.engine.differing import Differing
from loopctl.engine.progress import StallLimits
from loopctl.engine.work import Ended, Tools, Work, todo_text
from loopctl.events import ForkResolved
from loopctl.plan import Budget, Plan, PlanStatus, TodoStatus, single_todo
from loopctl.ports import Worker
from loopctl.records import SessionRecord
from loopctl.settings import Settings


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
        width = self._settings.sandbox.beam_width
        self._candidates = Candidates(self._tools, self._settings, self._worker, start.answers)
        self._differing = Differing(self._tools, context.goal, self._task, start.answers)
        self._beam = Beam(self._tools, self._candidates, start.answers, width, self._differing)

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
        chosen = self._differing.chosen([option.name for option in options])
        entrants = [option for option in options if option.name == chosen] or options
        with ThreadPoolExecutor(width, thread_name_prefix=self._task.id) as pool:
            scored = list(pool.map(lambda option: self._score(option, len(options)), entrants))
        pick = self._differing.pick(scored, {option.name: option for option in options})
        if pick.asking is not None:
            return pick.asking
        winner, reason = pick.winner, "no candidate passed the gate"
        if winner is not None:
            why = pick.reason or "smallest passing diff"
            reason = f"{why}, {winner.changed_lines} changed lines"
        self._tools.emit(
            ForkResolved(
                task=self._task.id,
                winner=winner.ended.candidate if winner else None,
                reason=reason,
            )
        )
        return winner.ended if winner else forks.without_winner(scored)

    def _score(self, option: Option, shares: int) -> forks.Scored:
        return tell_end(self._tools, self._task, self._candidate(option, shares))

    def _candidate(self, option: Option | None, shares: int) -> Ended:
        """Return how one candidate ended, its forks tried on the way."""
        name = option.name if option is not None else naming.MAIN
        run_id, task = self._context.run_id, self._task
        session = self._tools.sessions.open_session(run_id, task.id, name, self._start.head)
        plan = self._plan(option, session, shares)
        base, tree = self._origin(session)
        if self._start.is_anew:
            session = replace(session, interrupt=None)
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
        )
        return self._work(work, base)

    def _work(self, work: Work, base: Sha) -> Ended:
        while True:
            if work.plan.forks.tried is None:
                ended = self._candidates.work(work, base)
                if not ended.is_forked:
                    return ended
                work = self._beam.taken_up(work)
            end = self._beam.run(work, base)
            if end is not None:
                return end
            work = self._beam.taken_up(work)

    def _worker(self) -> Worker:
        return self._context.workers[self._task.worker or self._settings.loop.worker]

    def _origin(self, session: SessionRecord) -> tuple[Sha, str]:
        """Return commit and tree of the worktree: new, carried onto the head, or as it was left.

        Work that goes on is put onto the present head where its diff applies there, so that it is
        judged once and where it will land. A step in its middle stays on the files that it knows:
        one that waits for a person, and one whose model has answered already. So does a fork.
        """
        repository, head = self._tools.repository, self._start.head
        if self._start.returned is not None:
            return head, self._start.tree or repository.tree_of(head)
        if self._start.is_anew:
            return head, repository.tree_of(head)
        checkpoint = session.newest
        is_begun = session.interrupt is not None or self._has_replies(session)
        is_begun = is_begun or (checkpoint is not None and checkpoint.plan.forks.tried is not None)
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
        forked = replace(plan.forks, fruitless=0) if is_helped else plan.forks
        plan = replace(
            plan,
            budget=caps,
            status=PlanStatus.ACTIVE,
            stop=None,
            progress=progress,
            forks=forked,
        )
        if self._start.returned is not None:
            return plan if self._start.is_to_be_asked else self._taken_back(plan)
        is_judged_now = is_loosened(self._start.answers) and plan.forks.tried is None
        return to_be_judged(plan) if is_judged_now else plan

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
            if not (
                consent.is_consent(one)
                or questions.is_about_landing(one)
                or questions.is_about_differing(one)
            )
        )
        if option is not None:
            answers = tuple(one for one in answers if forks.is_asked_by(one, option.name))
        else:
            answers = tuple(one for one in answers if not forks.is_asked_by_some(one))
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
