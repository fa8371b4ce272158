"""A desk over real tools, a real ledger and a policy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import (
    Action,
    Annotations,
    ApprovalRequired,
    Effect,
    Outcome,
    OutcomeUnknown,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from loopctl.domain import DecisionDraft, DecisionKind, Limits, RunStatus, Scope, Sha, Task, TaskId
from loopctl.engine.suspension import APPROVAL_LIFETIME
from loopctl.errors import LedgerConflictError
from loopctl.records import RunRecord
from loopctl.sandbox.desk import ToolDesk, ToolDesks
from loopctl.sandbox.mcp.servers import Offered
from loopctl.sandbox.policy import ApprovalPolicy, ServerTool
from loopctl.sandbox.tools.catalogue import WORK_TOOLS
from loopctl.settings import PolicySettings
from loopctl.store.calls import SqliteCallDecisions
from loopctl.store.database import open_database
from loopctl.store.decisions import SqliteDecisions
from loopctl.store.ledger import SqliteLedger
from loopctl.store.owners import Owners
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.testing import MemoryEventLog, StillClock
from loopctl.toolports import Desk, Desks

TASK = Task(TaskId("T1"), "title")


@dataclass
class Mailbox:
    """A tool of a server: what it has sent cannot be taken back."""

    effect: Effect = Effect.OUTSIDE
    sent: list[str] = field(default_factory=list)
    is_lost: bool = False

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        del idempotency_key
        self.sent.append(arguments["to"])
        return Outcome.UNKNOWN if self.is_lost else ToolResult(f"sent to {arguments['to']}")

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        del arguments, idempotency_key
        return Outcome.UNKNOWN


SPEC = ToolSpec("mcp__mail__send", "Send a mail.", {"type": "object"})


@dataclass
class Office:
    """What all desks of a run share."""

    bench: Any
    calls: SqliteCallDecisions
    decisions: SqliteDecisions
    session: str
    make: Callable[..., Desks]
    log: MemoryEventLog
    mail: Mailbox

    def desk(self, policy: ApprovalPolicy | None = None, task: Task = TASK) -> Desk:
        desks = self.make(policy or policy_of())
        return desks.open(self.session, task, "main", self.bench.sandbox)

    def call(self, tool: str, ordinal: int = 0, **arguments: Any) -> ToolCall:
        return ToolCall(self.session, 1, ordinal, tool, arguments)

    def approve(self, call: ToolCall) -> str:
        draft = DecisionDraft(DecisionKind.APPROVAL, "?", call_key=call.key)
        decision = self.decisions.raise_decision("r1", "T1", draft)
        return self.calls.grant(decision.id, call, APPROVAL_LIFETIME)


def policy_of(settings: PolicySettings | None = None, **claims: bool) -> ApprovalPolicy:
    settings = settings or PolicySettings()
    known = ServerTool("mail", "send", Annotations(**claims))
    return ApprovalPolicy(
        settings.approve, settings.deny, work=WORK_TOOLS, servers={SPEC.name: known}
    )


@pytest.fixture
def office(bench: Any, tmp_path: Path) -> Iterator[Office]:
    database = open_database(tmp_path / "loop.db")
    owners, clock, log = Owners(tmp_path / "owners"), StillClock(), MemoryEventLog()
    record = RunRecord(
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
    SqliteRuns(database).create_run(record)
    session = SqliteSessions(database).open_session("r1", TASK.id, "main", Sha("c1"))
    mail = Mailbox()

    def make(policy: ApprovalPolicy) -> Desks:
        return ToolDesks(
            SqliteLedger(database, clock, owners),
            clock=clock,
            emit=log.emit,
            policy_of=lambda _tools, _sandbox: policy,
            wall_s=3600,
            servers=lambda _sandbox: {SPEC.name: Offered(SPEC, mail, Annotations())},
        )

    decisions = SqliteDecisions(database)
    yield Office(
        bench, SqliteCallDecisions(database, clock), decisions, session.id, make, log, mail
    )
    owners.close()
    database.close()


def test_desk_offers_work_tools_then_those_of_servers_always_in_one_order(office: Office) -> None:
    specs = office.desk().specs
    assert tuple(spec.name for spec in specs) == (*WORK_TOOLS, SPEC.name)
    assert specs == office.desk().specs


def test_work_is_done_without_the_ledger_and_again_when_a_step_is_taken_again(
    office: Office,
) -> None:
    desk = office.desk()
    call = office.call("bash", command="echo x >> log.txt; cat log.txt")
    assert desk.rule(call).action is Action.ALLOW
    assert desk.call(call) == ToolResult("exit code 0\nx\n")
    assert desk.call(call) == ToolResult("exit code 0\nx\nx\n")
    assert not office.log.events


def test_destructive_tool_of_a_server_waits_for_a_person_and_then_happens_once(
    office: Office,
) -> None:
    desk, call = office.desk(), office.call(SPEC.name, to="you")
    why = "[policy] approve has mcp:*:destructive"
    assert (desk.rule(call).action, desk.rule(call).reason) == (Action.APPROVE, why)
    assert desk.call(call) == ApprovalRequired(call, why)
    assert office.mail.sent == []
    token = office.approve(call)
    assert desk.call(call, token) == ToolResult("sent to you")
    assert desk.call(call, token) == ToolResult("sent to you", replayed=True)
    assert office.mail.sent == ["you"]
    assert [event.type for event in office.log.events] == ["call_finished", "call_replayed"]
    told = office.log.events[0]
    assert (told.task, getattr(told, "candidate", "")) == ("T1", "main")


def test_tool_of_a_server_that_no_pattern_names_happens_once_without_asking(
    office: Office,
) -> None:
    desk, call = office.desk(policy_of(destructive=False)), office.call(SPEC.name, to="you")
    assert desk.call(call) == ToolResult("sent to you")
    assert desk.call(call) == ToolResult("sent to you", replayed=True)
    assert office.mail.sent == ["you"]


def test_call_that_was_lost_sight_of_is_never_made_again(office: Office) -> None:
    office.mail.is_lost = True
    desk, call = office.desk(policy_of(read_only=True)), office.call(SPEC.name, to="you")
    for _ in range(3):
        assert isinstance(desk.call(call), OutcomeUnknown)
    assert office.mail.sent == ["you"]


def test_what_is_denied_is_an_error_of_the_call_and_is_not_done(office: Office) -> None:
    settings = PolicySettings(deny=("mcp:mail:*", "bash:touch"))
    desk = office.desk(policy_of(settings, read_only=True))
    for call in (office.call(SPEC.name, to="you"), office.call("bash", command="touch made")):
        assert desk.rule(call).action is Action.DENY
        result = desk.call(call)
        assert isinstance(result, ToolResult)
        assert result.is_error
        assert "was denied: [policy] deny has" in result.content
    assert office.mail.sent == []
    assert not (office.bench.root / "made").exists()


def test_command_under_a_pattern_waits_for_a_person(office: Office) -> None:
    desk = office.desk(policy_of(PolicySettings(approve=("bash:touch",))))
    call = office.call("bash", command="touch made")
    assert isinstance(desk.call(call), ApprovalRequired)
    assert not (office.bench.root / "made").exists()
    assert desk.call(call, office.approve(call)) == ToolResult("exit code 0, no output")
    assert (office.bench.root / "made").exists()


def test_call_that_cannot_be_made_is_nobodys_to_approve(office: Office) -> None:
    desk = office.desk()
    for call in (office.call("mcp__mail__sand"), office.call(SPEC.name, to=float("nan"))):
        assert desk.rule(call).action is Action.DENY
        result = desk.call(call)
        assert isinstance(result, ToolResult)
        assert result.is_error


def test_call_of_another_session_is_refused(office: Office) -> None:
    with pytest.raises(LedgerConflictError):
        office.desk().call(ToolCall("other", 1, 0, "bash", {"command": "true"}))


@pytest.mark.parametrize(("wall_s", "said"), [(90.0, "90 s"), (None, "600 s"), (0.0, "1 s")])
def test_command_has_no_more_time_than_its_task(
    office: Office, wall_s: float | None, said: str
) -> None:
    task = Task(TaskId("T1"), "title", budget=Limits(wall_s=wall_s))
    assert f", {said}econds" in office.desk(task=task).specs[0].description


def test_desks_fit_their_ports(office: Office) -> None:
    assert isinstance(office.desk(), ToolDesk)
