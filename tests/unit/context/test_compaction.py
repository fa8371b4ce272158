import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.context.compaction import BackgroundCompactor
from loopctl.context.stretch import CUT
from loopctl.context.summaries import BY_RULE
from loopctl.contextports import Question
from loopctl.domain import Goal, Limits, Mode, Task, TaskId
from loopctl.errors import CancelledError, StoreError
from loopctl.events import ContextCompacted
from loopctl.past import Past, Summary, Turn
from loopctl.settings import ContextSettings, Settings
from loopctl.steps import StepRequest
from loopctl.testing import MemoryEventLog
from loopctl.testing.context import HeldExecutor, ScriptedOracle
from loopctl.worker.graph.prompt import assemble

# The spike's run: twelve steps, counted from 0 as there, an event of equal size in each; the
# window holds six events and is blown by the seventh; a summary is small against an event.
STEPS = range(12)
EVENT_BYTES, SUMMARY_BYTES, WINDOW_BYTES = 400, 40, 2600
AUTONOMOUS = ContextSettings(compaction_threshold_events=6, window_tokens=WINDOW_BYTES // 4)
RELAY = AUTONOMOUS.model_copy(update={"compaction_threshold_events": 0})
SESSION, TASK = "r1/T1/main", "T1"


def short(question: Question) -> str:
    steps = re.findall(r"<<<DATA \w+ (Steps? .*)", question.prompt)
    return f"{steps[0]}..{steps[-1]}".ljust(SUMMARY_BYTES, ".")


def turn(step: int, text: str = "") -> Turn:
    return Turn(step, text or f"step {step}: ".ljust(EVENT_BYTES, "x"))


@dataclass
class Bench:
    """A compactor, and what was seen of it."""

    settings: ContextSettings = AUTONOMOUS
    oracle: ScriptedOracle = field(default_factory=lambda: ScriptedOracle(short))
    producer: HeldExecutor = field(default_factory=HeldExecutor)
    log: MemoryEventLog = field(default_factory=MemoryEventLog)

    def __post_init__(self) -> None:
        self.compactor = BackgroundCompactor(
            "r1", self.oracle, lambda _task: self.settings, self.log.emit, self.producer
        )

    def tend(self, past: Past) -> Past:
        return self.compactor.tend(SESSION, TASK, past)

    def step(self, past: Past, number: int, text: str = "") -> Past:
        return self.tend(replace(past, turns=(*past.turns, turn(number, text))))

    def run(self, between: Callable[[], object]) -> list[Past]:
        """Return the past as each step is shown it; the producer works between the steps."""
        seen, past = [], Past()
        for number in STEPS:
            past = self.step(past, number)
            seen.append(past)
            between()
        return seen

    @property
    def events(self) -> list[ContextCompacted]:
        return [event for event in self.log.events if isinstance(event, ContextCompacted)]


def covered(past: Past) -> list[int]:
    """Return the steps that a past stands for, in order, each as often as it is in there."""
    inside = [number for one in past.summaries for number in range(one.first, one.last + 1)]
    return inside + [one.number for one in past.turns]


def assert_whole(seen: list[Past]) -> None:
    """Every step is in every later past exactly once, in a window that holds, uncut."""
    for number, past in enumerate(seen):
        assert covered(past) == list(range(number + 1))
        assert past.size_bytes <= WINDOW_BYTES
        assert not any(CUT in one.text for one in past.summaries)
        assert not any(CUT in one.text for one in past.turns)


def test_count_threshold_leads_so_that_no_step_waits_and_nothing_is_cut() -> None:
    bench = Bench()
    seen = bench.run(bench.producer.run_all)
    assert_whole(seen)
    assert [event for event in bench.events if event.in_line] == []
    assert [(event.first, event.last) for event in bench.events] == [(0, 2), (3, 5)]
    assert [len(past.turns) for past in seen] == [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6]


def test_summary_is_begun_one_step_before_the_window_would_be_blown() -> None:
    bench, past = Bench(), Past()
    begun = []
    for number in range(6):
        past = bench.step(past, number)
        begun.append(bench.producer.run_all())
    assert begun == [0, 0, 0, 0, 0, 1]
    assert past.size_bytes <= WINDOW_BYTES < past.size_bytes + EVENT_BYTES


def test_with_a_starved_producer_steps_6_and_11_wait_and_nothing_is_cut() -> None:
    bench = Bench()
    waited: list[tuple[int, int, int]] = []
    seen, past = [], Past()
    for number in STEPS:
        before = len(bench.events)
        past = bench.step(past, number)
        seen.append(past)
        waited += [(number, event.first, event.last) for event in bench.events[before:]]
    assert_whole(seen)
    assert waited == [(6, 0, 4), (11, 5, 9)]
    assert all(event.in_line and not event.is_merge for event in bench.events)


@pytest.mark.parametrize("producer", ["at work", "starved"])
def test_every_turn_is_summarised_exactly_once(producer: str) -> None:
    bench = Bench()
    bench.run((lambda: None) if producer == "starved" else bench.producer.run_all)
    asked = [
        re.findall(r"<<<DATA \w+ Step (\d+)", question.prompt) for question in bench.oracle.asked
    ]
    numbers = [int(number) for one in asked for number in one]
    assert numbers == list(range(len(numbers)))
    assert numbers


@pytest.mark.parametrize("writer", ["model", "rule"])
@pytest.mark.parametrize("producer", ["at work", "starved"])
def test_fact_of_the_first_step_is_still_told_at_the_twelfth(writer: str, producer: str) -> None:
    fact = "the port is 7714"

    def kept(question: Question) -> str | None:
        told = fact if fact in question.prompt else short(question)
        return told if writer == "model" else None

    bench = Bench(oracle=ScriptedOracle(kept))
    past = Past()
    for number in STEPS:
        past = bench.step(past, number, f"{fact}\n".ljust(EVENT_BYTES, "x") if not number else "")
        if producer == "at work":
            bench.producer.run_all()
    assert not any(fact in one.text for one in past.turns)
    assert fact in past.summaries[0].text
    request = StepRequest(
        "s", 12, "the twelfth", Goal("g"), Task(TaskId(TASK), "t"), "r", past=past
    )
    assert fact in "".join(message["content"] for message in assemble(request))


def test_summary_that_is_not_ready_is_not_waited_for() -> None:
    bench = Bench()
    past = Past(turns=tuple(map(turn, range(5))))
    past = bench.step(past, 5)
    assert (past.summaries, bench.oracle.asked) == ((), [])
    past = bench.tend(past)
    assert (past.summaries, bench.oracle.asked) == ((), [])
    assert bench.producer.run_all() == 1
    assert bench.tend(past).summaries == (Summary(0, 2, bench.tend(past).summaries[0].text),)


def test_summary_under_way_that_is_overtaken_is_dropped_and_not_paid_for() -> None:
    bench = Bench()
    past = Past()
    for number in range(7):
        past = bench.step(past, number)
    assert [event.in_line for event in bench.events] == [True]
    assert bench.producer.run_all() == 0
    assert len(bench.oracle.asked) == 1
    assert bench.tend(past) == past


def test_overtaken_summary_that_was_being_written_changes_nothing_when_it_comes() -> None:
    bench = Bench()
    past = Past()
    begun: list[Callable[[], object]] = []
    bench.producer.submit = lambda fn, *args: late(begun, fn, *args)  # type: ignore[method-assign]
    for number in range(7):
        past = bench.step(past, number)
    for finish in begun:
        finish()
    assert bench.tend(past) == past
    assert len(bench.events) == 1


def late(
    begun: list[Callable[[], object]], fn: Callable[..., object], *args: object
) -> Future[Any]:
    """Return a future that is running already, and that nothing can cancel any more."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    begun.append(lambda: future.set_result(fn(*args)))
    return future


def test_step_that_is_taken_again_gets_the_same_summary_for_nothing() -> None:
    bench = Bench()
    before = bench.step(Past(turns=tuple(map(turn, range(5)))), 5)
    bench.producer.run_all()
    once = bench.tend(before)
    assert bench.tend(before) == once
    assert (len(bench.events), len(bench.oracle.asked)) == (1, 1)


def test_relay_summarises_only_where_the_window_is_full() -> None:
    bench = Bench(settings=RELAY)
    seen = bench.run(bench.producer.run_all)
    assert_whole(seen)
    assert [(e.in_line, e.first, e.last) for e in bench.events] == [(True, 0, 4), (True, 5, 9)]
    assert bench.producer.run_all() == 0


def test_modes_have_thresholds_of_their_own() -> None:
    settings = Settings()
    thresholds = [
        settings.for_mode(mode).context.compaction_threshold_events
        for mode in (Mode.AUTONOMOUS, Mode.RELAY)
    ]
    assert thresholds == [6, 0]


@pytest.mark.parametrize(
    "answer",
    [None, lambda _question: None, lambda _question: " \n"],
    ids=["no model", "no answer", "no words"],
)
def test_where_no_model_answers_the_first_line_of_every_turn_stays(
    answer: Callable[[Question], str | None] | None,
) -> None:
    bench = Bench(oracle=ScriptedOracle(answer))
    past = Past()
    for number in range(7):
        past = bench.step(past, number, f"\n  did thing {number}\n{'y' * 380}")
        bench.producer.run_all()
    (summary,) = past.summaries
    assert summary.text == "\n".join(
        [BY_RULE, *(f"Step {number}: did thing {number}" for number in range(3))]
    )
    assert [event.is_fallback for event in bench.events] == [True]


def test_rule_names_what_it_leaves_out_where_there_is_no_room_for_a_line_each() -> None:
    bench = Bench(settings=RELAY, oracle=ScriptedOracle())
    past = bench.tend(Past(turns=tuple(turn(n, f"did thing {n}" + "z" * 20) for n in range(99))))
    text = past.summaries[0].text
    assert text.startswith(f"{BY_RULE}\nStep 0: did thing 0")
    found = re.search(r"\nStep (\d+): [^\n]*\n\(Steps (\d+) to (\d+): no room\)\nStep (\d+)", text)
    assert found is not None
    numbers = [int(number) for number in found.groups()]
    assert (numbers[1] - numbers[0], numbers[3] - numbers[2]) == (1, 1)


def test_model_that_says_too_much_is_cut_and_the_task_pays_with_its_caps() -> None:
    bench = Bench(oracle=ScriptedOracle(lambda _question: "é" * 5000))
    caps = Limits(tokens=9, usd=1.5)
    past = bench.compactor.tend(SESSION, TASK, Past(turns=tuple(map(turn, range(8)))), caps)
    assert len(past.summaries[0].text.encode()) <= WINDOW_BYTES // 6
    (question,) = bench.oracle.asked
    assert (question.purpose, question.tier, question.task) == ("summary", "cheap", TASK)
    assert (question.run_id, question.caps, question.answer) == ("r1", caps, None)


def test_older_summaries_are_merged_ahead_when_there_are_many() -> None:
    bench = Bench()
    past = Past(tuple(Summary(n, n, f"did {n}") for n in range(9)), (turn(9),))
    bench.tend(past)
    bench.producer.run_all()
    merged = bench.tend(past)
    assert [(one.first, one.last) for one in merged.summaries] == [
        (0, 4), (5, 5), (6, 6), (7, 7), (8, 8),
    ]  # fmt: skip
    assert [(event.is_merge, event.in_line) for event in bench.events] == [(True, False)]


def test_summaries_that_fill_the_window_are_merged_in_line() -> None:
    bench = Bench(oracle=ScriptedOracle(), settings=RELAY)
    summaries = tuple(Summary(n, n, f"did {n} ".ljust(430, "s")) for n in range(6))
    past = bench.tend(Past(summaries, (turn(6),)))
    assert covered(past) == list(range(7))
    assert [(one.first, one.last) for one in past.summaries] == [(0, 5)]
    assert all(f"did {n}" in past.summaries[0].text for n in range(6))
    assert past.turns == (turn(6),)


def test_stop_of_the_run_reaches_the_step_that_waits_and_the_one_after_the_producer() -> None:
    def stopped(_question: Question) -> str:
        raise CancelledError("asked to stop")

    bench = Bench(oracle=ScriptedOracle(stopped))
    with pytest.raises(CancelledError):
        bench.tend(Past(turns=tuple(map(turn, range(7)))))
    past = bench.tend(Past(turns=tuple(map(turn, range(6)))))
    bench.producer.run_all()
    with pytest.raises(CancelledError):
        bench.tend(past)


def test_machinery_that_breaks_in_the_background_breaks_the_task_and_not_in_silence() -> None:
    def broken(_question: Question) -> str:
        raise StoreError("the database is gone")

    bench = Bench(oracle=ScriptedOracle(broken))
    past = bench.tend(Past(turns=tuple(map(turn, range(6)))))
    bench.producer.run_all()
    with pytest.raises(StoreError):
        bench.tend(past)


def test_candidates_do_not_get_each_others_summaries() -> None:
    bench = Bench()
    one, two = (Past(turns=tuple(turn(n, f"{who}{n}") for n in range(6))) for who in "ab")
    bench.compactor.tend("s1", TASK, one)
    bench.compactor.tend("s2", TASK, two)
    bench.producer.run_all()
    bench.oracle.answer = None
    assert bench.compactor.tend("s2", TASK, one) == one
    assert bench.compactor.tend("s1", TASK, one).turns == one.turns[3:]


def test_close_drops_what_waits_and_begins_nothing_more() -> None:
    bench = Bench()
    past = bench.tend(Past(turns=tuple(map(turn, range(6)))))
    bench.compactor.close()
    assert bench.producer.is_shut
    assert bench.oracle.asked == []
    assert bench.tend(past) == past
    assert bench.producer.run_all() == 0


def test_close_waits_for_the_question_that_was_asked_and_keeps_nothing_of_it() -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def slowly(_question: Question) -> str:
        asked.set()
        assert may_answer.wait(60)
        return "late"

    log, oracle = MemoryEventLog(), ScriptedOracle(slowly)
    compactor = BackgroundCompactor("r1", oracle, lambda _task: AUTONOMOUS, log.emit)
    past = compactor.tend(SESSION, TASK, Past(turns=tuple(map(turn, range(6)))))
    assert asked.wait(60)
    closing = threading.Thread(target=compactor.close)
    closing.start()
    may_answer.set()
    closing.join(60)
    assert not closing.is_alive()
    assert not any(one.name.startswith("summaries") for one in threading.enumerate())
    assert compactor.tend(SESSION, TASK, past) == past
    assert log.events == []


texts = st.text(max_size=50).map(lambda text: text * 20)


@given(
    st.lists(texts, max_size=25),
    st.integers(0, 8),
    st.integers(1, 3000),
    st.sampled_from([None, lambda _q: "x", lambda q: q.prompt]),
    st.sampled_from(["never", "always", "odd"]),
)
def test_past_always_fits_its_window_and_no_step_is_ever_lost(
    said: list[str],
    threshold: int,
    window: int,
    answer: Callable[[Question], str | None] | None,
    produces: str,
) -> None:
    settings = ContextSettings(compaction_threshold_events=threshold, window_tokens=window)
    bench = Bench(settings=settings, oracle=ScriptedOracle(answer))
    past = Past()
    for number, text in enumerate(said, 1):
        turns = (*past.turns, Turn(number, text))
        past = bench.tend(replace(past, turns=turns))
        assert covered(past) == list(range(1, number + 1))
        assert past.size_bytes <= 4 * window
        assert past.turns[-1:] == turns[-1:] or window < 1229
        assert all(one.last + 1 == two.first for one, two in pairwise(past.summaries))
        if produces == "always" or (produces == "odd" and number % 2):
            bench.producer.run_all()
    summarised = [
        number
        for event in bench.events
        if not event.is_merge
        for number in range(event.first, event.last + 1)
    ]
    assert summarised == list(range(1, len(summarised) + 1))
