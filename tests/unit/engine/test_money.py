"""Where the money ends: a task asks, a run ends, and everybody is told what was spent."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from loopctl.domain import (
    Axis,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    Option,
    Sha,
    StopReason,
    Task,
    Usage,
)
from loopctl.engine.spending import RunBudget
from loopctl.engine.taskrun import Start
from loopctl.engine.terminator import is_of_run, refused_stop
from loopctl.moneyports import Cap, Claim, Refused
from loopctl.plan import PlanStatus
from loopctl.steps import (
    BudgetRefused,
    Deferred,
    OutputTail,
    PlanProposed,
    StepEvent,
    TodoDone,
    TurnTaken,
    UsageReported,
    WorkerProgress,
)
from loopctl.store.caps import RunCaps
from loopctl.testing import MemoryPurse, ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone("did it"))
RED: tuple[StepEvent, ...] = (OutputTail(1, "red"),)


class Spender(ScriptedWorker):
    """Pays for each of its steps before it takes it, as a worker that asks a model does."""

    def __init__(
        self, purse: MemoryPurse, steps: Any, *, tokens: int = 60, usd: float | None = 0.1
    ) -> None:
        super().__init__(steps)
        self.purse = purse
        self.price = (tokens, usd)

    def execute_step(self, request: Any, sandbox: Any) -> Any:
        tokens, usd = self.price
        claim = Claim("r1", request.task.id, "step", "m", tokens, usd, request.task.budget)
        found = self.purse.reserve(claim)
        if isinstance(found, Refused):
            self.requests.append(request)
            yield BudgetRefused(found.cap, found.reason, found.needed)
            yield WorkerProgress(
                made_tool_calls=False, tool_calls_errored=False, response_delta_hash=""
            )
            return
        cost = Usage(tokens // 2, tokens // 2, usd or 0.0)
        self.purse.settle(found.id, cost)
        yield UsageReported(cost)
        yield from super().execute_step(request, sandbox)


def trees(count: int) -> list[ScriptedStep]:
    return [ScriptedStep(f"t{n}", RED, answer=f"{n}") for n in range(count)]


@pytest.fixture
def purse(bench: Any) -> MemoryPurse:
    purse: MemoryPurse = MemoryPurse()
    bench.more["purse"] = purse
    return purse


def capped(task: MakeTask, **caps: float) -> Task:
    return task(worker="graph", budget=Limits(**caps))  # type: ignore[arg-type]


# Caps of a task


@pytest.mark.parametrize(
    ("caps", "reason", "option", "used"),
    [
        ({"tokens": 100}, "tokens", "tokens=240", "tokens=60 used"),
        ({"usd": 0.15}, "usd", "usd=1.1", "usd=0.1 used"),
    ],
)
def test_call_that_does_not_fit_under_a_cap_of_its_task_ends_it_with_a_budget_question(
    bench: Any,
    task: MakeTask,
    purse: MemoryPurse,
    caps: dict[str, float],
    reason: str,
    option: str,
    used: str,
) -> None:
    hands = Spender(purse, trees(9))
    ended = bench.run(hands, capped(task, **caps))
    assert ended.stop == StopReason(Axis.BUDGET, reason)
    assert ended.plan.status is PlanStatus.BUDGET_EXHAUSTED
    [draft] = ended.drafts
    assert (draft.kind, draft.options, draft.reason) == (DecisionKind.BUDGET, (option,), used)
    assert "would pass task_" in draft.question
    assert len(hands.requests) == 2
    assert not is_of_run(ended.stop)


def test_refused_step_is_no_loop_and_leaves_what_the_next_one_is_shown(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    ended = bench.run(Spender(purse, [ScriptedStep("a", DONE)]), capped(task, tokens=100))
    assert (ended.plan.budget.loops_used, ended.usage) == (1, Usage(30, 30, 0.1))
    last = bench.sessions.saved[-1][2]
    assert last.observation == "gate: verify is red"
    assert len(last.plan.progress) == 1


def test_raised_cap_lets_the_task_go_on_where_it_was(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    short = capped(task, tokens=100)
    draft = bench.run(Spender(purse, trees(9)), short).drafts[0]
    raised = int(draft.options[0].removeprefix("tokens="))
    answer = Decision(
        "T1.1", "T1", "r1", draft.kind, "?", answer="yes", raised=Limits(tokens=raised)
    )
    bench.gate.passing = frozenset({"good"})
    hands = Spender(purse, [ScriptedStep("good", DONE)])
    assert bench.run(hands, short, Start(head=Sha("c1"), answers=(answer,))).is_passed
    assert hands.requests[0].loop_iteration == 3
    assert purse.claims[-1].caps.tokens == raised


def test_answer_that_raises_dollars_is_good_for_that_much(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    short = capped(task, usd=0.15)
    assert bench.run(Spender(purse, trees(9)), short).stop.reason == "usd"
    answer = Decision(
        "T1.1", "T1", "r1", DecisionKind.BUDGET, "?", answer="yes", raised=Limits(usd=0.35)
    )
    hands = Spender(purse, trees(9))
    ended = bench.run(hands, short, Start(head=Sha("c1"), answers=(answer,)))
    assert ended.stop == StopReason(Axis.BUDGET, "usd")
    assert purse.spent("r1", "T1").usd == pytest.approx(0.3)
    assert ended.drafts[0].reason == "usd=0.3 used"


def test_cap_of_zero_asks_before_anything_is_spent_and_proposes_enough(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    ended = bench.run(Spender(purse, trees(1), tokens=5000), capped(task, tokens=0))
    # The terminator has the same cap, and says so before the first step.
    assert (ended.stop.reason, purse.claims) == ("tokens", [])
    ended = bench.run(Spender(purse, trees(1), tokens=5000), capped(task, tokens=1))
    assert ended.drafts[0].options == ("tokens=10000",)
    assert purse.costs == {}


def test_questions_of_a_task_count_against_its_cap(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    summary = purse.reserve(Claim("r1", "T1", "summary", "m", 50, 0.01))
    assert not isinstance(summary, Refused)
    ended = bench.run(Spender(purse, trees(9)), capped(task, tokens=100))
    assert ended.stop.reason == "tokens"
    assert ended.drafts[0].reason == "tokens=50 used"


def test_refusal_without_a_purse_shows_what_the_candidate_has_used(
    bench: Any, task: MakeTask
) -> None:
    refusal = BudgetRefused(Cap.TASK_TOKENS, "too much", 300)
    steps = [ScriptedStep("a", (UsageReported(Usage(30, 30)),)), ScriptedStep(events=(refusal,))]
    ended = bench.run(ScriptedWorker(steps), capped(task, tokens=100))
    assert (ended.drafts[0].reason, ended.drafts[0].options) == ("tokens=60 used", ("tokens=600",))


def test_planning_that_is_refused_ends_the_task(bench: Any, task: MakeTask) -> None:
    refusal = BudgetRefused(Cap.TASK_USD, "too much", 3)
    hands = ScriptedWorker([ScriptedStep(events=(refusal,))], makes_plans=True)
    ended = bench.run(hands, capped(task, usd=1))
    assert (ended.stop, len(hands.requests)) == (StopReason(Axis.BUDGET, "usd"), 1)
    assert ended.drafts[0].options == ("usd=6",)


def test_plan_that_was_made_before_the_refusal_is_kept(bench: Any, task: MakeTask) -> None:
    refusal = BudgetRefused(Cap.TASK_USD, "too much", 3)
    hands = ScriptedWorker(
        [ScriptedStep(events=(PlanProposed(("one", "two")), refusal))], makes_plans=True
    )
    bench.run(hands, capped(task, usd=1))
    assert [todo.text for todo in bench.sessions.saved[-1][2].plan.todos] == ["one", "two"]


def test_step_that_was_refused_in_its_middle_counts_and_is_remembered(
    bench: Any, task: MakeTask
) -> None:
    refusal = BudgetRefused(Cap.TASK_TOKENS, "too much", 300)
    events = (OutputTail(0, "half done"), TurnTaken("half done"), refusal)
    hands = ScriptedWorker([ScriptedStep("half", events, tool_calls="some")])
    ended = bench.run(hands, capped(task, tokens=100))
    last = bench.sessions.saved[-1][2]
    assert (ended.plan.budget.loops_used, ended.tree, last.observation) == (1, "half", "half done")
    assert [turn.text for turn in last.past.turns] == ["half done"]


def test_todo_that_was_closed_before_the_refusal_is_judged(bench: Any, task: MakeTask) -> None:
    refusal = BudgetRefused(Cap.TASK_TOKENS, "too much", 300)
    bench.gate.passing = frozenset({"good"})
    closing = ScriptedWorker([ScriptedStep("good", (*DONE, refusal))])
    assert bench.run(closing, capped(task, tokens=100)).is_passed
    closing = ScriptedWorker([ScriptedStep("bad", (*DONE, refusal))])
    ended = bench.run(closing, capped(partial(task, "T2"), tokens=100))
    assert ended.stop == StopReason(Axis.BUDGET, "tokens")


def test_unknown_price_blocks_with_a_question_that_names_the_setting(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    purse.caps = RunCaps(usd=1.0, has_user_usd_cap=True)
    hands = Spender(purse, trees(1), usd=None)
    ended = bench.run(hands, task(worker="graph"))
    assert ended.stop == StopReason(Axis.BUDGET, "unknown_price")
    [draft] = ended.drafts
    assert draft.kind is DecisionKind.ENVIRONMENT
    assert "input_usd_per_mtok" in draft.question
    assert not is_of_run(ended.stop)


# The run's own budget


@pytest.mark.parametrize(
    ("caps", "reason"), [(RunCaps(tokens=100), "run_tokens"), (RunCaps(usd=0.15), "run_usd")]
)
def test_call_that_does_not_fit_under_the_runs_cap_ends_the_task_without_a_question(
    bench: Any, task: MakeTask, purse: MemoryPurse, caps: RunCaps, reason: str
) -> None:
    purse.caps = caps
    shared = bench.more["run_budget"] = RunBudget()
    ended = bench.run(Spender(purse, trees(9)), task(worker="graph"))
    assert (ended.stop, ended.drafts) == (StopReason(Axis.BUDGET, reason), ())
    assert is_of_run(ended.stop)
    assert shared.stop == ended.stop
    [notice] = bench.of("noticed")
    assert notice.task is None
    assert notice.text.startswith("the run's budget is spent: a call of m")
    assert bench.sessions.saved[-1][2].tree == ended.tree == "t0"


def test_others_end_at_their_next_step_and_it_is_said_once(
    bench: Any, task: MakeTask, purse: MemoryPurse
) -> None:
    purse.caps = RunCaps(tokens=100)
    bench.more["run_budget"] = RunBudget()
    bench.run(Spender(purse, trees(9)), task(worker="graph"))
    hands = ScriptedWorker(trees(9))
    ended = bench.run(hands, task("T2"))
    assert (ended.stop.reason, hands.requests) == ("run_tokens", [])
    assert len(bench.of("noticed")) == 1


def test_result_that_passes_is_not_lost_to_the_runs_budget(bench: Any, task: MakeTask) -> None:
    shared = bench.more["run_budget"] = RunBudget()
    bench.gate.passing = frozenset({"good"})

    class Meanwhile(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            shared.exhaust(StopReason(Axis.BUDGET, "run_usd"))
            yield from super().execute_step(request, sandbox)

    assert bench.run(Meanwhile([ScriptedStep("good", DONE)]), task()).is_passed


def test_candidate_that_passes_wins_where_another_was_refused(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"good"})
    refusal = BudgetRefused(Cap.RUN_USD, "too much")

    class ByOption(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            self.steps = [ScriptedStep("good", DONE)]
            if request.option.name == "b":
                self.steps = [ScriptedStep(events=(refusal,))]
            yield from super().execute_step(request, sandbox)

    bench.settings = bench.settings.model_copy(
        update={"sandbox": bench.settings.sandbox.model_copy(update={"beam_width": 1})}
    )
    ended = bench.run(ByOption([]), task(options=(Option("a"), Option("b"))))
    assert (ended.is_passed, ended.candidate) == (True, "a")


@pytest.mark.parametrize("asks", [True, False])
def test_task_without_a_winner_stays_to_be_done_unless_a_candidate_asks(
    bench: Any, task: MakeTask, *, asks: bool
) -> None:
    refusal = BudgetRefused(Cap.RUN_USD, "too much")
    question = Deferred(DecisionDraft(DecisionKind.EXTERNAL, "Which?"))

    class ByOption(ScriptedWorker):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            event = refusal if request.option.name == "b" else question if asks else RED[0]
            self.steps = [ScriptedStep(events=(event,), answer="same")]
            yield from super().execute_step(request, sandbox)

    bench.settings = bench.settings.model_copy(
        update={"sandbox": bench.settings.sandbox.model_copy(update={"beam_width": 1})}
    )
    ended = bench.run(ByOption([]), task(options=(Option("a"), Option("b"))))
    assert is_of_run(ended.stop) is not asks
    assert [draft.question for draft in ended.drafts] == ["(option a) Which?"] * asks


def test_run_budget_keeps_the_first_reason() -> None:
    shared = RunBudget()
    assert shared.stop is None
    assert shared.exhaust(refused_stop(Cap.RUN_USD))
    assert not shared.exhaust(refused_stop(Cap.RUN_TOKENS))
    assert shared.stop == StopReason(Axis.BUDGET, "run_usd")


@pytest.mark.parametrize("cap", [None, *Cap])
def test_every_refusal_has_an_end_on_the_budget_axis(cap: Cap | None) -> None:
    stop = refused_stop(cap)
    assert stop.axis is Axis.BUDGET
    assert is_of_run(stop) is (cap is not None and cap.is_of_run)
