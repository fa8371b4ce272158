from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from loopctl.domain import (
    REJECTED,
    Axis,
    Decision,
    DecisionDraft,
    DecisionKind,
    Kind,
    Mode,
    StopReason,
    Task,
    Usage,
)
from loopctl.engine import stages
from loopctl.engine.permission import Permission
from loopctl.engine.taskrun import Start
from loopctl.moneyports import Cap, Refused
from loopctl.plan import TodoStatus
from loopctl.steps import PlanProposed, TodoDone
from loopctl.testing import ScriptedStep, ScriptedWorker
from loopctl.verdict import Blame, Check, CheckResult, Hit, Verdict

MakeTask = Callable[..., Task]

FLAWED = CheckResult(
    Check.CRITIQUE, Verdict.FAIL, Blame.INTRODUCED, "1 criticism", tail="1. no numbers"
)
SOUND = CheckResult(Check.CRITIQUE, Verdict.PASS, reason="nothing of weight")
YES = CheckResult(Check.ALIGNMENT, Verdict.PASS, reason="it serves")
NO = CheckResult(Check.ALIGNMENT, Verdict.FAIL, Blame.INTRODUCED, "no: thin", tail="1. too thin")
UNCLEAR = CheckResult(
    Check.ALIGNMENT,
    Verdict.FAIL,
    Blame.INTRODUCED,
    "unclear: two readings",
    tail="1. Which database?\n2. For whom?",
    findings=("1. SQLite", "2. operators"),
)
STATED = "Given the goal, the text is complete."


class Hands:
    """A worker that plans two todos, and closes each with a summary of its kind."""

    def __init__(self, bench: Any, summary: str = STATED, *, makes_plans: bool = True) -> None:
        plan = ScriptedStep(events=(PlanProposed(("find out", "write the draft")),))
        steps = [
            ScriptedStep(tree=f"t{n}", events=(TodoDone(summary),), answer=f"{n}")
            for n in range(30)
        ]
        script = (plan, *steps) if makes_plans else tuple(steps)
        self.worker = ScriptedWorker(script, clock=bench.clock, makes_plans=makes_plans)

    @property
    def goals(self) -> list[str]:
        return [one.step_goal.split("\n")[0].split(":")[0] for one in self.worker.requests]

    @property
    def tiers(self) -> list[str]:
        return [one.tier for one in self.worker.requests]


@pytest.fixture
def prose(task: MakeTask) -> Callable[..., Task]:
    def make(**more: Any) -> Task:
        fields = {"kind": Kind.DESIGN, "worker": "graph", "output": "file", "verify_cmd": None}
        return task(**{**fields, **more})

    return make


def names(hands: Hands) -> list[str]:
    return [goal.split(" ")[0] for goal in hands.goals]


def test_a_draft_is_criticised_answered_synthesised_and_judged(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [FLAWED, SOUND, YES]
    hands = Hands(bench)
    ended = bench.run(hands.worker, prose())
    assert ended.stop == StopReason(Axis.GOAL, "goal_met")
    assert names(hands) == ["Break", "find", "write", "Answer", "Write"]
    assert [one.is_draft for one in bench.gate.seen] == [True, True, False]
    assert hands.tiers == ["premium", "standard", "standard", "standard", "premium"]
    assert [todo.id for todo in ended.plan.todos] == ["1", "2", "redraft-1", "synthesis-1"]
    assert [event.reason for event in bench.of("todo_added")] == [
        "1 criticism",
        "nothing of weight",
    ]


def test_every_criticism_stands_in_the_todo_that_answers_it(
    bench: Any, prose: Callable[..., Task]
) -> None:
    long = "\n".join(f"{n}. {'w' * 300}" for n in range(1, 9))
    bench.gate.scripted = [replace(FLAWED, tail=long), SOUND, YES]
    hands = Hands(bench)
    bench.run(hands.worker, prose())
    assert hands.worker.requests[3].step_goal.endswith(f"\n{long}")


def test_criticisms_end_after_two_rounds_and_the_synthesis_is_given_the_last(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [FLAWED, FLAWED, replace(FLAWED, tail="1. the last"), YES]
    hands = Hands(bench)
    ended = bench.run(hands.worker, prose())
    assert ended.is_passed
    assert stages.REDRAFTS == 2
    assert names(hands)[3:] == ["Answer", "Answer", "Write"]
    assert hands.worker.requests[-1].step_goal.endswith("\n1. the last")


def test_a_sound_draft_that_passes_verify_does_not_land(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, NO, NO]
    ended = bench.run(Hands(bench).worker, prose())
    assert not ended.is_passed
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)


def test_what_stays_unclear_after_two_syntheses_is_one_scope_decision(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, NO, UNCLEAR]
    hands = Hands(bench)
    ended = bench.run(hands.worker, prose())
    assert names(hands)[3:] == ["Write", "Write"]
    (draft,) = ended.drafts
    assert draft.kind is DecisionKind.SCOPE
    assert "1. Which database? 2. For whom?" in draft.question
    assert draft.best_guess == "1. SQLite; 2. operators"


def test_a_synthesis_is_premium_also_where_the_task_names_a_cheaper_model(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, YES]
    hands = Hands(bench)
    bench.run(hands.worker, prose(model="cheap"))
    assert hands.tiers == ["cheap", "cheap", "cheap", "premium"]


def test_a_synthesis_is_closed_only_with_a_statement_of_how_it_serves_the_goal(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, YES]
    hands = Hands(bench, "It is great.")
    steps = list(hands.worker.steps)
    steps[5] = replace(steps[5], events=(TodoDone("given the Goal: all of it"),))
    hands.worker.steps = steps
    ended = bench.run(hands.worker, prose())
    assert ended.is_passed
    assert len(bench.gate.seen) == 2
    assert "'Given the goal'" in hands.worker.requests[5].observation
    assert [one.todo.split(" ")[0] for one in bench.of("todo_closed")] == [
        "find",
        "write",
        "Write",
    ]


def test_a_synthesis_that_is_never_stated_stalls(bench: Any, prose: Callable[..., Task]) -> None:
    bench.gate.scripted = [SOUND, YES]
    done = ScriptedStep(events=(TodoDone("It is great."),), answer="same")
    plan = ScriptedStep(events=(PlanProposed(("write",)),))
    first = replace(done, tree="t1", answer="first")
    worker = ScriptedWorker((plan, first, done), clock=bench.clock, makes_plans=True)
    ended = bench.run(worker, prose())
    assert ended.stop == StopReason(Axis.STALL, "no_progress")


def test_a_failed_verify_of_a_draft_opens_its_todo_again(
    bench: Any, prose: Callable[..., Task]
) -> None:
    red = CheckResult(Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED, "no heading")
    bench.gate.scripted = [red, SOUND, YES]
    hands = Hands(bench)
    assert bench.run(hands.worker, prose()).is_passed
    assert names(hands) == ["Break", "find", "write", "write", "Write"]
    assert hands.worker.requests[3].observation == "gate: no heading"


def test_a_todo_that_a_judge_adds_was_progress(bench: Any, prose: Callable[..., Task]) -> None:
    bench.gate.scripted = [FLAWED, SOUND, YES]
    ended = bench.run(Hands(bench).worker, prose())
    assert all(step.todo_completed for step in ended.plan.progress)


@pytest.mark.parametrize("how", [{"mode": Mode.RELAY}, {"worker": "command"}])
def test_a_task_of_one_todo_meets_the_final_judge_at_once_and_is_bounded_as_well(
    bench: Any, prose: Callable[..., Task], how: dict[str, Any]
) -> None:
    bench.gate.scripted = [NO, NO, NO]
    hands = Hands(bench, "did it", makes_plans=False)
    hands.worker.makes_plans = "mode" in how
    ended = bench.run(hands.worker, prose(**how))
    assert [one.is_draft for one in bench.gate.seen] == [False, False, False]
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)
    assert len(hands.worker.requests) == 3
    assert hands.worker.requests[1].observation == "gate: no: thin"


def test_code_has_no_stages(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"t1"})
    hands = Hands(bench)
    assert bench.run(hands.worker, task(worker="graph")).is_passed
    assert [one.is_draft for one in bench.gate.seen] == [False]


def answered(draft: DecisionDraft, answer: str) -> Decision:
    return Decision(
        id="T1.1",
        task="T1",
        run_id="r1",
        kind=draft.kind,
        question=draft.question,
        best_guess=draft.best_guess,
        reason=draft.reason,
        answer=answer,
        answered_at="now",
    )


def test_an_answer_is_shown_to_the_judge_first_and_then_gives_two_rounds_more(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, NO, UNCLEAR]
    ended = bench.run(Hands(bench).worker, prose())
    (draft,) = ended.drafts
    bench.gate.scripted = [UNCLEAR, NO, YES]
    again = Hands(bench, makes_plans=True)
    again.worker.steps = again.worker.steps[10:]
    start = Start(bench.repository.head(), (answered(draft, "SQLite, for operators"),))
    ended = bench.run(again.worker, prose(), start)
    assert ended.is_passed
    assert names(again) == ["Write", "Write"]
    assert again.worker.requests[0].answer == "SQLite, for operators"
    judged = bench.gate.seen[3]
    assert judged.task.clarified == (f"{draft.question}\nThe answer: SQLite, for operators",)
    assert judged.is_draft is False


class Person:
    """Somebody at the terminal."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[DecisionDraft] = []

    def ask(self, draft: DecisionDraft, timeout_s: float) -> str | None:
        del timeout_s
        self.asked.append(draft)
        return self.answers.pop(0)


class Decisions:
    """The port ``DecisionStore``, as far as a permission needs it."""

    def __init__(self) -> None:
        self.kept: list[Decision] = []

    def decisions(self, **_which: Any) -> tuple[Decision, ...]:
        return tuple(self.kept)

    def raise_decision(self, run_id: str, task: str, draft: DecisionDraft) -> Decision:
        del run_id, task
        self.kept.append(replace(answered(draft, ""), answer=None))
        return self.kept[-1]

    def answer_decisions(self, answers: Any, now: str) -> tuple[Decision, ...]:
        ((_, text, _),) = answers
        self.kept[-1] = replace(self.kept[-1], answer=text, answered_at=now)
        return (self.kept[-1],)


class Still:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def attended(bench: Any, person: Person) -> None:
    bench.more["permission"] = Permission(
        "r1",
        (),
        60,
        decisions=Decisions(),
        clock=Still(),
        emit=bench.log.emit,
        person=person,
    )


def test_somebody_who_is_there_is_asked_once_with_all_questions_in_one(
    bench: Any, prose: Callable[..., Task]
) -> None:
    person = Person("SQLite, for operators")
    attended(bench, person)
    bench.gate.scripted = [SOUND, UNCLEAR, UNCLEAR, YES]
    hands = Hands(bench)
    ended = bench.run(hands.worker, prose())
    assert ended.is_passed
    (draft,) = person.asked
    assert "1. Which database? 2. For whom?" in draft.question
    assert hands.worker.requests[-1].answer == "SQLite, for operators"
    assert bench.gate.seen[-1].task.clarified != ()


def test_what_is_unclear_after_a_clarification_is_put_by_and_not_asked_again(
    bench: Any, prose: Callable[..., Task]
) -> None:
    person = Person("SQLite")
    attended(bench, person)
    bench.gate.scripted = [SOUND, *([UNCLEAR] * 9)]
    ended = bench.run(Hands(bench).worker, prose())
    assert len(person.asked) == 1
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)
    assert len(ended.drafts) == 1
    # The draft, two syntheses, and two more for the answer.
    assert len(bench.gate.seen) == 5


@pytest.mark.parametrize(("answer", "left"), [(None, 1), (REJECTED, 0)])
def test_who_leaves_a_clarification_or_rejects_it_ends_the_task_for_now(
    bench: Any, prose: Callable[..., Task], answer: str | None, left: int
) -> None:
    attended(bench, Person(answer))
    bench.gate.scripted = [SOUND, NO, UNCLEAR]
    ended = bench.run(Hands(bench).worker, prose())
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)
    assert len(ended.drafts) == left


def test_what_a_judge_costs_is_spent_by_the_task(bench: Any, prose: Callable[..., Task]) -> None:
    cost = Usage(700, 30, 0.5)
    bench.gate.scripted = [replace(SOUND, usage=cost), replace(YES, usage=cost)]
    ended = bench.run(Hands(bench).worker, prose())
    assert (ended.usage, ended.plan.budget.tokens_used) == (cost + cost, 1460)


def test_a_judge_whose_question_does_not_fit_the_budget_ends_in_a_budget_decision(
    bench: Any, prose: Callable[..., Task]
) -> None:
    refused = Refused(Cap.TASK_TOKENS, "too dear", 900)
    unknown = CheckResult(
        Check.CRITIQUE, Verdict.UNKNOWN, Blame.ENVIRONMENT, "too dear", refused=refused
    )
    bench.gate.scripted = [unknown]
    ended = bench.run(Hands(bench).worker, prose())
    assert ended.stop == StopReason(Axis.BUDGET, "tokens")
    assert [draft.kind for draft in ended.drafts] == [DecisionKind.BUDGET]
    bench.gate.scripted = [SOUND, YES]
    again = Hands(bench)
    again.worker.steps = again.worker.steps[10:]
    ended = bench.run(again.worker, prose())
    assert ended.is_passed
    assert names(again) == ["Write"]


def test_a_text_that_no_judge_can_tell_of_waits_for_a_person(
    bench: Any, prose: Callable[..., Task]
) -> None:
    hit = Hit("prose-1", "file, since nobody can judge it")
    unknown = CheckResult(
        Check.ALIGNMENT, Verdict.UNKNOWN, Blame.ENVIRONMENT, "nobody", hits=(hit,)
    )
    bench.gate.scripted = [SOUND, unknown]
    ended = bench.run(Hands(bench).worker, prose())
    (draft,) = ended.drafts
    assert draft.kind is DecisionKind.APPROVAL
    assert "file, since nobody can judge it" in draft.question
    bench.gate.scripted = [YES]
    start = Start(bench.repository.head(), (answered(draft, "approve"),))
    ended = bench.run(ScriptedWorker((), makes_plans=True), prose(), start)
    assert ended.is_passed
    assert bench.gate.seen[-1].task.approved == ("prose-1",)


def test_a_critic_that_cannot_be_reached_is_tried_again_and_then_a_person_is_asked(
    bench: Any, prose: Callable[..., Task]
) -> None:
    away = CheckResult(Check.CRITIQUE, Verdict.UNKNOWN, Blame.ENVIRONMENT, "no network")
    bench.gate.scripted = [away, away]
    ended = bench.run(Hands(bench).worker, prose())
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.ENVIRONMENT)
    assert ended.plan.todos[-1].status is TodoStatus.DONE


def test_a_killed_process_goes_on_in_the_stage_that_its_checkpoint_holds(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [FLAWED, SOUND, YES]
    whole = bench.run(Hands(bench).worker, prose())
    saved = list(bench.sessions.saved)
    for count in range(1, len(saved)):
        session_id, iteration, checkpoint = saved[count - 1]
        bench.sessions.save_checkpoint(session_id, iteration, checkpoint)
        judged = sum(one.tree < f"t{count}" for one in bench.gate.seen[:3])
        bench.gate.scripted = [FLAWED, SOUND, YES][judged:]
        hands = Hands(bench)
        hands.worker.steps = hands.worker.steps[count + 1 :]
        ended = bench.run(hands.worker, prose())
        assert ended.is_passed
        assert ended.tree == whole.tree
        assert ended.plan.todos == whole.plan.todos
        assert len(hands.worker.requests) == len(saved) - count


def test_a_worker_that_plans_the_synthesis_away_writes_a_draft_again(
    bench: Any, prose: Callable[..., Task]
) -> None:
    bench.gate.scripted = [SOUND, SOUND, YES]
    hands = Hands(bench)
    steps = list(hands.worker.steps)
    steps[3] = ScriptedStep(tree="t2", events=(PlanProposed(("look once more",)),), answer="p")
    hands.worker.steps = steps
    ended = bench.run(hands.worker, prose())
    assert ended.is_passed
    assert [one.is_draft for one in bench.gate.seen] == [True, True, False]
    assert names(hands)[-1] == "Write"
