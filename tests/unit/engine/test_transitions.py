import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import TaskStatus
from loopctl.engine.transitions import TRANSITIONS, Signal, advance
from loopctl.errors import InvalidTransitionError


def test_done_is_reached_by_a_landing_alone() -> None:
    ways = {
        (state, signal)
        for state, row in TRANSITIONS.items()
        for signal, new in row.items()
        if new is TaskStatus.DONE
    }
    assert ways == {(TaskStatus.IN_PROGRESS, Signal.LANDED)}


def test_done_is_left_by_being_reopened_alone() -> None:
    assert dict(TRANSITIONS[TaskStatus.DONE]) == {Signal.REOPENED: TaskStatus.TODO}


def test_stuck_runs_again_only_when_a_person_claims_it_or_takes_its_ground_away() -> None:
    assert dict(TRANSITIONS[TaskStatus.STUCK]) == {
        Signal.CLAIMED: TaskStatus.IN_PROGRESS,
        Signal.REOPENED: TaskStatus.TODO,
    }


def test_every_status_has_a_row_and_every_signal_is_used() -> None:
    assert set(TRANSITIONS) == set(TaskStatus)
    assert {signal for row in TRANSITIONS.values() for signal in row} == set(Signal)


@given(st.sampled_from(TaskStatus), st.sampled_from(Signal))
def test_a_missing_row_is_an_error_that_names_both(state: TaskStatus, signal: Signal) -> None:
    if signal in TRANSITIONS[state]:
        assert advance(state, signal) is TRANSITIONS[state][signal]
    else:
        with pytest.raises(InvalidTransitionError, match=f"{state}.*{signal}"):
            advance(state, signal)
