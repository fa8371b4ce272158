"""What a worker is asked: each field of a request, and what goes on from step to step."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from loopctl.calls import ApprovalRequired, ToolCall
from loopctl.contextports import Memory
from loopctl.domain import APPROVED, Decision, DecisionKind, Limits, Mode, Option, Sha, Task
from loopctl.engine.issuing import PLANNING, RECALLED, todo_line
from loopctl.engine.taskrun import Start
from loopctl.errors import CancelledError
from loopctl.past import Past, Summary, Turn
from loopctl.plan import Todo, TodoStatus
from loopctl.steps import (
    REPLIES_MAX,
    OutputTail,
    PlanProposed,
    StepEvent,
    TodoDone,
    TurnTaken,
    interrupt_for,
)
from loopctl.testing import (
    MemoryReplies,
    ScriptedCompactor,
    ScriptedRecall,
    ScriptedStep,
    ScriptedWorker,
)

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
RED: tuple[StepEvent, ...] = (OutputTail(1, "red"),)
PLAN = ScriptedStep(events=(PlanProposed(("read it", "write it")),))


def planner(*steps: ScriptedStep) -> ScriptedWorker:
    return ScriptedWorker(steps, makes_plans=True)


def turn(text: str, tree: str, events: tuple[StepEvent, ...] = RED) -> ScriptedStep:
    return ScriptedStep(tree=tree, events=(*events, TurnTaken(text)), answer=text)


# Tiers and candidates


@pytest.mark.parametrize(
    ("keys", "tiers"),
    [
        ({}, ["premium", "standard", "standard"]),
        ({"model": "cheap"}, ["cheap", "cheap", "cheap"]),
        ({"options": (Option("a"),)}, ["premium", "cheap", "cheap"]),
        ({"options": (Option("a"),), "model": "standard"}, ["standard"] * 3),
    ],
)
def test_planning_is_premium_a_candidate_of_several_cheap_and_the_task_has_the_last_word(
    bench: Any, task: MakeTask, keys: dict[str, Any], tiers: list[str]
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = planner(PLAN, ScriptedStep("half", DONE), ScriptedStep("good", DONE))
    assert bench.run(hands, task(**keys)).is_passed
    assert [request.tier for request in hands.requests] == tiers


def test_candidate_is_named_in_its_requests(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = ScriptedWorker([ScriptedStep("good", DONE)])
    bench.run(hands, task())
    bench.run(hands, task("T2", options=(Option("regex"), Option("parser"))))
    assert hands.requests[0].candidate == "main"
    assert {request.candidate for request in hands.requests[1:]} == {"regex", "parser"}


def test_caps_that_count_are_in_the_request(bench: Any, task: MakeTask) -> None:

    bench.gate.passing = frozenset({"good"})
    hands = ScriptedWorker([ScriptedStep("good", DONE)])
    bench.run(hands, task(worker="graph", budget=Limits(usd=0.5)))
    bench.run(hands, task("T2", budget=Limits(usd=0.5, loops=3)))
    assert hands.requests[0].task.budget == Limits(200_000, 0.5, 25, 3600)
    assert hands.requests[1].task.budget == Limits(None, None, 3, 3600)


# Todos


def test_worker_sees_the_plan_as_it_stands(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = planner(PLAN, ScriptedStep("half", DONE), ScriptedStep("good", DONE))
    assert bench.run(hands, task()).is_passed
    assert [request.todos for request in hands.requests] == [
        (),
        ("active: read it", "pending: write it"),
        ("done: read it (did it)", "active: write it"),
    ]


def test_todo_is_one_line_whatever_its_text() -> None:
    todo = Todo("1", "read\nthe  header", TodoStatus.DONE, summary="it\r\nis fine")
    assert todo_line(todo) == "done: read the header (it is fine)"


def test_relay_gets_no_sub_goal_and_its_one_todo(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = planner(ScriptedStep("good", DONE))
    bench.run(hands, task(mode=Mode.RELAY, prompt="do it"))
    assert (hands.requests[0].step_goal, hands.requests[0].todos) == ("", ("active: do it",))


# Recall


def test_memories_are_asked_for_once_a_todo_and_shown_in_each_of_its_steps(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    memories = tuple(Memory(f"f{n}", "text", 1 / (n + 1)) for n in range(9))
    recall = bench.more["recall"] = ScriptedRecall(memories)
    steps = (ScriptedStep("a", RED), ScriptedStep("b", DONE), ScriptedStep("good", DONE))
    hands = planner(PLAN, *steps)
    assert bench.run(hands, task(prompt="make the reader")).is_passed
    title = "Title of T1"
    assert recall.queries == [
        f"{text}\n{title}" for text in ("make the reader", "read it", "write it")
    ]
    assert {request.known for request in hands.requests} == {memories[:RECALLED]}
    assert {request.recalled for request in hands.requests} == {()}


def test_a_todo_is_shown_a_few_memories_beside_those_of_its_task(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    one, two, three, four = (Memory(f"f{n}", "text", 1.0) for n in range(4))
    found = {"make": (one,), "read": (one, two, three, four), "write": (four, one)}
    recall = bench.more["recall"] = ScriptedRecall()
    recall.recall = lambda query, limit: found[query.split()[0]][:limit]  # type: ignore[method-assign]
    hands = planner(PLAN, ScriptedStep("b", DONE), ScriptedStep("good", DONE))
    assert bench.run(hands, task(prompt="make the reader")).is_passed
    assert [request.recalled for request in hands.requests] == [(), (two, three), (four,)]
    assert {request.known for request in hands.requests} == {(one,)}


def test_without_a_recall_nothing_is_shown(bench: Any, task: MakeTask) -> None:
    hands = ScriptedWorker([ScriptedStep(events=DONE)])
    bench.run(hands, task())
    shown = hands.requests[0]
    assert (shown.known, shown.recalled, shown.replies) == ((), (), ())


# The past


def test_every_step_is_shown_the_turns_before_it_and_the_checkpoint_carries_them(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    hands = ScriptedWorker([turn("one", "a"), turn("two", "b"), turn("three", "good", DONE)])
    assert bench.run(hands, task()).is_passed
    assert [request.past.turns for request in hands.requests] == [
        (),
        (Turn(1, "one"),),
        (Turn(1, "one"), Turn(2, "two")),
    ]
    kept = [point.past.turns[-1] for _, _, point in bench.sessions.saved]
    assert kept == [Turn(1, "one"), Turn(2, "two"), Turn(3, "three")]


def test_resumed_session_goes_on_with_its_past(bench: Any, task: MakeTask) -> None:
    class Stopped(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            if self.requests:
                raise CancelledError("stop")
            yield from super().execute_step(request, sandbox)

    with pytest.raises(CancelledError):
        bench.run(Stopped([turn("one", "a")]), task())
    hands = ScriptedWorker([ScriptedStep(events=DONE)])
    bench.run(hands, task())
    assert hands.requests[0].past.turns == (Turn(1, "one"),)


def test_what_planning_has_seen_stays_before_the_first_turn(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    plan = replace(PLAN, events=(*PLAN.events, TurnTaken("looked")))
    hands = planner(plan, turn("read", "half", DONE), turn("wrote", "good", DONE))
    assert bench.run(hands, task()).is_passed
    assert hands.requests[1].past.turns == (Turn(1, "looked"),)
    assert hands.requests[2].past.turns == (Turn(1, "looked"), Turn(1, "read"))


def test_past_is_tended_once_before_each_iteration_and_what_comes_of_it_stays(
    bench: Any, task: MakeTask
) -> None:
    def summarize(past: Past) -> Past:
        if len(past.turns) < 3:
            return past
        last = past.turns[-1].number
        return Past((*past.summaries, Summary(past.turns[0].number, last, "short")), ())

    bench.gate.passing = frozenset({"good"})
    compactor = bench.more["compactor"] = ScriptedCompactor(summarize)
    plan = replace(PLAN, events=(*PLAN.events, TurnTaken("looked")))
    hands = planner(
        plan, turn("1", "a"), turn("2", "b"), turn("3", "c", DONE), turn("4", "good", DONE)
    )
    assert bench.run(hands, task()).is_passed
    assert [(session, name) for session, name, _ in compactor.tended] == [("r1/T1/main", "T1")] * 4
    assert [len(past.turns) for _, _, past in compactor.tended] == [0, 2, 3, 1]
    assert hands.requests[-1].past == Past((Summary(1, 2, "short"),), (Turn(3, "3"),))
    assert bench.sessions.saved[-1][2].past.summaries == (Summary(1, 2, "short"),)


def test_what_summaries_cost_is_bounded_by_the_caps_of_the_task(bench: Any, task: MakeTask) -> None:
    compactor = bench.more["compactor"] = ScriptedCompactor()
    bench.gate.passing = frozenset({"good"})
    caps = Limits(tokens=5000, usd=0.5)
    bench.run(planner(PLAN, turn("1", "good", DONE)), task(worker="graph", budget=caps))
    assert compactor.caps
    assert {(one.tokens, one.usd) for one in compactor.caps} == {(5000, 0.5)}


CALL = ToolCall("r1/T1/main", 1, 0, "pay", {})


def test_interrupted_iteration_keeps_what_planning_has_seen_and_is_not_tended_again(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    compactor = bench.more["compactor"] = ScriptedCompactor()
    plan = replace(PLAN, events=(*PLAN.events, TurnTaken("looked")))
    waiting = ScriptedStep(events=(interrupt_for(ApprovalRequired(CALL), b"blob"),))
    bench.run(planner(plan, waiting), task())
    saved = bench.sessions.records["r1/T1/main"].interrupt
    assert saved.checkpoint.past.turns == (Turn(1, "looked"),)
    answer = Decision(
        "T1.1", "T1", "r1", DecisionKind.APPROVAL, "?", answer=APPROVED, call_key=CALL.key
    )
    hands = planner(turn("paid", "half", DONE), turn("wrote", "good", DONE))
    assert bench.run(hands, task(), Start(head=Sha("c1"), answers=(answer,))).is_passed
    assert hands.requests[0].past.turns == (Turn(1, "looked"),)
    assert hands.requests[1].past.turns == (Turn(1, "looked"), Turn(1, "paid"))
    assert len(compactor.tended) == 2


# Replies


class Answering(ScriptedWorker):
    """Keeps a reply a step, as a worker that asks a model does; dies where it is told to."""

    def __init__(self, replies: MemoryReplies, steps: Any, dies_at: int = -1) -> None:
        super().__init__(steps, makes_plans=True)
        self.replies = replies
        self.dies_at = dies_at

    def execute_step(self, request: Any, sandbox: Any) -> Any:
        number = request.first_reply + len(request.replies)
        if not request.replies:
            text = f"{'plan' if request.is_planning else 'step'} {request.loop_iteration}"
            self.replies.keep(request.session_id, request.loop_iteration, number, text)
        events = super().execute_step(request, sandbox)
        if len(self.requests) == self.dies_at:
            raise CancelledError("killed")
        yield from events


def test_step_that_is_taken_again_is_given_its_own_replies_and_no_others(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    kept = bench.more["replies"] = MemoryReplies()
    steps = [PLAN, ScriptedStep("half", DONE), ScriptedStep("good", DONE)]

    class Dies(Answering):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            yield from super().execute_step(request, sandbox)
            if not request.is_planning:
                raise CancelledError("killed")

    first = Dies(kept, steps)
    with pytest.raises(CancelledError):
        bench.run(first, task())
    assert [(one.first_reply, one.replies) for one in first.requests] == [
        (0, ()),
        (REPLIES_MAX, ()),
    ]
    again = Answering(kept, steps)
    assert bench.run(again, task()).is_passed
    assert [(one.first_reply, one.replies) for one in again.requests] == [
        (0, ("plan 1",)),
        (REPLIES_MAX, ("step 1",)),
        (0, ()),
    ]


def test_second_planning_step_counts_its_replies_behind_the_first(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    kept = bench.more["replies"] = MemoryReplies()
    hands = Answering(kept, [ScriptedStep(), PLAN, ScriptedStep("good", DONE)])
    bench.run(hands, task())
    found = [(one.is_planning, one.first_reply) for one in hands.requests[:3]]
    assert found == [(True, 0), (True, REPLIES_MAX), (False, 2 * REPLIES_MAX)]


def test_interrupted_step_goes_on_with_the_number_of_its_first_reply(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    kept = bench.more["replies"] = MemoryReplies()
    waiting = ScriptedStep(events=(interrupt_for(ApprovalRequired(CALL), b"blob"),))
    bench.run(Answering(kept, [PLAN, waiting]), task())
    answer = Decision(
        "T1.1", "T1", "r1", DecisionKind.APPROVAL, "?", answer=APPROVED, call_key=CALL.key
    )
    hands = Answering(kept, [ScriptedStep("half", DONE), ScriptedStep("good", DONE)])
    assert bench.run(hands, task(), Start(head=Sha("c1"), answers=(answer,))).is_passed
    assert hands.requests[0].first_reply == REPLIES_MAX
    assert hands.requests[0].replies == ("step 1",)
    assert hands.requests[1].first_reply == 0


def test_begun_step_stays_on_the_files_that_its_model_has_seen(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    kept = bench.more["replies"] = MemoryReplies()
    steps = [ScriptedStep("half", DONE), ScriptedStep("good", DONE)]
    with pytest.raises(CancelledError):
        bench.run(Answering(kept, [PLAN, *steps], dies_at=1), task())
    moved = bench.repository.commit("moved", Sha("c1"), "by someone")
    bench.run(Answering(kept, [PLAN, *steps]), task(), Start(head=moved))
    opened = [event.base for event in bench.of("sandbox_opened")]
    assert opened == ["c1", "c1"]
    bench.run(Answering(MemoryReplies(), [PLAN, *steps]), task("T2"), Start(head=moved))
    assert bench.of("sandbox_opened")[-1].base == moved


def test_planning_is_asked_for_in_fixed_words(bench: Any, task: MakeTask) -> None:
    hands = planner(PLAN, ScriptedStep(events=DONE))
    bench.run(hands, task())
    assert (hands.requests[0].step_goal, hands.requests[1].step_goal) == (PLANNING, "read it")
