"""Decisions in the database: what humans were asked, and what they said."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, replace

from loopctl.domain import Decision, DecisionDraft, DecisionKind, Limits
from loopctl.errors import AnswerError
from loopctl.store.database import Database


class SqliteDecisions:
    """The port ``DecisionStore`` over SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def raise_decision(self, run_id: str, task: str, draft: DecisionDraft) -> Decision:
        """Return the new decision, numbered within its task; the open one if it is the same.

        The same question raised again before it was answered, as after a crash, is one decision.
        """
        clean = self._database.without_keys
        draft = replace(
            draft,
            question=clean(draft.question),
            best_guess=clean(draft.best_guess),
            options=tuple(clean(option) for option in draft.options),
            reason=clean(draft.reason),
        )
        with self._database.write() as connection:
            same = connection.execute(
                "SELECT * FROM decisions WHERE task = ? AND run_id = ? AND kind = ?"
                " AND question = ? AND call_key = ? AND answer IS NULL",
                (task, run_id, draft.kind, draft.question, draft.call_key),
            ).fetchone()
            if same is not None:
                return _decision(same)
            (count,) = connection.execute(
                "SELECT count(*) FROM decisions WHERE task = ?", (task,)
            ).fetchone()
            decision_id = f"{task}.{count + 1}"
            connection.execute(
                "INSERT INTO decisions (id, task, run_id, kind, question, best_guess, options,"
                " reason, call_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    decision_id,
                    task,
                    run_id,
                    draft.kind,
                    draft.question,
                    draft.best_guess,
                    json.dumps(draft.options),
                    draft.reason,
                    draft.call_key,
                ),
            )
        return self._one(decision_id)

    def answer_decision(
        self, decision_id: str, answer: str, answered_at: str, raised: Limits
    ) -> Decision:
        """Return one decision with its answer; see :meth:`answer_decisions`."""
        return self.answer_decisions([(decision_id, answer, raised)], answered_at)[0]

    def answer_decisions(
        self, answers: Iterable[tuple[str, str, Limits]], answered_at: str
    ) -> tuple[Decision, ...]:
        """Return the decisions with their answers and the caps that these raise.

        Raises:
            AnswerError: There is no such decision, or it was answered before (and how); none of
                the answers was recorded.
        """
        given = tuple(answers)
        with self._database.write() as connection:
            for decision_id, answer, raised in given:
                changed = connection.execute(
                    "UPDATE decisions SET answer = ?, answered_at = ?, raised = ?"
                    " WHERE id = ? AND answer IS NULL",
                    (
                        self._database.without_keys(answer),
                        answered_at,
                        json.dumps(asdict(raised)),
                        decision_id,
                    ),
                ).rowcount
                if not changed:
                    old = self._one(decision_id)
                    raise AnswerError(
                        f"{decision_id} was answered on {old.answered_at}: {old.answer!r}; "
                        "the first answer stands"
                    )
        return tuple(self._one(decision_id) for decision_id, _, _ in given)

    def decisions(self, *, task: str | None = None) -> tuple[Decision, ...]:
        """Return the decisions of all runs in the order in which they were raised."""
        where, args = ("WHERE task = ?", (task,)) if task is not None else ("", ())
        rows = self._database.rows(f"SELECT * FROM decisions {where} ORDER BY seq", args)  # noqa: S608 - no user text in it
        return tuple(_decision(row) for row in rows)

    def _one(self, decision_id: str) -> Decision:
        rows = self._database.rows("SELECT * FROM decisions WHERE id = ?", (decision_id,))
        if not rows:
            raise AnswerError(f"there is no decision {decision_id}; `loop answer` lists them")
        return _decision(rows[0])


def _decision(row: sqlite3.Row) -> Decision:
    return Decision(
        id=row["id"],
        task=row["task"],
        run_id=row["run_id"],
        kind=DecisionKind(row["kind"]),
        question=row["question"],
        best_guess=row["best_guess"],
        options=tuple(json.loads(row["options"])),
        reason=row["reason"],
        answer=row["answer"],
        answered_at=row["answered_at"],
        raised=Limits(**json.loads(row["raised"])),
        call_key=row["call_key"],
    )
