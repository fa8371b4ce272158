"""A worktree with the work tools in it, a checkout beside it, and a tool of a server."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from loopctl.calls import Annotations, Effect, Outcome, ToolCall, ToolResult, ToolSpec
from loopctl.domain import ExecResult, RunStatus, Scope, Sha, Task, TaskId
from loopctl.hooksettings import HookSettings
from loopctl.ports import Sandbox
from loopctl.records import RunRecord
from loopctl.sandbox import process
from loopctl.sandbox.desk import ToolDesks
from loopctl.sandbox.hooks.asking import Hooks
from loopctl.sandbox.mcp.servers import Offered
from loopctl.sandbox.policy import ApprovalPolicy
from loopctl.sandbox.tools.catalogue import WORK_TOOLS
from loopctl.store.database import open_database
from loopctl.store.ledger import SqliteLedger
from loopctl.store.owners import Owners
from loopctl.store.pins import SqlitePins
from loopctl.store.runs import SqliteRuns
from loopctl.store.sessions import SqliteSessions
from loopctl.testing import MemoryEventLog, StillClock
from loopctl.toolports import Desk

SEND = ToolSpec("mcp__mail__send", "Send a mail.", {"type": "object"})
TASK = Task(TaskId("T1"), "title")


@dataclass
class Box:
    """What of a sandbox the tools look at."""

    workdir: Path
    scratch: Path
    env: dict[str, str]
    name: str = "box"

    @property
    def inside(self) -> Path:
        return self.workdir

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        return process.run(
            argv, cwd=self.workdir, env={**self.env, **(env or {})}, timeout_s=timeout_s
        )


@dataclass
class Mailbox:
    """A tool of a server: what it has sent cannot be taken back."""

    effect: Effect = Effect.OUTSIDE
    sent: list[str] = field(default_factory=list)
    says: str = "sent"

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        del idempotency_key
        self.sent.append(str(arguments.get("to")))
        return ToolResult(self.says)

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        del arguments, idempotency_key
        return Outcome.UNKNOWN


@dataclass
class Ground:
    """The folders, the stores, and the desk over them."""

    checkout: Path
    worktree: Path
    env: dict[str, str]
    session: str
    pins: SqlitePins
    log: MemoryEventLog
    mail: Mailbox
    make: Callable[[Hooks | None, Offered], Desk]
    calls: int = 0

    def hooks(
        self, *commands: str, run_id: str = "r1", **named: Mapping[str, Any] | HookSettings
    ) -> Hooks:
        settings = {name: HookSettings.model_validate(one) for name, one in named.items()}
        return Hooks(
            commands,
            settings,
            run_id=run_id,
            checkout=self.checkout,
            env=self.env,
            pins=self.pins,
            emit=self.log.emit,
        )

    def desk(self, hooks: Hooks | None = None, spec: ToolSpec = SEND) -> Desk:
        return self.make(hooks, Offered(spec, self.mail, Annotations(destructive=False)))

    def call(self, tool: str, **arguments: Any) -> ToolCall:
        self.calls += 1
        return ToolCall(self.session, 1, self.calls, tool, arguments)

    def script(self, name: str, text: str) -> Path:
        """Put a program into the user's checkout."""
        path = self.checkout / name
        path.write_text(text)
        path.chmod(0o700)
        return path

    def effects(self) -> list[str]:
        """Return what is there that was not there at first."""
        found = [str(path.relative_to(self.worktree)) for path in self.worktree.rglob("*")]
        return sorted({*found, *self.mail.sent} - {"README.md"})


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    folders = {
        name: tmp_path / name for name in ("checkout", "worktree", "scratch", "home", "owners")
    }
    for folder in folders.values():
        folder.mkdir()
    (folders["worktree"] / "README.md").write_text("read me\n")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folders["home"]),
        "TMPDIR": str(tmp_path),
        "SOME_API_KEY": "sk-never-to-be-seen",
    }
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
    session = SqliteSessions(database).open_session("r1", TASK.id, "main", Sha("c1"))
    owners, clock, log = Owners(folders["owners"]), StillClock(), MemoryEventLog()
    box = cast("Sandbox", Box(folders["worktree"], folders["scratch"], env))

    def make(hooks: Hooks | None, offered: Offered) -> Desk:
        desks = ToolDesks(
            SqliteLedger(database, clock, owners),
            clock=clock,
            emit=log.emit,
            policy_of=lambda tools, _sandbox: ApprovalPolicy(work=WORK_TOOLS, servers=tools),
            wall_s=60,
            servers=lambda _sandbox: {offered.spec.name: offered},
            hooks=hooks,
        )
        return desks.open(session.id, TASK, "main", box)

    yield Ground(
        folders["checkout"],
        folders["worktree"],
        env,
        session.id,
        SqlitePins(database),
        log,
        Mailbox(),
        make,
    )
    owners.close()
    database.close()
