"""Issues the steps of one candidate: makes each request, and gives it to the worker.

What a request carries beside the plan is kept here: where calls and replies are counted from, what
the candidate has been through, what was recalled for each todo.
"""

from typing import Final

from loopctl.contextports import Memory
from loopctl.domain import Limits, Option, Task
from loopctl.engine import stages
from loopctl.engine.pursuit import Step, Watch, pursue
from loopctl.engine.turns import has_begun, remembered
from loopctl.engine.work import Tools, Work, todo_text
from loopctl.past import Past
from loopctl.plan import Budget, Plan, Todo
from loopctl.ports import Sandbox, Worker
from loopctl.steps import REPLIES_MAX, Resume, StepRequest

PLANNING: Final = "Break the task down into an ordered list of todos."
"""The sub-goal of a planning step."""

RECALLED: Final = 5
"""Memories for its task that a step is shown at most."""

RECALLED_MORE: Final = 2
"""Memories for its todo that it is shown beside them; they are sent anew in every step."""


class Issuer:
    """One instance issues all steps of one :class:`Work`.

    Attributes:
        past: What the candidate has been through; for the checkpoint.
        first_call: The ordinal of the next step's first tool call.
        first_reply: The number of its first reply.
    """

    def __init__(self, tools: Tools, worker: Worker, sandbox: Sandbox, work: Work) -> None:
        self._tools = tools
        self._worker = worker
        self._sandbox = sandbox
        self._work = work
        session = work.session
        self._resume = work.resume
        self.past = session.newest.past if session.newest is not None else Past()
        self.first_call = session.interrupt.first_call if session.interrupt is not None else 0
        self.first_reply = session.interrupt.first_reply if session.interrupt is not None else 0
        self._recalled: dict[str, tuple[Memory, ...]] = {}

    def tend(self, iteration: int, budget: Budget) -> None:
        """Keep the past short before a step; one that goes on has been tended before.

        What summaries cost is bounded by the task's caps, as they stand in its ``budget``.
        """
        compactor, work = self._tools.compactor, self._work
        if compactor is not None and not has_begun(self.past, iteration):
            caps = Limits(tokens=budget.tokens_max, usd=budget.usd_max)
            self.past = compactor.tend(work.session.id, work.task.id, self.past, caps)

    def issue(
        self, iteration: int, plan: Plan, observation: str, *, is_planning: bool = False
    ) -> Step:
        """Return what the step came to; one that was cut short can be issued again as it was.

        Raises:
            SandboxError: The sandbox is gone; the step did not happen.
            CancelledError: The run was asked to stop.
        """
        work, todo = self._work, plan.active
        resume, self._resume = self._resume, None
        text = planning(work.task) if is_planning else todo.text if todo is not None else ""
        request = StepRequest(
            session_id=work.session.id,
            loop_iteration=iteration,
            step_goal="" if work.is_relay else text,
            goal=work.goal,
            task=work.task,
            run_id=work.run_id,
            option=work.option,
            candidate=work.session.candidate,
            tier=tier(
                work.task,
                work.option,
                None if is_planning else todo,
                is_trial=work.trial is not None,
            ),
            past=self.past,
            todos=tuple(todo_line(todo) for todo in plan.todos),
            known=self._known(),
            recalled=() if is_planning or todo is None else self._recall(todo),
            replies=self._replies(iteration),
            observation=observation,
            answer=work.answer,
            settled=plan.forks.settled,
            budget=plan.budget,
            is_planning=is_planning,
            resume=resume,
            first_call=self.first_call,
            first_reply=self.first_reply,
        )
        watch = Watch(work.session.candidate, self._tools.emit, self._tools.stall.stuck_steps)
        step = pursue(self._worker, request, self._sandbox, watch)
        if step.is_cut:
            self._resume = resume
        return step

    def planned(self, iteration: int, step: Step) -> None:
        """A planning step is over: the iteration goes on, and so do its numbers."""
        self.first_call = max(self.first_call, step.next_call)
        self.first_reply += REPLIES_MAX
        self.past = remembered(self.past, iteration, step.turn)

    def over(self, iteration: int, step: Step) -> None:
        """A step is over, and to be remembered."""
        self.past = remembered(self.past, iteration, step.turn)

    def hear(self, work: Work) -> None:
        """Let all further steps know what somebody who is there has answered."""
        self._work = work

    def take_up(self, resume: Resume) -> None:
        """Let the next step that is issued be the one that was interrupted."""
        self._resume = resume

    def saved(self) -> None:
        """The iteration has its checkpoint: the next one counts from the beginning."""
        self.first_call = self.first_reply = 0

    def _replies(self, iteration: int) -> tuple[str, ...]:
        replies = self._tools.replies
        if replies is None:
            return ()
        return replies.replies(self._work.session.id, iteration, self.first_reply)

    def _known(self) -> tuple[Memory, ...]:
        """Return what may matter for the task; asked once for a candidate."""
        recall, known, key = self._tools.recall, self._tools.known, self._work.session.id
        if recall is not None and key not in known:
            task = self._work.task
            text = todo_text(task, self._work.option)
            known[key] = recall.recall(f"{text}\n{task.title}", RECALLED)
        return known.get(key, ())

    def _recall(self, todo: Todo) -> tuple[Memory, ...]:
        """Return what else may matter for a todo; asked once for each."""
        recall, known = self._tools.recall, self._known()
        if recall is not None and todo.id not in self._recalled:
            found = recall.recall(f"{todo.text}\n{self._work.task.title}", RECALLED)
            more = [memory for memory in found if not _stands_in(memory, known)]
            self._recalled[todo.id] = tuple(more[:RECALLED_MORE])
        return self._recalled.get(todo.id, ())


def planning(task: Task) -> str:
    """Return the sub-goal of a task's planning step."""
    return stages.planning(task) if task.is_prose else PLANNING


def tier(task: Task, option: Option | None, todo: Todo | None, *, is_trial: bool = False) -> str:
    """Return which model does a step: the task's own word, or what the step is worth.

    The final text of a prose task is the premium model's, whatever the task says. What tries
    an option of a fork is cheap, whatever it says: the gate looks at it, and where none passes the
    plan goes on with the task's own model.

    Args:
        task: Which says so, or does not.
        option: Where the candidate is one of several.
        todo: Which the step pursues; ``None`` where it makes the plan.
        is_trial: It tries an option of a fork that was met inside the task.
    """
    if is_trial:
        return "cheap"
    if stages.is_synthesis(todo):
        return "premium"
    if task.model is not None:
        return task.model
    if todo is None:
        return "premium"
    return "cheap" if option is not None else "standard"


def _stands_in(memory: Memory, known: tuple[Memory, ...]) -> bool:
    return any((memory.source, memory.text) == (one.source, one.text) for one in known)


def todo_line(todo: Todo) -> str:
    """Return a todo as the worker sees it: its status, its text, and what it came to."""
    words = f"{todo.status}: {todo.text}"
    if todo.summary:
        words = f"{words} ({todo.summary})"
    return " ".join(words.split())
