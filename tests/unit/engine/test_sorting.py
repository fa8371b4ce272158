"""What becomes of the forks of a step that are not tried: settled, told, or asked about."""

from collections.abc import Callable
from typing import Any

from loopctl.domain import Axis, DecisionKind, Goal, Limits, Option, StopReason, Task
from loopctl.engine.taskrun import RunContext, Start, TaskRun
from loopctl.steps import ForkRaised, OutputTail, StepEvent, TodoDone
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
FAR = ForkRaised("How far?", "scope", (Option("narrow", "rows"), Option("wide")), "narrow")


def run(bench: Any, worker: ScriptedWorker, task: Task, goal: str) -> Any:
    old = bench.context(worker)
    context = RunContext(old.run_id, Goal(goal), old.settings, old.tools, old.workers)
    return TaskRun(context, task, Start(head=bench.repository.head())).run()


def test_a_fork_of_scope_that_the_goal_settles_asks_nobody_and_is_told(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"good"})
    worker = ScriptedWorker((ScriptedStep(events=(FAR,)), ScriptedStep(tree="good", events=DONE)))
    ended = run(bench, worker, task(), "Ship the MVP")
    assert ended.stop.axis is Axis.GOAL
    settled = worker.requests[1].settled
    assert [(one.option, one.prompt) for one in settled] == [("narrow", "rows")]
    assert "How far?" in worker.requests[1].observation
    (event,) = bench.of("fork_classified")
    assert (event.bucket, event.said, event.chosen) == ("scope", "scope", "narrow")
    assert 'the goal says "MVP"' in event.reason


def test_what_was_settled_stands_in_all_later_requests_and_after_a_resume(
    bench: Any, task: MakeTask
) -> None:
    steps = (ScriptedStep(events=(FAR,)), ScriptedStep(tree="x", events=(OutputTail(1, "red"),)))
    worker = ScriptedWorker(steps)
    one = task(budget=Limits(loops=3))
    assert run(bench, worker, one, "Ship the MVP").stop.axis is Axis.BUDGET
    worker.requests.clear()
    run(bench, worker, task(budget=Limits(loops=5)), "Ship the MVP")
    assert {request.settled[0].option for request in worker.requests} == {"narrow"}


def test_the_same_question_is_settled_as_it_was_before(bench: Any, task: MakeTask) -> None:
    asked: list[str] = []

    def choose(raised: ForkRaised, _task: Task) -> tuple[str, str]:
        asked.append(raised.question)
        return "wide", "so it says"

    bench.more["choose"] = choose
    bench.gate.passing = frozenset({"good"})
    again = ScriptedStep(tree="x", events=(FAR,))
    worker = ScriptedWorker((again, again, ScriptedStep(tree="good", events=DONE)))
    assert run(bench, worker, task(), "Import").stop.axis is Axis.GOAL
    assert asked == ["How far?"]
    assert len(bench.of("fork_classified")) == 1


def test_a_silent_goal_is_a_decision_that_says_why_it_is_one(bench: Any, task: MakeTask) -> None:
    ended = run(bench, ScriptedWorker((ScriptedStep(events=(FAR,)),)), task(), "Import")
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)
    (draft,) = ended.drafts
    assert (draft.options, draft.best_guess) == (("narrow", "wide"), "narrow")
    assert draft.reason == (
        "fork (scope): the worker says so; the goal says nothing of how far to go"
    )


def test_an_external_fork_is_a_decision_however_clear_the_goal(bench: Any, task: MakeTask) -> None:
    raised = ForkRaised("Which account?", "quality", (Option("narrow"), Option("wide")))
    ended = run(bench, ScriptedWorker((ScriptedStep(events=(raised,)),)), task(), "Ship the MVP")
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.EXTERNAL)
    assert ended.drafts[0].reason == 'fork (external): it speaks of "account"'


def test_what_asks_comes_first_and_nothing_is_tried_meanwhile(bench: Any, task: MakeTask) -> None:
    quality = ForkRaised("Which loop?", "quality", (Option("a"), Option("b")))
    worker = ScriptedWorker((ScriptedStep(events=(quality, FAR)),))
    ended = run(bench, worker, task(), "Import")
    assert [draft.question for draft in ended.drafts] == ["How far?"]
    assert ended.plan.forks.tried is None
    assert len(worker.requests) == 1


def test_a_single_option_is_no_choice(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    only = ForkRaised("Which loop?", "quality", (Option("a"),))
    worker = ScriptedWorker((ScriptedStep(events=(only,)), ScriptedStep(tree="good", events=DONE)))
    assert run(bench, worker, task(), "").stop.axis is Axis.GOAL
    assert worker.requests[1].settled[0].reason == "there is no other option"


def test_no_text_of_a_fork_makes_a_checkpoint_grow_without_bound(
    bench: Any, task: MakeTask
) -> None:
    huge = "long " * 1000
    options = (Option("a", huge), *(Option(f"{n} {huge[:500]}") for n in range(25)))
    raised = ForkRaised(huge, "quality", options, huge)
    worker = ScriptedWorker((ScriptedStep(events=(raised,)),))
    bench.settings = bench.settings.model_copy(
        update={"sandbox": bench.settings.sandbox.model_copy(update={"beam_width": 50})}
    )
    run(bench, worker, task(budget=Limits(loops=21)), "")
    tried = bench.sessions.saved[0][2].plan.forks.tried
    assert tried is not None
    assert len(tried.options) <= 20
    assert len(tried.question) <= 1000
    assert all(len(option.prompt) <= 4000 for option in tried.options)
    assert all(len(option.name) <= 200 for option in tried.options)


def test_words_beyond_what_is_kept_of_a_fork_still_make_it_external(
    bench: Any, task: MakeTask
) -> None:
    prompt = "x " * 10_000 + "with the password"
    raised = ForkRaised("Which?", "quality", (Option("a", prompt), Option("b")))
    ended = run(bench, ScriptedWorker((ScriptedStep(events=(raised,)),)), task(), "")
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.EXTERNAL)
