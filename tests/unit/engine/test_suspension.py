"""A step that waits for a person in its middle: saved, asked about, taken up at the same call."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loopctl.calls import ApprovalRequired, OutcomeUnknown, ToolCall, ToolResult
from loopctl.domain import (
    APPROVED,
    Axis,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    Sha,
    StopReason,
    Task,
    Usage,
)
from loopctl.engine import outcomes
from loopctl.engine.answers import Answer, check, freed
from loopctl.engine.questions import AGAIN, HAPPENED
from loopctl.engine.taskrun import Start
from loopctl.errors import AnswerError, LedgerConflictError
from loopctl.plan import CallDone, decode_interrupt, encode_interrupt
from loopctl.steps import (
    Deferred,
    InterruptRequired,
    OutputTail,
    PlanProposed,
    StepEvent,
    TodoDone,
    ToolCallFinished,
    ToolCallStarted,
    UsageReported,
    interrupt_for,
)
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
MakeWorker = Callable[..., ScriptedWorker]

CALL = ToolCall("r1/T1/main", 1, 1, "mcp__bank__pay", {"usd": 5})
APPROVAL = interrupt_for(ApprovalRequired(CALL, "it cannot be undone"), b"state")
OUTCOME = interrupt_for(OutcomeUnknown(CALL, "2026-01-02T03:04:05.000Z"), b"state")
SIBLING: tuple[StepEvent, ...] = (
    ToolCallStarted(0, "bash"),
    ToolCallFinished(0, "bash", "made it"),
    ToolCallStarted(1, CALL.tool),
)
SPENT = UsageReported(Usage(prompt_tokens=10, completion_tokens=5, usd=0.5))
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))


def answered(kind: DecisionKind, answer: str, number: int = 1, key: str = CALL.key) -> Decision:
    return Decision(f"T1.{number}", "T1", "r1", kind, "?", answer=answer, call_key=key)


def start(*answers: Decision) -> Start:
    return Start(head=Sha("c1"), answers=answers)


def interrupted(raised: InterruptRequired = APPROVAL, *more: StepEvent) -> ScriptedStep:
    return ScriptedStep(tree="half", events=(*SIBLING, SPENT, *more, raised), seconds=2)


def test_interrupt_becomes_a_decision_with_the_pending_intent(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    ended = bench.run(worker(interrupted()), task())
    assert ended.stop == StopReason(Axis.DEFER, "approval")
    (draft,) = ended.drafts
    assert (draft.kind, draft.call_key, draft.reason) == (
        DecisionKind.APPROVAL,
        CALL.key,
        "it cannot be undone",
    )
    assert draft.question == (
        'T1 wants to call mcp__bank__pay with {"usd":5}. It is asked since it cannot be undone. May it?'
    )
    assert bench.gate.seen == []


def test_interrupted_step_is_not_at_its_end_but_what_it_spent_is_counted(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    ended = bench.run(worker(interrupted()), task())
    assert bench.sessions.saved == []
    record = bench.sessions.records["r1/T1/main"]
    assert (record.iteration, record.checkpoint) == (0, None)
    saved = record.interrupt
    assert (saved.call, saved.blob, saved.done) == (
        CALL,
        b"state",
        (CallDone(0, "bash", "made it"),),
    )
    point = saved.checkpoint
    assert (point.tree, point.base) == ("half", "c1")
    spent = point.plan.budget
    assert (spent.loops_used, spent.tokens_used, spent.usd_used, spent.wall_ms) == (
        0,
        15,
        0.5,
        2000,
    )
    assert (ended.tree, ended.usage.usd) == ("half", 0.5)
    assert bench.repository.trees[bench.repository.refs["refs/loop/r1/T1/main"]] == "half"


def test_approved_step_goes_on_at_exactly_its_call_with_a_token(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.run(worker(interrupted()), task())
    bench.gate.passing = frozenset({"good"})
    hands = worker(ScriptedStep(tree="good", events=DONE))
    ended = bench.run(hands, task(), start(answered(DecisionKind.APPROVAL, "approve")))
    assert ended.is_passed
    (request,) = hands.requests
    assert request.loop_iteration == 1
    assert request.budget.tokens_used == 15
    resume = request.resume
    assert resume is not None
    assert (resume.blob, resume.call_id, resume.done) == (
        b"state",
        1,
        (CallDone(0, "bash", "made it"),),
    )
    assert (resume.is_allowed, resume.approval) == (True, "token for T1.1")
    assert bench.calls.granted == {"T1.1": CALL}
    assert [(number, point.tree) for _, number, point in bench.sessions.saved] == [(1, "good")]
    assert bench.sessions.records["r1/T1/main"].interrupt is None
    assert ended.plan.budget.loops_used == 1


@pytest.mark.parametrize(
    ("answer", "approval"), [(AGAIN, "token for T1.1"), (f"{HAPPENED}: ticket 7", None)]
)
def test_whoever_says_that_a_call_is_to_be_run_again_is_not_asked_for_its_approval_too(
    bench: Any, task: MakeTask, worker: MakeWorker, answer: str, approval: str | None
) -> None:
    bench.run(worker(interrupted(OUTCOME)), task())
    hands = worker(ScriptedStep(tree="good", events=DONE))
    bench.gate.passing = frozenset({"good"})
    assert bench.run(hands, task(), start(answered(DecisionKind.OUTCOME, answer))).is_passed
    resume = hands.requests[0].resume
    assert resume is not None
    assert (resume.is_allowed, resume.approval) == (True, approval)


@pytest.mark.parametrize("answer", ["reject", "no", "approve it, but only once"])
def test_anything_but_an_approval_lets_the_step_go_on_without_the_call(
    bench: Any, task: MakeTask, worker: MakeWorker, answer: str
) -> None:
    bench.run(worker(interrupted()), task())
    hands = worker(ScriptedStep(tree="good", events=DONE))
    bench.run(hands, task(budget=Limits(loops=1)), start(answered(DecisionKind.APPROVAL, answer)))
    resume = hands.requests[0].resume
    assert resume is not None
    assert (resume.is_allowed, resume.approval, resume.answer) == (False, None, answer)
    assert bench.calls.granted == {}


@pytest.mark.parametrize(
    "answers",
    [
        (),
        (answered(DecisionKind.OUTCOME, HAPPENED),),
        (answered(DecisionKind.APPROVAL, "approve", key="another"),),
        (answered(DecisionKind.EXTERNAL, "approve", key=""),),
    ],
)
def test_step_is_not_taken_up_before_its_own_answer(
    bench: Any, task: MakeTask, worker: MakeWorker, answers: tuple[Decision, ...]
) -> None:
    first = bench.run(worker(interrupted()), task())
    hands = worker(ScriptedStep(events=DONE))
    again = bench.run(hands, task(), start(*answers))
    assert hands.requests == []
    assert (again.stop, again.drafts, again.tree) == (first.stop, first.drafts, first.tree)
    assert bench.repository.open == set()


def test_second_interrupt_of_a_step_keeps_what_was_done_before_the_first(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.run(worker(interrupted(APPROVAL, TodoDone("half of it"))), task())
    later = replace(CALL, ordinal=2)
    second = interrupt_for(ApprovalRequired(later), b"later")
    events = (ToolCallFinished(1, CALL.tool, "paid"), second)
    ended = bench.run(
        worker(ScriptedStep(tree="more", events=events)),
        task(),
        start(answered(DecisionKind.APPROVAL, "approve")),
    )
    saved = bench.sessions.records["r1/T1/main"].interrupt
    assert [done.content for done in saved.done] == ["made it", "paid"]
    assert (saved.call, saved.closed, saved.checkpoint.tree) == (later, "half of it", "more")
    assert ended.drafts[0].call_key == later.key


def test_worker_that_cannot_go_on_in_the_middle_takes_the_whole_step_again(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.run(worker(interrupted(replace(APPROVAL, blob=b""))), task())
    hands = worker(ScriptedStep(tree="good", events=DONE))
    bench.gate.passing = frozenset({"good"})
    ended = bench.run(hands, task(), start(answered(DecisionKind.APPROVAL, "approve")))
    assert ended.is_passed
    resume = hands.requests[0].resume
    assert resume is not None
    assert (resume.blob, resume.done, resume.approval) == (b"", (), "token for T1.1")
    opened = bench.of("sandbox_opened")
    assert [event.tree for event in opened] == ["base", "base"]


def test_step_that_destroyed_its_worktree_is_taken_again_as_a_whole(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    class Vandal(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            yield from super().execute_step(request, sandbox)
            sandbox.is_broken = True

    bench.run(Vandal([interrupted()], bench.clock), task())
    saved = bench.sessions.records["r1/T1/main"].interrupt
    assert (saved.blob, saved.done, saved.checkpoint.tree) == (b"", (), "base")


def test_questions_of_an_interrupted_step_are_asked_too(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    draft = DecisionDraft(DecisionKind.EXTERNAL, "Which account?")
    ended = bench.run(worker(interrupted(APPROVAL, Deferred(draft))), task())
    assert [one.kind for one in ended.drafts] == [DecisionKind.APPROVAL, DecisionKind.EXTERNAL]


def test_interrupt_under_the_key_of_another_call_is_an_error(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    foreign = replace(APPROVAL, idempotency_key="0" * 64)
    with pytest.raises(LedgerConflictError):
        bench.run(worker(interrupted(foreign)), task())
    assert bench.sessions.records["r1/T1/main"].interrupt is None


def planner(*steps: ScriptedStep) -> ScriptedWorker:
    return ScriptedWorker(steps, makes_plans=True)


def test_planning_step_can_be_interrupted_and_goes_on_with_planning(
    bench: Any, task: MakeTask
) -> None:
    ended = bench.run(planner(interrupted()), task())
    assert (ended.stop.reason, bench.sessions.saved) == ("approval", [])
    saved = bench.sessions.records["r1/T1/main"].interrupt
    assert (saved.checkpoint.plan.todos, saved.checkpoint.plan.budget.tokens_used) == ((), 15)
    assert bench.of("plan_created") == []
    bench.gate.passing = frozenset({"good"})
    hands = planner(
        ScriptedStep(events=(PlanProposed(("one",)),)), ScriptedStep(tree="good", events=DONE)
    )
    ended = bench.run(hands, task(), start(answered(DecisionKind.APPROVAL, "approve")))
    assert ended.is_passed
    plan, step = hands.requests
    assert (plan.is_planning, plan.loop_iteration, plan.resume is not None) == (True, 1, True)
    assert (step.is_planning, step.loop_iteration, step.resume) == (False, 1, None)
    assert len(bench.of("plan_created")) == 1


def test_ordinals_of_calls_run_over_the_planning_step_and_the_one_after_it(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    plan = ScriptedStep(events=(*SIBLING, PlanProposed(("one", "two"))))
    hands = planner(
        plan, ScriptedStep(tree="half", events=DONE), ScriptedStep(tree="good", events=DONE)
    )
    assert bench.run(hands, task()).is_passed
    found = [(request.loop_iteration, request.first_call) for request in hands.requests]
    assert found == [(1, 0), (1, 2), (2, 0)]


def test_step_after_a_planning_step_keeps_its_ordinals_when_it_is_taken_up_again(
    bench: Any, task: MakeTask
) -> None:
    later = replace(CALL, ordinal=5)
    raised = interrupt_for(ApprovalRequired(later))
    plan = ScriptedStep(events=(*SIBLING, PlanProposed(("one",))))
    bench.run(planner(plan, ScriptedStep(tree="half", events=(raised,))), task())
    hands = planner(ScriptedStep(events=DONE))
    answer = answered(DecisionKind.APPROVAL, "approve", key=later.key)
    bench.run(hands, task(budget=Limits(loops=1)), start(answer))
    request = hands.requests[0]
    assert (request.is_planning, request.first_call, request.step_goal) == (False, 2, "one")
    assert len(bench.of("plan_created")) == 1


# --- outcomes ----------------------------------------------------------------------------------


def test_unknown_outcome_is_asked_about_with_what_was_called_and_when(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    ended = bench.run(worker(interrupted(OUTCOME)), task())
    (draft,) = ended.drafts
    assert ended.stop == StopReason(Axis.DEFER, "outcome")
    assert (draft.options, draft.best_guess, draft.call_key) == ((HAPPENED, AGAIN), "", CALL.key)
    for words in ("mcp__bank__pay", '{"usd":5}', "2026-01-02T03:04:05.000Z", "may or may not"):
        assert words in draft.question


def test_answered_outcome_takes_the_step_up_without_a_token(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    bench.run(worker(interrupted(OUTCOME)), task())
    hands = worker(ScriptedStep(events=DONE))
    words = f"{HAPPENED}: ticket 7"
    bench.run(hands, task(budget=Limits(loops=1)), start(answered(DecisionKind.OUTCOME, words)))
    resume = hands.requests[0].resume
    assert resume is not None
    assert (resume.is_allowed, resume.approval, resume.answer) == (True, None, words)


def test_long_arguments_are_cut_in_the_question() -> None:
    from loopctl.domain import TaskId
    from loopctl.engine.questions import approval

    call = replace(CALL, arguments={"text": "x" * 5000})
    question = approval(Task(id=TaskId("T1"), title="t"), call, "").question
    assert len(question) < 800
    assert "characters)" in question


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("it happened", ToolResult("it happened")),
        ("It  happened: ticket 7 ", ToolResult("It  happened: ticket 7 ")),
        ("it did not, run it again", None),
        ("It did not, run it again please", None),
    ],
)
def test_answer_about_an_outcome_goes_into_the_ledger(
    bench: Any, answer: str, result: ToolResult | None
) -> None:
    outcomes.settle([answered(DecisionKind.OUTCOME, answer)], bench.calls)
    assert bench.calls.settled == {"T1.1": (CALL.key, result)}


@pytest.mark.parametrize(
    "decision",
    [
        answered(DecisionKind.OUTCOME, "reject"),
        replace(answered(DecisionKind.OUTCOME, ""), answer=None),
        answered(DecisionKind.APPROVAL, HAPPENED),
        answered(DecisionKind.OUTCOME, AGAIN, key=""),
    ],
)
def test_what_is_no_answer_about_an_outcome_leaves_the_ledger_alone(
    bench: Any, decision: Decision
) -> None:
    outcomes.settle([decision], bench.calls)
    assert bench.calls.settled == {}


@pytest.mark.parametrize("text", ["yes", "no", "done", "run it again", "maybe it happened"])
def test_answer_that_would_have_to_be_guessed_at_is_refused(text: str) -> None:
    known = [replace(answered(DecisionKind.OUTCOME, ""), answer=None)]
    with pytest.raises(AnswerError, match="'it happened'"):
        check([Answer("T1.1", text)], known)
    for good in (HAPPENED, AGAIN, "reject"):
        assert check([Answer("T1.1", good)], known) == (known[0],)


def test_rejected_call_frees_its_task_and_a_rejected_outcome_does_not() -> None:
    refused = answered(DecisionKind.APPROVAL, "reject")
    assert freed([refused], [refused]) == ("T1",)
    for kept in (
        answered(DecisionKind.OUTCOME, "reject"),
        answered(DecisionKind.APPROVAL, "reject", key=""),
    ):
        assert freed([kept], [kept]) == ()


def test_what_was_counted_before_an_interrupt_is_named_so_that_it_is_not_counted_again(
    bench: Any, task: MakeTask, worker: MakeWorker
) -> None:
    paid = tuple(UsageReported(SPENT.usage, number) for number in range(2))
    bench.run(worker(ScriptedStep(events=(*paid, APPROVAL))), task())
    saved = bench.sessions.records["r1/T1/main"].interrupt
    assert (saved.paid, saved.checkpoint.plan.budget.usd_used) == (2, 1.0)
    assert decode_interrupt(encode_interrupt(saved)).paid == 2
    hands = worker(ScriptedStep(events=DONE))
    bench.run(
        hands, task(), Start(head=Sha("c1"), answers=(answered(DecisionKind.APPROVAL, APPROVED),))
    )
    resume = hands.requests[0].resume
    assert resume is not None
    assert resume.paid == 2
