"""A file of an older version is brought up to this one, and nothing in it is lost."""

import shutil
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from loopctl.calls import Fresh, Recorded, ToolCall, ToolResult
from loopctl.domain import DecisionDraft, DecisionKind, Limits, RunStatus, Sha, TaskId
from loopctl.errors import StoreError
from loopctl.moneyports import Claim, Reserved
from loopctl.store import database, upgrades
from loopctl.store.caps import RunCaps
from loopctl.store.database import SCHEMA_VERSION, open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.store.stores import Stores
from loopctl.store.verdicts import SqliteVerdicts
from loopctl.testing import StillClock

DATA = Path(__file__).parent / "data"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that version 1 has written."""
    return Path(shutil.copy(DATA / "loop-v1.db", tmp_path / "loop.db"))


@pytest.fixture(params=[1, 2])
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that some older version has written."""
    return Path(shutil.copy(DATA / f"loop-v{request.param}.db", tmp_path / "loop.db"))


def shape(path: Path) -> object:
    """Columns, keys and references of every table; how a table came to them does not matter."""
    with closing(sqlite3.connect(path)) as connection:
        names = [
            row[0]
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        asked = ("table_xinfo", "foreign_key_list", "index_list")
        found = {
            name: {ask: connection.execute(f"PRAGMA {ask}({name})").fetchall() for ask in asked}
            for name in names
        }
        strict = connection.execute("PRAGMA table_list").fetchall()
        version = connection.execute("PRAGMA user_version").fetchone()
    return found, sorted(strict), version


def checks(path: Path, table: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    return " ".join(str(sql).split())


def test_older_version_becomes_what_a_new_file_is(older: Path, tmp_path: Path) -> None:
    open_database(older).close()
    open_database(tmp_path / "new.db").close()
    assert shape(older) == shape(tmp_path / "new.db")
    for table in ("calls", "approvals", "checkpoints", "replies", "spendings", "pins"):
        assert checks(older, table) == checks(tmp_path / "new.db", table)


def test_all_that_version_1_held_is_there(old: Path) -> None:
    found = open_database(old)
    run = SqliteRuns(found).run("r1")
    assert run is not None
    assert (run.status, run.goal) == (RunStatus.RUNNING, "the goal")
    session = SqliteSessions(found).open_session("r1", TaskId("T1"), "main", Sha("c9"))
    assert (session.iteration, session.base, session.interrupt) == (2, "c1", None)
    assert session.checkpoint is not None
    assert session.checkpoint.tree == "t2"
    decisions = SqliteDecisions(found)
    assert [(one.id, one.answer, one.call_key) for one in decisions.decisions()] == [
        ("T1.1", "red", ""),
        ("T1.2", None, ""),
    ]
    assert SqliteVerdicts(found).get("t1", "verify", "make test") is not None
    # And it takes what is new.
    decisions.answer_decision("T1.2", "yes", "now", Limits(loops=1))
    decisions.raise_decision("r1", "T1", DecisionDraft(DecisionKind.OUTCOME, "?", call_key="k"))
    assert decisions.decisions()[-1].call_key == "k"
    found.close()


def test_all_that_version_2_held_is_there_and_takes_money_and_replies(tmp_path: Path) -> None:
    shutil.copy(DATA / "loop-v2.db", tmp_path / "loop.db")
    with Stores(tmp_path, StillClock()) as stores:
        session = stores.sessions.open_session("r1", TaskId("T1"), "main", Sha("c9"))
        assert (session.iteration, session.checkpoint is not None) == (1, True)
        assert session.interrupt is not None
        waiting = session.interrupt.call
        assert (waiting.tool, session.interrupt.blob) == ("pay", b"blob")
        [decision] = stores.decisions.decisions()
        assert decision.call_key == waiting.key
        # The consent of before is to the same call, and what was done before is not done again.
        token = stores.call_decisions.grant(decision.id, waiting, timedelta(hours=1))
        assert stores.ledger.reserve(waiting, needs_approval=True, approval=token) == Fresh()
        sent = stores.ledger.reserve(ToolCall(session.id, 2, 0, "send", {"a": 1}))
        assert sent == Recorded(ToolResult("sent"))
        stores.replies.keep(session.id, 2, 0, "{}")
        assert stores.replies.replies(session.id, 2) == ("{}",)
        claim = Claim("r1", "T1", "step", "m", 10, 0.5)
        assert isinstance(stores.purse(RunCaps()).reserve(claim), Reserved)


def test_upgrade_is_done_once(older: Path) -> None:
    open_database(older).close()
    before = shape(older)
    open_database(older).close()
    assert shape(older) == before


def test_upgrade_that_breaks_off_leaves_the_old_file(
    older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = shape(older)
    *steps, (target, statements) = upgrades.UPGRADES
    broken = (*steps, (target, (*statements, "CREATE TABLE no")))
    monkeypatch.setattr(database, "UPGRADES", broken)
    with pytest.raises(StoreError):
        open_database(older)
    assert shape(older) == before
    monkeypatch.undo()
    open_database(older).close()
    assert shape(older) != before


def test_steps_lead_to_the_present_version_without_a_gap() -> None:
    assert [target for target, _ in upgrades.UPGRADES] == list(range(2, SCHEMA_VERSION + 1))
