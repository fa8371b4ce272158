"""One candidate in its worktree: from opening it to closing it, and a step that was interrupted."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from loopctl.domain import Axis, Baseline, Decision, DecisionDraft, Sha, StopReason
from loopctl.engine import naming, questions, suspension
from loopctl.engine.planloop import PlanLoop
from loopctl.engine.recovery import rescue_notice
from loopctl.engine.work import Ended, Tools, Work
from loopctl.events import SandboxOpened
from loopctl.plan import OPEN_TODOS, Interrupt, Plan, TodoStatus
from loopctl.ports import Sandbox, Worker
from loopctl.settings import Settings


class Candidates:
    """Works on the candidates of one task; any of its threads may.

    However they come about, no more than ``beam_width`` of their worktrees stand at any time.

    Args:
        worker: Returns the task's worker.
        answers: The task's answered decisions, oldest first.
    """

    def __init__(
        self,
        tools: Tools,
        settings: Settings,
        worker: Callable[[], Worker],
        answers: Sequence[Decision],
    ) -> None:
        self._tools = tools
        self._settings = settings
        self._worker = worker
        self._answers = tuple(answers)
        self._places = threading.BoundedSemaphore(settings.sandbox.beam_width)

    def work(self, work: Work, base: Sha) -> Ended:
        """Return how the work ended, or came to a fork; its worktree is gone, its tree is kept.

        Raises:
            SandboxError: No sandbox could be made.
            CancelledError: The run was asked to stop; checkpoints stand.
        """
        saved = work.session.interrupt
        if saved is not None:
            decision = suspension.answered(saved, self._answers)
            if decision is None:
                return _still_waiting(work, saved)
            work = replace(work, resume=suspension.resume(saved, decision, self._tools.calls))
        with self._places, self._opened(work, base) as sandbox:
            width = self._settings.sandbox.beam_width
            return (
                self._set_up(sandbox, work)
                or PlanLoop(self._tools, self._worker(), sandbox, work, width).run()
            )

    @contextmanager
    def _opened(self, work: Work, base: Sha) -> Iterator[Sandbox]:
        """Open the worktree; save the files of a step that is cut short in it."""
        place = (work.run_id, work.task.id, work.session.candidate)
        rescue_ref = naming.rescue_ref(*place)
        opened = self._tools.repository.open_sandbox(
            naming.sandbox(*place), base, work.tree, rescue_ref=rescue_ref
        )
        with closing(opened) as sandbox, self._rescuing(sandbox, work):
            self._tools.emit(
                SandboxOpened(
                    task=work.task.id, candidate=work.session.candidate, base=base, tree=work.tree
                )
            )
            yield sandbox

    @contextmanager
    def _rescuing(self, sandbox: Sandbox, work: Work) -> Iterator[None]:
        """Save the files of a step that is cut short: by the user, or by machinery that broke."""
        try:
            yield
        except BaseException:
            if notice := rescue_notice(sandbox.rescue(), work.task.id):
                self._tools.emit(notice)
            raise

    def _set_up(self, sandbox: Sandbox, work: Work) -> Ended | None:
        """Run ``setup_cmd``; a machine on which it fails is a decision, not a failure.

        Nothing is run of a task that cannot be undone and that nobody has approved.
        """
        permission = self._tools.permission
        withheld = permission.withheld(work.task) if permission is not None else None
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
        return _put_aside(sandbox, work, questions.environment(work.task, what))


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


def _still_waiting(work: Work, saved: Interrupt) -> Ended:
    """Ask again: a crash, or a person who has named the task, came before the answer."""
    draft = suspension.question(work.task, saved)
    return Ended(
        candidate=work.session.candidate,
        stop=StopReason(Axis.DEFER, draft.kind),
        tree=saved.checkpoint.tree,
        base=Sha(saved.checkpoint.base),
        plan=work.plan,
        ref=work.ref,
        drafts=(draft,),
    )


def is_loosened(answers: Sequence[Decision]) -> bool:
    """Say whether the newest answer lets a result land that the gate has refused so far."""
    answer = answers[-1] if answers else None
    return (
        answer is not None
        and questions.is_about_baseline(answer)
        and answer.answer == Baseline.NO_NEW_FAILURES
    )


def to_be_judged(plan: Plan) -> Plan:
    """Close the todo that the gate's refusal has opened: the work is judged as it stands."""
    last = len(plan.todos) - 1
    if any(todo.status in OPEN_TODOS for todo in plan.todos[:last]):
        return plan
    return plan.with_todo(last, status=TodoStatus.DONE)
