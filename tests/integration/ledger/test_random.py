"""Random interleavings of calls, kills, probes and answers keep each effect at most once."""

import contextlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopctl.calls import OutcomeUnknown, ToolResult
from loopctl.domain import DecisionKind, Limits

POINTS = [
    "ledger.before_intent",
    "ledger.after_intent",
    "proxy.before_effect",
    "proxy.after_effect",
    "ledger.before_done",
    "ledger.after_done",
]
CALLS = 4
moves = st.one_of(
    st.tuples(st.just("call"), st.integers(0, CALLS - 1)),
    st.tuples(st.just("kill"), st.integers(0, CALLS - 1), st.sampled_from(POINTS)),
    st.tuples(st.just("answer"), st.integers(0, CALLS - 1)),
    st.tuples(st.just("new process")),
)


class Life:
    """A house in which things happen; the even calls can be probed."""

    def __init__(self, house: Any, sink: Any) -> None:
        self.house = house
        self.sink = sink
        self.tools = {"probed": sink(is_probeable=True), "blind": sink()}
        self.process = house.process()
        self.asked: dict[int, str] = {}
        self.results: dict[int, set[str]] = {n: set() for n in range(CALLS)}

    @property
    def effects(self) -> Counter[str]:
        return Counter(key for tool in self.tools.values() for key in tool.keys)

    def made(self, n: int) -> Any:
        return self.house.call(n, "blind" if n % 2 else "probed", n=n)

    def call(self, n: int) -> None:
        before = self.effects
        found = self.process.proxy(self.house.session, self.tools).call(self.made(n))
        if isinstance(found, OutcomeUnknown):
            self.asked[n] = self.house.ask(self.process, DecisionKind.OUTCOME, self.made(n))
            assert self.effects == before
        else:
            self.results[n].add(found.content)

    def reborn(self) -> None:
        self.process.die()
        self.process = self.house.process()

    def answer(self, n: int) -> None:
        """A person looks, and tells the truth; delivered twice."""
        if n not in self.asked:
            return
        decision = self.asked.pop(n)
        happened = self.effects[self.made(n).key] > 0
        result = ToolResult(f"did {{'n': {n}}}") if happened else None
        for _ in range(2):
            self.process.calls.settle(decision, self.made(n).key, result)
        self.process.decisions.answer_decision(decision, "x", "now", Limits())


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(moves, max_size=14))
def test_each_effect_happens_once_whatever_is_killed(
    houses: Any, sink: Any, kill_at: Any, revive: Any, steps: list[Any]
) -> None:
    life = Life(houses(), sink)
    for move, *rest in steps:
        match move:
            case "call":
                life.call(rest[0])
            case "kill":
                with contextlib.suppress(kill_at(rest[1])):
                    life.call(rest[0])
                revive()
                life.reborn()
            case "answer":
                life.answer(rest[0])
            case _:
                life.reborn()
        assert max(life.effects.values(), default=0) <= 1
    for n in range(CALLS):
        life.call(n)
        life.answer(n)
        life.call(n)
    assert life.effects == Counter(life.made(n).key for n in range(CALLS))
    assert life.results == {n: {f"did {{'n': {n}}}"} for n in range(CALLS)}
    life.house.close()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    first=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3),
    other=st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3),
)
def test_same_key_with_other_arguments_never_runs(
    houses: Any, sink: Any, first: dict[str, Any], other: dict[str, Any]
) -> None:
    house, tool = houses(), sink()
    proxy = house.process().proxy(house.session, {"send": tool})
    proxy.call(house.call(**first))
    if first == other:
        assert proxy.call(house.call(**other)).replayed
    else:
        with pytest.raises(Exception, match="it was not run"):
            proxy.call(house.call(**other))
    assert len(tool.keys) == 1
    house.close()
