import threading
from dataclasses import replace
from pathlib import Path

import pytest

from loopctl import verdict
from loopctl.domain import DecisionDraft, DecisionKind, Limits, RunStatus, Scope, Sha, TaskId
from loopctl.errors import AnswerError, CheckpointConflictError, SchemaTooNewError, StoreError
from loopctl.plan import Budget, Checkpoint, single_todo
from loopctl.store.database import Database, open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.store.verdicts import SqliteVerdicts
from loopctl.verdict import Blame, Check, CheckResult, Verdict

POINT = Checkpoint(plan=single_todo("g", "t", Budget()), tree="abc", base="c1")
DRAFT = DecisionDraft(DecisionKind.EXTERNAL, "Which?", "blue", ("blue", "red"), "why")


def test_run_comes_back_as_it_was_put_in(database: Database) -> None:
    runs = SqliteRuns(database)
    found = runs.run("r1")
    assert found is not None
    assert (found.scope, found.verify_cmd, found.is_wip) == (
        Scope(areas=("import",)),
        "make test",
        True,
    )
    runs.create_run(replace(found, id="r2"))
    runs.set_run_status("r1", RunStatus.COMPLETE, "later")
    assert [(run.id, run.status, run.ended) for run in runs.runs()] == [
        ("r2", RunStatus.RUNNING, None),
        ("r1", RunStatus.COMPLETE, "later"),
    ]
    assert runs.run("r3") is None


def test_checkpoint_of_the_same_iteration_and_contents_is_a_no_op(database: Database) -> None:
    sessions = SqliteSessions(database)
    session = sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
    sessions.save_checkpoint(session.id, 1, POINT)
    sessions.save_checkpoint(session.id, 1, POINT)
    assert database.rows("SELECT count(*) AS n FROM checkpoints")[0]["n"] == 1


def test_checkpoint_of_the_same_iteration_with_other_contents_is_an_error(
    database: Database,
) -> None:
    sessions = SqliteSessions(database)
    session = sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
    sessions.save_checkpoint(session.id, 1, POINT)
    with pytest.raises(CheckpointConflictError):
        sessions.save_checkpoint(session.id, 1, replace(POINT, tree="other"))
    again = sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
    assert again.checkpoint == POINT


def test_session_goes_on_from_its_last_iteration_and_its_first_base(database: Database) -> None:
    sessions = SqliteSessions(database)
    session = sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
    assert (session.iteration, session.checkpoint) == (0, None)
    for iteration in (1, 2, 10):
        sessions.save_checkpoint(session.id, iteration, replace(POINT, tree=f"t{iteration}"))
    again = sessions.open_session("r1", TaskId("T1"), "main", Sha("c9"))
    assert (again.iteration, again.base, again.id) == (10, "c1", session.id)
    assert again.checkpoint == replace(POINT, tree="t10")


def test_candidates_of_a_task_have_sessions_of_their_own(database: Database) -> None:
    sessions = SqliteSessions(database)
    ids = {
        sessions.open_session("r1", TaskId("T1"), name, Sha("c1")).id for name in ("regex", "own")
    }
    assert len(ids) == 2


def test_decisions_are_numbered_within_their_task(database: Database) -> None:
    decisions = SqliteDecisions(database)
    ids = [
        decisions.raise_decision("r1", task, replace(DRAFT, question=f"{n}?")).id
        for n, task in enumerate(["T1", "T2", "T1"])
    ]
    assert ids == ["T1.1", "T2.1", "T1.2"]
    found = decisions.decisions(task="T1")[0]
    assert (found.options, found.best_guess, found.reason) == (("blue", "red"), "blue", "why")


def test_same_question_before_its_answer_is_one_decision(database: Database) -> None:
    decisions = SqliteDecisions(database)
    first = decisions.raise_decision("r1", "T1", DRAFT)
    assert decisions.raise_decision("r1", "T1", DRAFT) == first
    decisions.answer_decision("T1.1", "red", "now", Limits())
    assert decisions.raise_decision("r1", "T1", DRAFT).id == "T1.2"


def test_second_answer_is_refused_and_shows_the_first(database: Database) -> None:
    decisions = SqliteDecisions(database)
    decisions.raise_decision("r1", "T1", DRAFT)
    answered = decisions.answer_decision("T1.1", "red", "now", Limits(loops=9))
    assert (answered.answer, answered.raised) == ("red", Limits(loops=9))
    with pytest.raises(AnswerError, match="'red'; the first answer stands"):
        decisions.answer_decision("T1.1", "green", "later", Limits())
    assert decisions.decisions()[0].answer == "red"
    with pytest.raises(AnswerError, match=r"no decision T9\.1"):
        decisions.answer_decision("T9.1", "x", "now", Limits())


def test_answers_are_recorded_all_together_or_not_at_all(database: Database) -> None:
    decisions = SqliteDecisions(database)
    for task in ("T1", "T2", "T3"):
        decisions.raise_decision("r1", task, DecisionDraft(DecisionKind.SCOPE, "?"))
    decisions.answer_decision("T3.1", "red", "now", Limits())
    words = [("T1.1", "a", Limits()), ("T2.1", "b", Limits(loops=2))]
    with pytest.raises(AnswerError, match="the first answer stands"):
        decisions.answer_decisions([*words, ("T3.1", "c", Limits())], "later")
    assert [one.answer for one in decisions.decisions()] == [None, None, "red"]
    answered = decisions.answer_decisions(words, "later")
    assert [(one.answer, one.raised) for one in answered] == [
        ("a", Limits()),
        ("b", Limits(loops=2)),
    ]


def test_two_answers_at_once_are_one_answer(database: Database) -> None:
    decisions = SqliteDecisions(database)
    decisions.raise_decision("r1", "T1", DRAFT)
    refused: list[str] = []

    def answer(text: str) -> None:
        try:
            decisions.answer_decision("T1.1", text, "now", Limits())
        except AnswerError:
            refused.append(text)

    threads = [threading.Thread(target=answer, args=(f"a{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert decisions.decisions()[0].answer not in refused


def test_verdicts_are_remembered_by_tree_check_and_command(database: Database) -> None:
    verdicts = SqliteVerdicts(database)
    result = CheckResult(
        Check.VERIFY,
        Verdict.FAIL,
        Blame.PRE_EXISTING,
        exit=1,
        counts=verdict.TestCounts(collected=3),
    )
    verdicts.put("tree", "verify", "make", result)
    assert verdicts.get("tree", "verify", "make") == result
    assert verdicts.get("tree", "verify", "other") is None
    assert verdicts.get("other", "verify", "make") is None


@pytest.mark.parametrize("blame", [Blame.ENVIRONMENT, Blame.FLAKY])
def test_verdict_that_may_change_by_itself_is_not_kept(database: Database, blame: Blame) -> None:
    verdicts = SqliteVerdicts(database)
    verdicts.put("tree", "verify", "x", CheckResult(Check.VERIFY, Verdict.UNKNOWN, blame))
    assert verdicts.get("tree", "verify", "x") is None


def test_failed_transaction_leaves_nothing_of_itself(database: Database) -> None:
    def fails() -> None:
        with database.write() as connection:
            connection.execute("DELETE FROM runs")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert SqliteRuns(database).run("r1") is not None


def test_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "loop.db"
    database = open_database(path)
    with database.write() as connection:
        connection.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(SchemaTooNewError, match="version 99"):
        open_database(path)


@pytest.mark.parametrize("content", [b"no database at all" * 99, b"SQLite format 3\0" + b"x" * 500])
def test_damaged_database_is_one_clear_error_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "loop.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"loop\.db cannot be used.*move it"):
        open_database(path)
    assert path.read_bytes() == content


def test_database_is_private(tmp_path: Path) -> None:
    open_database(tmp_path / "loop.db").close()
    assert (tmp_path / "loop.db").stat().st_mode & 0o077 == 0
