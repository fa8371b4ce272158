import json
from collections.abc import Callable, Sequence

import pytest

from loopctl.domain import (
    Axis,
    DecisionKind,
    Goal,
    Manifest,
    RunStatus,
    Scope,
    StopReason,
    Task,
    TaskId,
    TaskStatus,
    Usage,
    Wait,
)
from loopctl.engine.standing import open_decisions
from loopctl.events import (
    AnyEvent,
    DecisionAnswered,
    DecisionRaised,
    GateFinished,
    GoalJudged,
    MoneySpent,
    RunEnded,
    RunResumed,
    RunStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
)
from loopctl.plan import StepProgress
from loopctl.report.fold import advance, summarize
from loopctl.report.summary import to_document
from loopctl.verdict import Check, CheckResult, Verdict

Number = Callable[[Sequence[AnyEvent]], tuple[AnyEvent, ...]]
Story = tuple[AnyEvent, ...]


def test_document_has_exactly_the_keys_of_the_contract(story: Story) -> None:
    document = to_document(summarize(story))
    contract = {
        *("schema", "run_id", "status", "goal", "base", "head", "branch", "started", "ended"),
        *("tasks", "decisions", "usage"),
    }
    assert set(document) == contract | {"waits", "notices", "exit_code", "settings_hash"}
    assert set(document["tasks"][0]) == {
        *("id", "status", "landed", "steps", "replans", "worker", "model", "stop", "gate"),
        *("candidates", "assumptions", "result", "usage"),
    }
    assert set(document["tasks"][0]["gate"][0]) == {
        *("check", "verdict", "blame", "ms", "exit", "vacuous", "tail"),
    }
    assert set(document["decisions"][0]) == {
        *("id", "task", "kind", "question", "best_guess", "options"),
    }
    assert json.loads(json.dumps(document)) == document


def test_document_tells_the_run(story: Story) -> None:
    document = to_document(summarize(story))
    assert document["schema"] == 1
    assert (document["run_id"], document["status"]) == ("r1", "needs_human")
    assert (document["goal"], document["exit_code"]) == ("Ship it", 3)
    assert (document["base"], document["head"]) == ("b0" * 20, "c2" * 20)
    assert (document["started"], document["settings_hash"]) == ("2026-11-30T18:45:01.000Z", "cafe")
    assert {task["id"]: task["status"] for task in document["tasks"]} == {
        "A1": "done",
        "B1": "done",
        "C1": "needs-human",
        "D1": "todo",
        "E1": "stuck",
        "F1": "needs-human",
        "G1": "done",
    }
    assert document["waits"] == [
        {"task": "C1", "reason": "needs an answer"},
        {"task": "D1", "reason": "waits for C1 (needs-human)"},
        {"task": "E1", "reason": "stuck"},
    ]
    assert document["notices"] == [
        "commands ran unconfined",
        "2 uncommitted files are no part of this run",
    ]
    assert document["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "usd": 0.5}


def test_document_tells_a_landed_task_with_its_evidence(story: Story) -> None:
    task = to_document(summarize(story))["tasks"][0]
    assert (task["landed"], task["steps"], task["worker"]) == ("c1" * 20, 2, "command")
    assert task["stop"] == {"axis": "goal", "reason": "goal"}
    assert [(check["check"], check["verdict"]) for check in task["gate"]] == [
        ("apply", "pass"),
        ("verify", "pass"),
    ]
    assert task["assumptions"] == [{"text": "UTF-8 only", "decision": "encoding"}]


def test_the_gate_that_counts_is_the_winner_s(story: Story) -> None:
    task = to_document(summarize(story))["tasks"][1]
    assert task["gate"][-1]["vacuous"] is True
    assert task["candidates"] == [
        {"name": "regex", "won": True, "verdict": "pass", "ref": "refs/loop/r1/B1/regex"},
        {"name": "parser", "won": False, "verdict": "fail", "ref": "refs/loop/r1/B1/parser"},
    ]


def test_a_stuck_task_names_the_tree_that_is_kept(story: Story) -> None:
    task = to_document(summarize(story))["tasks"][4]
    assert task["result"] == "half of it"
    assert task["candidates"] == [
        {"name": "main", "won": False, "verdict": "fail", "ref": "refs/loop/r1/E1/main"}
    ]


def test_every_event_counts_once(story: Story) -> None:
    once = summarize(story)
    assert summarize([*story, *story]) == once
    for event in story:
        assert advance(once, event) == once


def test_prefixes_of_a_run_can_be_told(story: Story) -> None:
    for end in range(len(story) + 1):
        document = to_document(summarize(story[:end]))
        assert json.loads(json.dumps(document)) == document
    assert to_document(summarize(story[:3]))["status"] == "running"


def _continued() -> list[AnyEvent]:
    step = StepFinished(
        task="T1",
        candidate="main",
        iteration=1,
        tree="t",
        ms=1,
        progress=StepProgress(),
        usage=Usage(1, 1, 0.1),
    )
    checks = (CheckResult(Check.APPLY, Verdict.PASS), CheckResult(Check.VERIFY, Verdict.PASS))
    return [
        RunStarted(
            goal="g", base="b", branch="i", scope=Scope(), tasks=(("T1", "One"), ("T2", "Two"))
        ),
        TaskClaimed(task="T1", title="One", worker="command"),
        step,
        DecisionRaised(task="T1", id="T1.1", kind=DecisionKind.SCOPE, question="How far?"),
        StatusChanged(
            task="T1", old=TaskStatus.IN_PROGRESS, new=TaskStatus.NEEDS_HUMAN, signal="deferred"
        ),
        TaskStopped(task="T1", axis=Axis.DEFER, reason="scope", steps=1, usage=Usage(1, 1, 0.1)),
        RunEnded(status=RunStatus.NEEDS_HUMAN, exit_code=3, head="b"),
        RunResumed(reason="answer", tasks=(("T1", "One"), ("T3", "Three"))),
        DecisionAnswered(task="T1", id="T1.1", answer="all the way"),
        TaskClaimed(task="T1", title="One", worker="command", resumed=True),
        step,
        GateFinished(task="T1", candidate="main", head="b", tree="t", checks=checks),
        TaskLanded(task="T1", commit="c", tree="t", branch="i", key="k", files=1),
        TaskStopped(task="T1", axis=Axis.GOAL, reason="goal", steps=2, usage=Usage(2, 2, 0.2)),
        RunEnded(status=RunStatus.COMPLETE, exit_code=0, head="c"),
    ]


def test_a_run_goes_on_over_an_answer(number: Number) -> None:
    summary = summarize(number(_continued()))
    assert (summary.status, summary.exit_code, summary.invocations) == (RunStatus.COMPLETE, 0, 2)
    assert summary.decisions == ()
    assert [(one.id, one.answer) for one in summary.answered] == [("T1.1", "all the way")]
    assert [task.id for task in summary.tasks] == ["T1", "T2", "T3"]
    task = summary.tasks[0]
    assert (task.status, task.landed, task.steps) == (TaskStatus.DONE, "c", 2)
    assert task.stop == StopReason(Axis.GOAL, "goal")
    assert task.usage == Usage(2, 2, 0.2)


def test_a_continued_run_is_running_again_and_its_answered_decision_is_gone(
    number: Number,
) -> None:
    summary = summarize(number(_continued())[:10])
    assert (summary.status, summary.ended, summary.exit_code) == (RunStatus.RUNNING, None, None)
    assert to_document(summary)["decisions"] == []
    assert summary.tasks[0].stop is None


def test_a_crash_leaves_nobody_at_work(number: Number) -> None:
    events = number(
        [
            *_continued()[:2],
            StepStarted(task="T1", candidate="main", iteration=1, step_goal="x"),
            RunResumed(reason="crash", tasks=(("T1", "One"),), statuses=(("T1", TaskStatus.TODO),)),
        ]
    )
    task = summarize(events).tasks[0]
    assert (task.activity, task.status) == (None, TaskStatus.TODO)


def test_a_question_of_a_task_that_landed_is_asked_no_more(number: Number) -> None:
    events = [event for event in _continued() if not isinstance(event, DecisionAnswered)]
    assert summarize(number(events)).decisions == ()


def test_a_question_about_the_goal_belongs_to_the_goal(number: Number) -> None:
    raised = DecisionRaised(id="@goal.1", kind=DecisionKind.VERIFY, question="Is it met?")
    summary = summarize(number([*_continued(), raised]))
    assert [(one.id, one.task) for one in summary.decisions] == [("@goal.1", "@goal")]


def test_a_task_that_the_start_did_not_name_is_not_lost(number: Number) -> None:
    summary = summarize(number([TaskClaimed(task="X", title="Extra", worker="command")]))
    assert [(task.id, task.title) for task in summary.tasks] == [("X", "Extra")]


@pytest.mark.parametrize("per_invocation", [True, False])
def test_usage_is_a_total_whichever_way_the_engine_counts(
    number: Number, *, per_invocation: bool
) -> None:
    events = _continued()
    if per_invocation:
        events[13] = TaskStopped(
            task="T1", axis=Axis.GOAL, reason="goal", steps=1, usage=Usage(1, 1, 0.1)
        )
    task = summarize(number(events)).tasks[0]
    assert (task.usage, task.steps) == (Usage(2, 2, 0.2), 2)


def test_what_the_ledger_of_the_money_says_takes_the_place_of_the_sum_of_the_steps(
    number: Number,
) -> None:
    progress = StepProgress()
    step = StepFinished(
        task="T1",
        candidate="a",
        iteration=1,
        tree="t",
        ms=1,
        progress=progress,
        usage=Usage(9, 9, 1),
    )
    told = number(
        [
            step,
            MoneySpent(task="T1", usage=Usage(10, 10, 2.0)),
            MoneySpent(usage=Usage(1, 0, 0.5)),
            step,
            MoneySpent(task="T1", usage=Usage(30, 20, 4.0)),
        ]
    )
    first, last = summarize(told[:2]), summarize(told)
    assert first.usage == Usage(10, 10, 2.0)
    assert [task.usage for task in last.tasks] == [Usage(30, 20, 4.0)]
    assert last.usage == Usage(31, 20, 4.5)


def test_waits_are_those_of_the_newest_end(number: Number) -> None:
    first = RunEnded(
        status=RunStatus.STALLED,
        exit_code=4,
        head="b",
        waits=(Wait("T9", "stuck"),),  # type: ignore[arg-type]  # a NewType of str
    )
    events = [*_continued()[:6], first, *_continued()[7:]]
    assert summarize(number(events)).waits == ()


def _asked(status: TaskStatus, signal: str) -> list[AnyEvent]:
    """T1 asked and was then run again by name, which ended in ``status``."""
    old = TaskStatus.IN_PROGRESS
    return [
        RunStarted(goal="g", base="b", branch="i", scope=Scope(), tasks=(("T1", "One"),)),
        TaskClaimed(task="T1", title="One", worker="command"),
        StatusChanged(task="T1", old=TaskStatus.TODO, new=old, signal="claimed"),
        DecisionRaised(task="T1", id="T1.1", kind=DecisionKind.SCOPE, question="How far?"),
        StatusChanged(task="T1", old=old, new=TaskStatus.NEEDS_HUMAN, signal="deferred"),
        RunResumed(reason="resume", tasks=(("T1", "One"),)),
        TaskClaimed(task="T1", title="One", worker="command"),
        StatusChanged(task="T1", old=TaskStatus.NEEDS_HUMAN, new=old, signal="claimed"),
        StatusChanged(task="T1", old=old, new=status, signal=signal),
    ]


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (TaskStatus.STUCK, []),
        (TaskStatus.TODO, []),
        (TaskStatus.DONE, []),
        (TaskStatus.IN_PROGRESS, []),
        (TaskStatus.BLOCKED, ["T1.1"]),
        (TaskStatus.NEEDS_HUMAN, ["T1.1"]),
    ],
)
def test_a_question_stands_exactly_where_the_engine_says_so(
    number: Number, status: TaskStatus, asked: list[str]
) -> None:
    events = number(_asked(status, "moved"))
    summary = summarize(events)
    assert [one.id for one in summary.decisions] == asked
    assert [one["id"] for one in to_document(summary)["decisions"]] == asked
    question = (*summary.decisions, *summary.passed_over)
    manifest = Manifest(Goal(), (Task(TaskId("T1"), "One", status=status),))
    assert [one.id for one in open_decisions(question, manifest)] == asked


def test_a_question_that_was_passed_over_can_be_raised_and_answered_again(number: Number) -> None:
    raised = DecisionRaised(task="T1", id="T1.1", kind=DecisionKind.SCOPE, question="How far?")
    stuck = _asked(TaskStatus.STUCK, "stalled")
    assert [one.id for one in summarize(number([*stuck, raised])).decisions] == ["T1.1"]
    answered = summarize(number([*stuck, DecisionAnswered(task="T1", id="T1.1", answer="all")]))
    assert [one.answer for one in answered.answered] == ["all"]
    assert (answered.decisions, answered.passed_over) == ((), ())


def test_a_question_about_the_goal_goes_when_the_goal_is_judged_anew(number: Number) -> None:
    raised = DecisionRaised(id="@goal.1", kind=DecisionKind.VERIFY, question="Is it met?")
    judged = GoalJudged(met=True, criteria=())
    assert [one.id for one in summarize(number([judged, raised])).decisions] == ["@goal.1"]
    assert summarize(number([raised, judged])).decisions == ()
