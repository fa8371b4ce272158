import threading
from collections.abc import Callable
from typing import Any

from loopctl.domain import (
    Axis,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    Option,
    Sha,
    Task,
)
from loopctl.engine import forks
from loopctl.engine.taskrun import Start
from loopctl.plan import Budget
from loopctl.settings import SandboxSettings
from loopctl.steps import Deferred, OutputTail, StepEvent, TodoDone
from loopctl.testing import ScriptedStep, ScriptedWorker

MakeTask = Callable[..., Task]
DONE: tuple[StepEvent, ...] = (OutputTail(0, "ok"), TodoDone())


class ByOption(ScriptedWorker):
    """Writes the tree that its option's prompt names."""

    def __init__(self, events: tuple[StepEvent, ...] = DONE) -> None:
        super().__init__([])
        self.events = events
        self.lock = threading.Lock()

    def execute_step(self, request: Any, sandbox: Any) -> Any:
        with self.lock:
            self.requests.append(request)
        sandbox.restore(request.option.prompt)
        yield from self.events
        yield from ScriptedWorker([ScriptedStep(answer="x")]).execute_step(request, sandbox)


def options(*trees: str) -> tuple[Option, ...]:
    return tuple(Option(name=f"o{n}", prompt=tree) for n, tree in enumerate(trees))


def test_smaller_passing_diff_wins_and_every_loser_keeps_its_ref(
    bench: Any, task: MakeTask
) -> None:
    bench.gate.passing = frozenset({"long result", "short"})
    ended = bench.run(ByOption(), task(options=options("long result", "bad", "short")))
    assert (ended.candidate, ended.tree) == ("o2", "short")
    assert set(bench.repository.refs) == {f"refs/loop/r1/T1/o{n}" for n in range(3)}
    assert bench.repository.open == set()
    assert [event.winner for event in bench.of("fork_resolved")] == ["o2"]
    verdicts = {event.name: event.verdict for event in bench.of("candidate_ended")}
    assert verdicts == {"o0": "pass", "o1": "fail", "o2": "pass"}


def test_first_of_equal_diffs_wins(bench: Any, task: MakeTask) -> None:
    bench.gate.passing = frozenset({"aaaaa", "bbbbb"})
    assert bench.run(ByOption(), task(options=options("aaaaa", "bbbbb"))).candidate == "o0"


def test_no_passing_candidate_is_a_stall_not_a_landing(bench: Any, task: MakeTask) -> None:
    ended = bench.run(ByOption(), task(options=options("x", "y")))
    assert ended.stop.axis is Axis.STALL
    assert [event.winner for event in bench.of("fork_resolved")] == [None]


def test_every_candidate_that_asks_is_heard_and_only_it_gets_its_answer(
    bench: Any, task: MakeTask
) -> None:
    class Asking(ByOption):
        def execute_step(self, request: Any, sandbox: Any) -> Any:
            if request.answer is None:
                how = f"How {request.option.prompt}?"
                self.events = (Deferred(DecisionDraft(DecisionKind.EXTERNAL, how)),)
            else:
                self.events = (OutputTail(0, "ok"), TodoDone())
            yield from super().execute_step(request, sandbox)

    settings = bench.settings.sandbox.model_copy(update={"beam_width": 1})
    bench.settings = bench.settings.model_copy(update={"sandbox": settings})
    hands = Asking()
    ended = bench.run(hands, task(options=options("x", "y")))
    assert ended.stop.axis is Axis.DEFER
    questions = [draft.question for draft in ended.drafts]
    assert questions == ["(option o0) How x?", "(option o1) How y?"]
    answered = Decision("T1.1", "T1", "r1", DecisionKind.EXTERNAL, questions[1], answer="so")
    bench.gate.passing = frozenset({"x", "y"})
    hands.requests.clear()
    bench.run(hands, task(options=options("x", "y")), Start(Sha("c1"), answers=(answered,)))
    heard = {request.option.name: request.answer for request in hands.requests if request.option}
    assert heard == {"o0": None, "o1": "so"}


def test_candidate_that_is_stuck_stays_so_when_another_goes_on(bench: Any, task: MakeTask) -> None:
    hands = ByOption((OutputTail(1, "red"),))
    one = task(options=options("x", "y"))
    bench.run(hands, one)
    steps = len(hands.requests)
    bench.run(hands, one)
    assert len(hands.requests) == steps


def test_never_more_worktrees_than_the_beam_is_wide(bench: Any, task: MakeTask) -> None:
    bench.settings = bench.settings.model_copy(update={"sandbox": SandboxSettings(beam_width=2)})
    bench.run(ByOption(), task(options=options(*"abcdefgh")))
    assert bench.repository.most_open <= 2


def test_candidates_share_the_steps_of_their_task(bench: Any, task: MakeTask) -> None:
    hands = ByOption(events=(OutputTail(1, "red"),))
    bench.run(hands, task(options=options("a", "b"), budget=Limits(loops=4)))
    assert len(hands.requests) == 4


def test_shares_are_equal_and_zero_stays_zero() -> None:
    budget = Budget(loops_max=25, tokens_max=1000, usd_max=1.0, wall_max_ms=60)
    assert forks.share(budget, 2) == Budget(
        loops_max=12, tokens_max=500, usd_max=0.5, wall_max_ms=60
    )
    assert forks.share(Budget(loops_max=0), 3).loops_max == 0
    assert forks.share(Budget(), 3) == Budget()
