"""Two candidates pass and do not do the same: the goal settles it, or a person does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from loopctl.crossing import Difference, Entrant
from loopctl.domain import (
    Axis,
    Criterion,
    Decision,
    DecisionKind,
    Goal,
    Limits,
    Option,
    Sha,
    StopReason,
    Task,
)
from loopctl.engine.answers import Answer, check
from loopctl.engine.taskrun import Start
from loopctl.engine.work import Ended
from loopctl.errors import AnswerError, CancelledError
from loopctl.forking import Bucket
from loopctl.steps import ForkRaised, PlanProposed
from tests.unit.engine.hands import DONE, Hands, forking, still_red

MakeTask = Callable[..., Task]


@dataclass
class ByTree:
    """The port ``Comparison``: trees of one letter do the same.

    Attributes:
        meeting: Trees that meet a check, by its command; those in ``unknown`` nobody can tell.
    """

    meeting: dict[str, set[str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    found: str = "test_x.py::test_empty: assert [] == ['']"
    compared: list[tuple[str, str]] = field(default_factory=list)

    def differences(self, task: Task, one: Entrant, other: Entrant) -> tuple[Difference, ...]:
        del task
        self.compared.append((one.name, other.name))
        if one.tree[0] == other.tree[0]:
            return ()
        return (Difference(other.name, one.name, (self.found,)),)

    def meets(self, command: str, entrant: Entrant) -> bool | None:
        if entrant.tree in self.unknown:
            return None
        return entrant.tree in self.meeting.get(command, set())


@pytest.fixture
def comparison(bench: Any) -> ByTree:
    bench.more["comparison"] = found = ByTree()
    return found


def does(trees: dict[str, str]) -> Hands:
    return Hands(lambda request: (trees[request.option.name if request.option else ""], DONE))


def options(*names: str) -> tuple[Option, ...]:
    return tuple(Option(name, f"by {name}") for name in names)


def compete(bench: Any, task: MakeTask, **trees: str) -> Ended:
    return compete_on(bench, task, None, trees)


def compete_on(bench: Any, task: MakeTask, start: Start | None, trees: dict[str, str]) -> Ended:
    bench.gate.passing = frozenset(trees.values())
    ended: Ended = bench.run(does(trees), task(options=options(*trees)), start)
    return ended


def winners(bench: Any) -> list[str | None]:
    return [event.winner for event in bench.of("fork_resolved")]


@pytest.mark.usefixtures("comparison")
def test_where_the_goal_is_silent_a_person_is_asked_and_nothing_is_picked(
    bench: Any, task: MakeTask
) -> None:
    ended = compete(bench, task, regex="a much longer one", parser="b")
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.SCOPE)
    (draft,) = ended.drafts
    assert draft.options == ("parser", "regex")
    assert draft.best_guess == "parser"
    assert (
        "the tests of regex fail on parser (test_x.py::test_empty: assert [] ==" in draft.question
    )
    assert draft.reason.startswith("candidates differ: parser regex; fork (scope): candidates")
    assert winners(bench) == []
    (told,) = bench.of("fork_classified")
    assert (told.bucket, told.chosen, told.said) == (Bucket.SCOPE, "", "")
    assert bench.repository.open == set()
    assert {ref.rpartition("/")[2] for ref in bench.repository.refs} == {"regex", "parser"}


def test_candidates_that_do_the_same_are_picked_by_size(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    ended = compete(bench, task, regex="a much longer one", parser="as")
    assert (ended.candidate, winners(bench)) == ("parser", ["parser"])
    assert comparison.compared == [("parser", "regex")]


def test_one_that_passes_alone_is_compared_with_nothing(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    bench.gate.passing = frozenset({"a"})
    one = task(options=options("regex", "parser"), budget=Limits(loops=6))
    bench.run(does({"regex": "a", "parser": "b"}), one)
    assert (winners(bench), comparison.compared) == (["regex"], [])


@pytest.mark.usefixtures("comparison")
def test_an_option_that_the_goal_names_wins_though_it_is_the_larger_one(
    bench: Any, task: MakeTask
) -> None:
    bench.goal = Goal(text="Read it by regex.")
    ended = compete(bench, task, regex="a much longer one", parser="b")
    assert (ended.candidate, ended.is_passed) == ("regex", True)
    (resolved,) = bench.of("fork_resolved")
    assert 'the goal names "regex"' in resolved.reason
    (told,) = bench.of("fork_classified")
    assert told.chosen == "regex"


@pytest.mark.parametrize(("text", "wins"), [("Ship the MVP", "basic"), ("The full set", "wide")])
@pytest.mark.usefixtures("comparison")
def test_the_goal_says_how_far_to_go(bench: Any, task: MakeTask, text: str, wins: str) -> None:
    bench.goal = Goal(text=text)
    assert compete(bench, task, basic="a longer one", wide="b").candidate == wins


def test_the_one_that_meets_the_goals_checks_wins_before_its_words_are_read(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    bench.goal = Goal("Not by regex", (Criterion(check="sh check"), Criterion(check="true")))
    comparison.meeting = {"sh check": {"a much longer one"}, "true": {"a much longer one", "b"}}
    assert compete(bench, task, regex="a much longer one", parser="b").candidate == "regex"
    (resolved,) = bench.of("fork_resolved")
    assert "it alone meets the goal's checks" in resolved.reason


@pytest.mark.parametrize("unknown", [set(), {"b"}])
def test_a_check_that_nobody_meets_or_that_cannot_be_judged_settles_nothing(
    bench: Any, task: MakeTask, comparison: ByTree, unknown: set[str]
) -> None:
    bench.goal = Goal("x", (Criterion(check="sh check"),))
    comparison.unknown = unknown
    comparison.meeting = {"sh check": {"a much longer one"}} if unknown else {}
    assert compete(bench, task, regex="a much longer one", parser="b").stop.axis is Axis.DEFER


@pytest.mark.usefixtures("comparison")
def test_the_judge_is_asked_where_no_rule_settles_it(bench: Any, task: MakeTask) -> None:
    asked: list[ForkRaised] = []

    def choose(raised: ForkRaised, one: Task) -> tuple[str, str]:
        del one
        asked.append(raised)
        return "regex", "the goal says so"

    bench.more["choose"] = choose
    assert compete(bench, task, regex="a much longer one", parser="b").candidate == "regex"
    assert [option.prompt for option in asked[0].options] == ["by parser", "by regex"]


def test_what_speaks_of_the_outside_is_for_a_person_whatever_the_goal_says(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    comparison.found = "test_x.py::test_pays: assert 'production database' == 'a copy'"
    bench.goal = Goal(text="Read it by regex.")
    ended = compete(bench, task, regex="a much longer one", parser="b")
    assert ended.stop == StopReason(Axis.DEFER, DecisionKind.EXTERNAL)


@pytest.mark.usefixtures("comparison")
def test_one_that_does_as_the_smallest_does_is_no_option(bench: Any, task: MakeTask) -> None:
    (draft,) = compete(bench, task, one="b", two="b as well", three="a other").drafts
    assert draft.options == ("one", "three")


def answered(ended: Ended, text: str) -> Start:
    (draft,) = ended.drafts
    decision = Decision(
        "T1.1", "T1", "r1", draft.kind, draft.question, options=draft.options,
        reason=draft.reason, best_guess=draft.best_guess, answer=text,
    )  # fmt: skip
    return Start(Sha("c1"), answers=(decision,))


def test_the_answer_has_that_candidate_land_and_nothing_is_done_again(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    trees = {"regex": "a much longer one", "parser": "b"}
    start = answered(compete(bench, task, **trees), "regex")
    judged = len(bench.gate.seen)
    hands = does(trees)
    ended = bench.run(hands, task(options=options(*trees)), start)
    assert (ended.candidate, ended.tree, ended.is_passed) == ("regex", "a much longer one", True)
    assert (hands.requests, len(bench.gate.seen)) == ([], judged)
    assert len(comparison.compared) == 1
    (resolved,) = bench.of("fork_resolved")
    assert resolved.reason == "a person has chosen it, 13 changed lines"


@pytest.mark.usefixtures("comparison")
def test_an_answer_that_names_no_option_is_refused(bench: Any, task: MakeTask) -> None:
    (decision,) = answered(compete(bench, task, regex="a much longer one", parser="b"), "x").answers
    decision = replace(decision, answer=None)
    with pytest.raises(AnswerError, match=r"loop answer T1.1 parser or regex, or --reject"):
        check([Answer("T1.1", "both")], [decision])
    assert check([Answer("T1.1", "regex")], [decision]) == (decision,)


@pytest.mark.usefixtures("comparison")
def test_an_answer_about_options_that_are_gone_is_none(bench: Any, task: MakeTask) -> None:
    start = answered(compete(bench, task, regex="a much longer one", parser="b"), "regex")
    ended = compete_on(bench, task, start, {"table": "c", "parser": "b"})
    assert ended.drafts[0].options == ("table", "parser")


def test_a_comparison_that_was_cut_short_is_made_again_and_nothing_else(
    bench: Any, task: MakeTask, comparison: ByTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> Sequence[Difference]:
        raise CancelledError("killed")

    trees = {"regex": "a much longer one", "parser": "b"}
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "differences", cut)
        with pytest.raises(CancelledError):
            compete(bench, task, **trees)
    judged, hands = len(bench.gate.seen), does(trees)
    ended = bench.run(hands, task(options=options(*trees)))
    assert ended.drafts[0].options == ("parser", "regex")
    assert (hands.requests, len(bench.gate.seen)) == ([], judged)


@pytest.mark.usefixtures("comparison")
def test_options_of_a_fork_inside_a_task_are_compared_too_and_the_plan_goes_on_from_the_answer(
    bench: Any, task: MakeTask
) -> None:
    trees = {"regex": "a much longer one", "parser": "b"}
    bench.gate.passing = frozenset(trees.values())
    hands = Hands(forking(**trees))
    ended = bench.run(hands, task())
    assert (ended.candidate, ended.stop.axis, ended.tree) == ("main", Axis.DEFER, "half")
    (draft,) = ended.drafts
    assert draft.options == ("parser", "regex")
    assert "(Regex or parser?)" in draft.question
    steps = len(hands.requests)
    ended = bench.run(hands, task(), answered(ended, "regex"))
    assert (ended.candidate, ended.tree, ended.is_passed) == ("main", "a much longer one", True)
    assert len(hands.requests) == steps
    assert winners(bench) == ["main.1.1-regex"]


def test_results_that_are_not_whole_are_not_compared(
    bench: Any, task: MakeTask, comparison: ByTree
) -> None:
    still_red(bench)
    bench.gate.passing = frozenset({"whole"})

    def steps(request: Any) -> Any:
        if request.is_planning:
            return None, (PlanProposed(("first", "second")),)
        if request.option is not None:
            return f"{request.option.name} half", DONE
        if request.step_goal == "first":
            raised = ForkRaised("Which way?", "quality", options("regex", "parser"))
            return None, (raised,)
        return "whole", DONE

    ended = bench.run(Hands(steps, makes_plans=True), task())
    assert (ended.tree, comparison.compared) == ("whole", [])
