"""What a model has answered in a step: kept until the step has its checkpoint, never changed."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from loopctl.domain import Sha, TaskId
from loopctl.errors import CheckpointConflictError, StoreError
from loopctl.plan import ITERATION_LIMIT, Budget, Checkpoint, single_todo
from loopctl.store.database import Database
from loopctl.store.replies import SqliteReplies
from loopctl.store.sessions import SqliteSessions

POINT = Checkpoint(plan=single_todo("g", "t", Budget()), tree="abc", base="c1")


@pytest.fixture
def sessions(database: Database) -> SqliteSessions:
    return SqliteSessions(database)


@pytest.fixture
def replies(database: Database) -> SqliteReplies:
    return SqliteReplies(database)


@pytest.fixture
def session(sessions: SqliteSessions) -> str:
    return sessions.open_session("r1", TaskId("T1"), "main", Sha("c1")).id


def test_replies_come_back_in_order_and_those_of_one_step_alone(
    replies: SqliteReplies, sessions: SqliteSessions, session: str
) -> None:
    other = sessions.open_session("r1", TaskId("T1"), "other", Sha("c1")).id
    for number, reply in ((1, "b"), (0, "a"), (2, "c")):
        replies.keep(session, 1, number, reply)
    replies.keep(session, 2, 0, "next step")
    replies.keep(other, 1, 0, "other candidate")
    assert replies.replies(session, 1) == ("a", "b", "c")
    assert replies.replies(session, 3) == ()


def test_steps_of_one_iteration_are_told_apart_by_their_first_number(
    replies: SqliteReplies, session: str
) -> None:
    for number in (0, 1, 1000, 1001, 1003):
        replies.keep(session, 1, number, str(number))
    assert replies.replies(session, 1) == ("0", "1")
    assert replies.replies(session, 1, 1000) == ("1000", "1001")
    assert replies.replies(session, 1, 2000) == ()


def test_same_reply_again_is_a_no_op_and_another_one_is_refused(
    replies: SqliteReplies, session: str
) -> None:
    for _ in range(2):
        replies.keep(session, 1, 0, '{"text": "a"}')
    with pytest.raises(CheckpointConflictError):
        replies.keep(session, 1, 0, '{"text": "b"}')
    assert replies.replies(session, 1) == ('{"text": "a"}',)


def test_text_that_is_no_utf8_comes_back_as_it_was(replies: SqliteReplies, session: str) -> None:
    replies.keep(session, 1, 0, '"caf\udce9 — ☕"')
    assert replies.replies(session, 1) == ('"caf\udce9 — ☕"',)


def test_end_of_a_step_drops_its_replies_and_no_others(
    replies: SqliteReplies, sessions: SqliteSessions, session: str
) -> None:
    other = sessions.open_session("r1", TaskId("T1"), "other", Sha("c1")).id
    replies.keep(session, 1, 0, "a")
    replies.keep(other, 1, 0, "b")
    sessions.save_checkpoint(session, 1, POINT)
    assert (replies.replies(session, 1), replies.replies(other, 1)) == ((), ("b",))
    replies.keep(session, 2, 0, "c")
    sessions.save_checkpoint(session, 1, POINT)
    assert replies.replies(session, 2) == ("c",)


def test_checkpoint_that_conflicts_drops_nothing(
    replies: SqliteReplies, sessions: SqliteSessions, session: str, database: Database
) -> None:
    sessions.save_checkpoint(session, 1, POINT)
    with database.write() as connection:
        connection.execute("INSERT INTO replies VALUES (?, 1, 0, x'61')", (session,))
    with pytest.raises(CheckpointConflictError):
        sessions.save_checkpoint(session, 1, replace(POINT, tree="x"))
    assert replies.replies(session, 1) == ("a",)


def test_replies_and_checkpoint_go_and_come_in_one_transaction(
    replies: SqliteReplies,
    sessions: SqliteSessions,
    session: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from loopctl import failpoints

    replies.keep(session, 1, 0, "a")

    def broken(name: str) -> None:
        if name == "database.before_commit":
            raise KeyboardInterrupt

    monkeypatch.setattr(failpoints, "_armed", broken)
    with pytest.raises(KeyboardInterrupt):
        sessions.save_checkpoint(session, 1, POINT)
    monkeypatch.undo()
    assert replies.replies(session, 1) == ("a",)
    again = sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
    assert again.checkpoint is None


def test_step_that_has_ended_takes_no_more_replies(
    replies: SqliteReplies, sessions: SqliteSessions, session: str
) -> None:
    sessions.save_checkpoint(session, 2, POINT)
    for iteration in (1, 2):
        with pytest.raises(CheckpointConflictError):
            replies.keep(session, iteration, 0, "late")
    replies.keep(session, 3, 0, "in time")


@pytest.mark.parametrize(("iteration", "number"), [(-1, 0), (ITERATION_LIMIT, 0), (1, -1)])
def test_number_out_of_range_is_refused(
    replies: SqliteReplies, session: str, iteration: int, number: int
) -> None:
    with pytest.raises(ValueError, match="out of range"):
        replies.keep(session, iteration, number, "a")


def test_reply_of_a_session_that_nobody_opened_is_refused(replies: SqliteReplies) -> None:
    with pytest.raises(StoreError):
        replies.keep("r1/T9/main", 1, 0, "a")


KEEPER = """
import sys
from pathlib import Path
from loopctl import failpoints
from loopctl.store.database import open_database
from loopctl.store.replies import SqliteReplies

path, session, point = sys.argv[1:]
replies = SqliteReplies(open_database(Path(path)))
failpoints.arm({failpoints.VARIABLE: point})
replies.keep(session, 1, 0, "a")
"""


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("replies.before_keep:1", ()),
        ("database.before_commit:1", ()),
        ("database.after_commit:1", ("a",)),
        ("replies.after_keep:1", ("a",)),
    ],
)
def test_kill_around_the_write_leaves_the_whole_reply_or_none(
    replies: SqliteReplies, session: str, tmp_path: Path, point: str, left: tuple[str, ...]
) -> None:
    words = [sys.executable, "-c", KEEPER, str(tmp_path / "loop.db"), session, point]
    killed = subprocess.run(words, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert replies.replies(session, 1) == left
    replies.keep(session, 1, 0, "a")
    assert replies.replies(session, 1) == ("a",)
