"""Tries the options of a fork that was met inside a task, and has the plan go on from the winner.

Each option is a candidate with a session of its own, in a worktree off the tree at the fork. Its
session begins with a checkpoint that is made from the parent's; its last one says how it ended and
holds the gate's evidence. So whatever a process that dies has done of it is found again: a
candidate that has ended is neither worked on nor judged a second time.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from loopctl.domain import Axis, Decision, Option, Sha, Task
from loopctl.engine import forks, naming
from loopctl.engine.candidate import Candidates, is_loosened, to_be_judged
from loopctl.engine.differing import Differing
from loopctl.engine.judging import evidence, read_evidence
from loopctl.engine.terminator import is_of_run
from loopctl.engine.turns import remembered
from loopctl.engine.work import Ended, Tools, Trial, Work
from loopctl.events import CandidateEnded, ForkResolved
from loopctl.fencing import clean, cut
from loopctl.forking import Fork, Forks
from loopctl.past import Past
from loopctl.plan import (
    OPEN_TODOS,
    Budget,
    Checkpoint,
    Plan,
    PlanStatus,
    Repeats,
    Todo,
    TodoStatus,
)
from loopctl.records import SessionRecord
from loopctl.verdict import Verdict

_SUMMARY_CHARS: Final = 2000
_EVIDENCE_BYTES: Final = 1500
"""Of each option's gate, when it goes back to the plan."""

_ENDS: Final = frozenset({Axis.GOAL, Axis.STALL, Axis.BUDGET})
"""Ends of a candidate that stand: it is not taken up again in the same fork."""


class Beam:
    """The forks of one task's candidates.

    Args:
        candidates: Works on what is tried.
        answers: The task's answered decisions, oldest first.
        width: So many options are tried, side by side; two where it is less, one after the other.
        differing: Picks among those that pass.
    """

    def __init__(
        self,
        tools: Tools,
        candidates: Candidates,
        answers: Sequence[Decision],
        width: int,
        differing: Differing,
    ) -> None:
        self._differing = differing
        self._tools = tools
        self._candidates = candidates
        self._answers = tuple(answers)
        self._width = width

    def taken_up(self, parent: Work) -> Work:
        """Return the work as its newest checkpoint has it: at a fork, or after one."""
        session = self._session(parent, parent.session.candidate, Sha(parent.session.base))
        newest = session.newest
        if newest is None:
            return parent
        return replace(
            parent,
            session=session,
            plan=newest.plan,
            tree=newest.tree,
            observation=newest.observation,
            resume=None,
        )

    def run(self, parent: Work, base: Sha) -> Ended | None:
        """Try the fork that the parent's plan is at.

        Returns:
            ``None`` where the plan goes on: from the winner, or, where no option has passed, from
            the fork with the evidence. What it goes on from is saved. Else the end: the winner
            has come to the end of the plan, somebody is asked, or the run has nothing to spend.
        """
        fork = parent.plan.forks.tried
        if fork is None:
            raise ValueError("the plan is at no fork")
        works = [
            self._trial(parent, base, fork, number) for number in range(1, len(fork.options) + 1)
        ]
        with ThreadPoolExecutor(self._width, thread_name_prefix=parent.task.id) as pool:
            scored = list(pool.map(lambda work: self._score(work, base), works))
        tried = dict(zip((work.session.candidate for work in works), fork.options, strict=True))
        pick = self._differing.pick(scored, tried, fork.question)
        if pick.asking is not None:
            return self._of_parent(parent, base, pick.asking)
        winner = pick.winner
        if winner is None and (end := self._unresolved(parent, base, scored)) is not None:
            return end
        self._tell(parent, fork, winner, pick.reason)
        ends = [one.ended for one in scored]
        if winner is None:
            self._save(parent, base, works, self._fruitless(parent, fork, scored))
            return None
        return self._go_on(parent, base, works, ends, winner.ended)

    def _trial(self, parent: Work, base: Sha, fork: Fork, number: int) -> Work:
        """Return the work on one option, begun now or taken up."""
        option = fork.options[number - 1]
        name = naming.trial(parent.session.candidate, fork.number, number, option.name)
        session = self._session(parent, name, base)
        if session.newest is None:
            seed = _seed(parent, base, fork, option)
            self._tools.sessions.save_checkpoint(session.id, parent.session.iteration, seed)
            session = self._session(parent, name, base)
        newest = session.newest or _seed(parent, base, fork, option)
        asked = [one for one in self._answers if forks.is_asked_by(one, name)]
        plan = newest.plan
        if session.interrupt is None and not _has_ended(session):
            plan = replace(plan, status=PlanStatus.ACTIVE, stop=None)
            plan = replace(plan, progress=()) if asked else plan
            plan = to_be_judged(plan) if asked and is_loosened(asked) else plan
        return replace(
            parent,
            session=session,
            plan=plan,
            tree=newest.tree,
            ref=naming.ref(parent.run_id, parent.task.id, name),
            option=_laid_over(parent.option, option),
            observation=newest.observation,
            answer=asked[-1].answer if asked else parent.answer,
            resume=None,
            trial=Trial(fork, _is_partial(parent.plan)),
        )

    def _session(self, parent: Work, name: str, base: Sha) -> SessionRecord:
        return self._tools.sessions.open_session(parent.run_id, parent.task.id, name, base)

    def _score(self, work: Work, base: Sha) -> forks.Scored:
        if _has_ended(work.session):
            ended = self._as_it_ended(work)
        else:
            ended = self._candidates.work(work, base)
        return tell_end(self._tools, work.task, ended)

    def _as_it_ended(self, work: Work) -> Ended:
        """Return the end of a candidate that another process has seen."""
        newest, repository = work.session.newest, self._tools.repository
        if newest is None or newest.plan.stop is None:
            raise ValueError(f"{work.session.id} has not ended")
        base = Sha(newest.base)
        summaries = [todo.summary for todo in newest.plan.todos if todo.summary]
        return Ended(
            candidate=work.session.candidate,
            stop=newest.plan.stop,
            tree=newest.tree,
            base=base,
            plan=newest.plan,
            ref=work.ref if newest.tree != repository.tree_of(base) else "",
            gate=read_evidence(newest.gate) if newest.gate else None,
            result="\n".join(summaries),
        )

    def _unresolved(self, parent: Work, base: Sha, scored: Sequence[forks.Scored]) -> Ended | None:
        """Return the end where a fork stays open: candidates ask, or the run's money is spent.

        That a candidate has spent its share asks nobody: the plan has the rest.
        """
        asking = [one for one in scored if one.ended.drafts and one.ended.stop.axis is Axis.DEFER]
        broke = next((one.ended for one in scored if is_of_run(one.ended.stop)), None)
        if not asking and broke is None:
            return None
        found = forks.without_winner(asking) if asking else broke
        return self._of_parent(parent, base, found) if found is not None else None

    def _of_parent(self, parent: Work, base: Sha, found: Ended) -> Ended:
        is_made = parent.tree != self._tools.repository.tree_of(base)
        return replace(
            found,
            candidate=parent.session.candidate,
            tree=parent.tree,
            base=base,
            plan=parent.plan,
            ref=parent.ref if is_made else "",
            gate=None,
            result="",
        )

    def _tell(self, parent: Work, fork: Fork, winner: forks.Scored | None, why: str) -> None:
        if winner is None:
            name, reason = None, "no option passed the gate"
        else:
            gate = winner.ended.gate
            is_whole = gate is None or gate.is_passed
            how = "passes the gate" if is_whole else "makes nothing worse, todos are left"
            how = f"{how}; {why}" if why else how
            name = winner.ended.candidate
            reason = f"{how} with {winner.changed_lines} changed lines"
        self._tools.emit(
            ForkResolved(task=parent.task.id, winner=name, reason=reason, question=fork.question)
        )

    def _go_on(
        self, parent: Work, base: Sha, works: Sequence[Work], ends: Sequence[Ended], winner: Ended
    ) -> Ended | None:
        """Have the plan go on from the winner's tree, with what the winner has been through."""
        plan = _resolved(parent.plan, [one.plan.budget for one in ends])
        summary = winner.result[:_SUMMARY_CHARS]
        plan = plan.with_todo(plan.cursor, status=TodoStatus.DONE, summary=summary)
        plan = replace(plan, progress=(), repeats=Repeats())
        work = next(one for one in works if one.session.candidate == winner.candidate)
        session = self._session(work, winner.candidate, base)
        past = _past(session)
        is_whole = plan.is_goal_met and winner.gate is not None and winner.gate.is_passed
        if is_whole:
            plan = replace(plan, status=PlanStatus.COMPLETE, stop=winner.stop)
        message = f"{parent.task.id}: taken over from {winner.candidate}"
        self._tools.repository.keep(parent.ref, winner.tree, base, message)
        gate = evidence(winner.gate) if is_whole and winner.gate is not None else ""
        checkpoint = Checkpoint(plan=plan, tree=winner.tree, base=base, past=past, gate=gate)
        self._save(parent, base, works, checkpoint)
        if not is_whole:
            return None
        results = [todo.summary for todo in plan.todos if todo.summary]
        return replace(
            winner,
            candidate=parent.session.candidate,
            plan=plan,
            ref=parent.ref,
            result="\n".join(results) or winner.result,
        )

    def _fruitless(self, parent: Work, fork: Fork, scored: Sequence[forks.Scored]) -> Checkpoint:
        """Return the checkpoint with which the evidence of a fork goes back to its plan."""
        plan = _resolved(parent.plan, [one.ended.plan.budget for one in scored])
        plan = replace(plan, forks=replace(plan.forks, fruitless=plan.forks.fruitless + 1))
        lines = [f"The options of the fork {fork.question!r} were tried, and none passed the gate:"]
        for one, option in zip(scored, fork.options, strict=True):
            lines.append(f"- {option.name}: {self._how(one.ended)}")
        if fork.left_out:
            lines.append(f"Not tried: {', '.join(fork.left_out)}.")
        lines.append("Go on without another trial: the next one that fails ends the task.")
        words = "\n".join(lines)
        past = remembered(_past(parent.session), parent.session.iteration, words)
        return Checkpoint(plan=plan, tree=parent.tree, observation=words, past=past)

    def _how(self, ended: Ended) -> str:
        """Return how an option that did not pass has ended, for the worker."""
        words = f"{ended.stop.axis}: {ended.stop.reason}"
        if ended.gate is None:
            return words
        return f"{words}. {cut(clean(self._tools.describe(ended.gate)), _EVIDENCE_BYTES)}"

    def _save(self, parent: Work, base: Sha, works: Sequence[Work], checkpoint: Checkpoint) -> None:
        """Save what the plan goes on from, under a number after all steps of the fork."""
        sessions = [self._session(work, work.session.candidate, base) for work in works]
        last = max(session.iteration for session in sessions)
        iteration = max(last, parent.session.iteration + 1)
        checkpoint = replace(checkpoint, base=base)
        self._tools.sessions.save_checkpoint(parent.session.id, iteration, checkpoint)


def tell_end(tools: Tools, task: Task, ended: Ended) -> forks.Scored:
    """Return a candidate with the size of its diff; its end is told."""
    lines = tools.repository.changed_lines(tools.repository.tree_of(ended.base), ended.tree)
    judged = ended.gate.verdict if ended.gate is not None else Verdict.UNKNOWN
    is_whole = ended.is_passed and (ended.gate is None or ended.gate.is_passed)
    tools.emit(
        CandidateEnded(
            task=task.id,
            name=ended.candidate,
            verdict=Verdict.PASS if is_whole else judged,
            ref=ended.ref,
            reason=f"{ended.stop.axis}: {ended.stop.reason}",
            changed_lines=lines,
        )
    )
    return forks.Scored(ended, lines)


def _seed(parent: Work, base: Sha, fork: Fork, option: Option) -> Checkpoint:
    """Return what a candidate begins with: the fork's tree, and the todo that it was met in.

    What is left of the budget is shared by the candidates and the plan, which has to go on.
    """
    plan, active = parent.plan, parent.plan.active
    closed = tuple(todo for todo in plan.todos if todo.status not in OPEN_TODOS)
    mine = Todo(id=active.id, text=active.text) if active is not None else Todo("1", plan.goal)
    own = Plan(
        goal=plan.goal,
        todos=(*closed, mine),
        budget=forks.share(forks.left(plan.budget), len(fork.options) + 1),
        forks=Forks(settled=plan.forks.settled),
    )
    words = (
        f"At the fork {fork.question!r} you try one option: {option.name}. Other options are tried "
        "by others, and the gate picks; close the todo once its result is in the files."
    )
    return Checkpoint(
        plan=own.with_cursor(),
        tree=parent.tree,
        base=base,
        observation=words,
        past=_past(parent.session),
    )


def _past(session: SessionRecord) -> Past:
    return session.newest.past if session.newest is not None else Past()


def _has_ended(session: SessionRecord) -> bool:
    """Say whether a candidate's end stands; one that asks, or had no money, goes on."""
    if session.interrupt is not None or session.checkpoint is None:
        return False
    stop = session.checkpoint.plan.stop
    return stop is not None and stop.axis in _ENDS and not is_of_run(stop)


def _is_partial(plan: Plan) -> bool:
    """Say whether todos are left that come after the one that the fork was met in."""
    return any(
        todo.status in OPEN_TODOS for number, todo in enumerate(plan.todos) if number != plan.cursor
    )


def _resolved(plan: Plan, spent: Sequence[Budget]) -> Plan:
    """Return the plan with its fork behind it, and what the candidates have spent."""
    budget = forks.together(plan.budget, spent)
    return replace(plan, budget=budget, forks=replace(plan.forks, tried=None))


def _laid_over(own: Option | None, option: Option) -> Option:
    """Return the way of a candidate: that of its task's option, where it has one, and the fork's."""
    if own is None:
        return option
    prompt = "\n".join(text for text in (own.prompt, option.prompt) if text)
    return replace(option, prompt=prompt, command=own.command)
