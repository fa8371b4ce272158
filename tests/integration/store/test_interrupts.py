"""Interrupt checkpoints: beside the normal ones, never one of them, and gone with their step."""

from dataclasses import replace

import pytest

from loopctl.calls import ToolCall
from loopctl.domain import DecisionKind, Sha, TaskId
from loopctl.errors import CheckpointConflictError
from loopctl.plan import INTERRUPT_FLAG, ITERATION_LIMIT, Budget, Checkpoint, Interrupt, single_todo
from loopctl.records import SessionRecord
from loopctl.store.database import Database
from loopctl.store.sessions import SqliteSessions

POINT = Checkpoint(plan=single_todo("g", "t", Budget()), tree="abc", base="c1")


@pytest.fixture
def sessions(database: Database) -> SqliteSessions:
    return SqliteSessions(database)


def opened(sessions: SqliteSessions, candidate: str = "main") -> SessionRecord:
    return sessions.open_session("r1", TaskId("T1"), candidate, Sha("c1"))


def waiting(session: SessionRecord, iteration: int, ordinal: int = 0) -> Interrupt:
    call = ToolCall(session.id, iteration, ordinal, "send", {"a": 1})
    return Interrupt(DecisionKind.APPROVAL, call, replace(POINT, tree="half"), b"blob")


def numbers(database: Database) -> list[int]:
    rows = database.rows("SELECT loop_iteration FROM checkpoints ORDER BY loop_iteration")
    return [row["loop_iteration"] for row in rows]


def test_interrupt_of_the_first_step_is_no_checkpoint(sessions: SqliteSessions) -> None:
    session = opened(sessions)
    sessions.save_interrupt(session.id, 1, waiting(session, 1))
    again = opened(sessions)
    assert (again.iteration, again.checkpoint) == (0, None)
    assert again.interrupt == waiting(session, 1)
    assert again.newest == replace(POINT, tree="half")


def test_interrupt_comes_beside_the_last_checkpoint(sessions: SqliteSessions) -> None:
    session = opened(sessions)
    sessions.save_checkpoint(session.id, 1, POINT)
    sessions.save_interrupt(session.id, 2, waiting(session, 2))
    again = opened(sessions)
    assert (again.iteration, again.checkpoint, again.interrupt) == (1, POINT, waiting(session, 2))


def test_further_interrupt_of_a_step_takes_the_next_number_and_counts(
    sessions: SqliteSessions, database: Database
) -> None:
    session = opened(sessions)
    for ordinal in range(3):
        sessions.save_interrupt(session.id, 1, waiting(session, 1, ordinal))
        found = opened(sessions).interrupt
        assert found is not None
        assert found.call.ordinal == ordinal
    assert numbers(database) == [INTERRUPT_FLAG | n << 32 | 1 for n in range(3)]


def test_same_interrupt_again_is_a_no_op(sessions: SqliteSessions, database: Database) -> None:
    session = opened(sessions)
    for _ in range(2):
        sessions.save_interrupt(session.id, 1, waiting(session, 1))
    assert numbers(database) == [INTERRUPT_FLAG | 1]


def test_end_of_the_step_drops_its_interrupts_and_no_others(
    sessions: SqliteSessions, database: Database
) -> None:
    session, other = opened(sessions), opened(sessions, "other")
    sessions.save_interrupt(other.id, 1, waiting(other, 1))
    sessions.save_interrupt(session.id, 1, waiting(session, 1))
    sessions.save_interrupt(session.id, 1, waiting(session, 1, 1))
    sessions.save_checkpoint(session.id, 1, POINT)
    assert (opened(sessions).interrupt, opened(sessions).iteration) == (None, 1)
    assert opened(sessions, "other").interrupt == waiting(other, 1)
    assert numbers(database) == [1, INTERRUPT_FLAG | 1]


def test_conflicting_end_of_the_step_drops_nothing(sessions: SqliteSessions) -> None:
    session = opened(sessions)
    sessions.save_checkpoint(session.id, 1, POINT)
    sessions.save_interrupt(session.id, 2, waiting(session, 2))
    with pytest.raises(CheckpointConflictError):
        sessions.save_checkpoint(session.id, 1, replace(POINT, tree="x"))
    assert opened(sessions).interrupt == waiting(session, 2)


def test_step_that_has_ended_is_not_interrupted_any_more(
    sessions: SqliteSessions, database: Database
) -> None:
    session = opened(sessions)
    sessions.save_checkpoint(session.id, 2, POINT)
    for iteration in (1, 2):
        with pytest.raises(CheckpointConflictError):
            sessions.save_interrupt(session.id, iteration, waiting(session, iteration))
    assert numbers(database) == [2]


@pytest.mark.parametrize("iteration", [ITERATION_LIMIT, INTERRUPT_FLAG, INTERRUPT_FLAG | 1, -1])
def test_iteration_that_an_interrupt_could_have_is_refused(
    sessions: SqliteSessions, database: Database, iteration: int
) -> None:
    session = opened(sessions)
    with pytest.raises(ValueError, match="out of range"):
        sessions.save_checkpoint(session.id, iteration, POINT)
    with pytest.raises(ValueError, match="out of range"):
        sessions.save_interrupt(session.id, iteration, waiting(session, 1))
    assert numbers(database) == []
