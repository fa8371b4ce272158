from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopctl.domain import (
    APPROVED,
    REJECTED,
    Decision,
    DecisionDraft,
    DecisionKind,
    Limits,
    PolicyClass,
    RunStatus,
    Scope,
    Sha,
    Task,
    TaskId,
)
from loopctl.engine import consent
from loopctl.engine.permission import Permission
from loopctl.errors import CancelledError
from loopctl.records import RunRecord
from loopctl.settings import PolicySettings
from loopctl.store.database import open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.runs import SqliteRuns
from loopctl.testing import MemoryEventLog, StillClock

TASK = Task(TaskId("T440"), "Send the mails", area=("mail", "import"))
OTHER = Task(TaskId("T441"), "Read the mails")


def decided(
    answer: str | None,
    *,
    run_id: str = "r1",
    kind: DecisionKind = DecisionKind.APPROVAL,
    call_key: str = "",
) -> Decision:
    return Decision("T440.1", "T440", run_id, kind, "?", answer=answer, call_key=call_key)


@pytest.mark.parametrize("pattern", ["step:T440", "step:*", "step:T4*", "area:mail", "area:*ort"])
def test_task_that_a_pattern_names_is_asked_about(pattern: str) -> None:
    draft = consent.needed(TASK, "r1", ("mcp:*:destructive", pattern), ())
    assert draft == DecisionDraft(
        DecisionKind.APPROVAL,
        "May T440 (Send the mails) be worked on in this run?",
        reason=f"[policy] approve has {pattern}",
    )


@pytest.mark.parametrize("pattern", ["step:T44", "area:mai", "mcp:*:*", "bash:*"])
def test_task_that_no_pattern_names_is_not(pattern: str) -> None:
    assert consent.needed(TASK, "r1", (pattern,), ()) is None


def test_nobody_is_asked_with_the_settings_as_they_come() -> None:
    assert consent.needed(TASK, "r1", PolicySettings().approve, ()) is None


@pytest.mark.parametrize(
    ("decisions", "is_given"),
    [
        ([], False),
        ([decided(None)], False),
        ([decided(APPROVED)], True),
        ([decided(REJECTED)], False),
        ([decided(APPROVED), decided(REJECTED)], False),
        ([decided(REJECTED), decided(APPROVED)], True),
        ([decided(APPROVED), decided(None)], True),
        ([decided(APPROVED, run_id="r0")], False),
        ([decided(APPROVED, call_key="k")], False),
        ([decided(APPROVED, kind=DecisionKind.SCOPE)], False),
        ([decided("approve of it later")], False),
        ([decided(APPROVED), decided("use OAuth", kind=DecisionKind.EXTERNAL)], True),
        ([decided(APPROVED), decided(REJECTED, call_key="k")], True),
    ],
)
def test_consent_is_the_newest_approval_of_the_task_in_this_run_alone(
    decisions: list[Decision],
    is_given: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert (consent.needed(TASK, "r1", ("step:*",), decisions) is None) is is_given


def test_consent_says_nothing_of_the_work_and_can_be_told_from_what_does() -> None:
    assert consent.is_consent(decided(APPROVED))
    assert not consent.is_consent(decided(APPROVED, call_key="k"))
    assert not consent.is_consent(decided("yes", kind=DecisionKind.SCOPE))


def test_dry_run_tells_which_tasks_need_an_approval() -> None:
    classes = [consent.policy_class(task, ("mcp:*:*", "area:mail")) for task in (TASK, OTHER)]
    assert classes == [PolicyClass.NEEDS_APPROVAL, PolicyClass.REVERSIBLE]


@dataclass
class Person:
    """The port ``Consent``: answers as it was told to."""

    says: str | BaseException | None
    asked: list[tuple[DecisionDraft, float]] = field(default_factory=list)

    def ask(self, draft: DecisionDraft, timeout_s: float) -> str | None:
        self.asked.append((draft, timeout_s))
        if isinstance(self.says, BaseException):
            raise self.says
        return self.says


@dataclass
class House:
    store: SqliteDecisions
    log: MemoryEventLog = field(default_factory=MemoryEventLog)

    def permission(self, person: Person | None = None, run_id: str = "r1") -> Permission:
        return Permission(
            run_id,
            ("step:T440",),
            60.0,
            decisions=self.store,
            clock=StillClock(),
            emit=self.log.emit,
            person=person,
        )


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    database = open_database(tmp_path / "loop.db")
    SqliteRuns(database).create_run(
        RunRecord(
            id="r1",
            status=RunStatus.RUNNING,
            goal="g",
            base=Sha("c1"),
            branch="b",
            started="2026-01-02T03:04:05.000Z",
            scope=Scope(),
            settings_json="{}",
            settings_hash="h",
        )
    )
    yield House(SqliteDecisions(database))
    database.close()


def needed(permission: Permission) -> DecisionDraft:
    draft = permission.needed(TASK)
    assert draft is not None
    return draft


def test_answer_of_somebody_who_is_there_is_recorded_told_and_lasts_for_the_run(
    house: House,
) -> None:
    person = Person(APPROVED)
    permission = house.permission(person)
    draft = needed(permission)
    decision = permission.ask(TASK, draft)
    assert decision is not None
    assert (decision.id, decision.answer) == ("T440.1", APPROVED)
    assert decision.answered_at == "2026-01-02T03:04:05.000Z"
    assert person.asked == [(draft, 60.0)]
    assert [event.type for event in house.log.events] == ["decision_raised", "decision_answered"]
    assert permission.needed(TASK) is None
    assert house.permission().needed(TASK) is None
    assert house.permission(run_id="r2").needed(TASK) == draft


def test_rejection_is_recorded_and_the_task_is_asked_about_anew(house: House) -> None:
    permission = house.permission(Person(REJECTED))
    decision = permission.ask(TASK, needed(permission))
    assert decision is not None
    assert not decision.is_going_on
    assert permission.needed(TASK) is not None


@pytest.mark.parametrize("person", [None, Person(None)])
def test_without_an_answer_nothing_is_recorded(house: House, person: Person | None) -> None:
    permission = house.permission(person)
    assert permission.ask(TASK, needed(permission)) is None
    assert house.store.decisions() == ()
    assert house.log.events == []


def test_answer_goes_to_the_question_that_stands_already(house: House) -> None:
    permission = house.permission(Person(APPROVED))
    draft = needed(permission)
    standing = house.store.raise_decision("r1", TASK.id, draft)
    decision = permission.ask(TASK, draft)
    assert decision is not None
    assert decision.id == standing.id


def test_answer_that_comes_later_counts_as_well(house: House) -> None:
    permission = house.permission()
    raised = house.store.raise_decision("r1", TASK.id, needed(permission))
    assert permission.needed(TASK) is not None
    house.store.answer_decision(raised.id, APPROVED, "now", Limits())
    assert permission.needed(TASK) is None


def test_run_that_is_asked_to_stop_records_nothing(house: House) -> None:
    permission = house.permission(Person(CancelledError("stop")))
    with pytest.raises(CancelledError):
        permission.ask(TASK, needed(permission))
    assert house.store.decisions() == ()


def test_other_tasks_are_never_asked_about(house: House) -> None:
    assert house.permission().needed(OTHER) is None
