"""Runs the calls of one step in processes that die; started by ``test_kill.py``.

It loads everything once and forks for each case, so that a case costs milliseconds. A case comes
as a line ``FOLDER SPEC``: do the calls in FOLDER, dying where SPEC (``-``: nowhere) says. The
answer is one line of JSON: the exit status, and for each call what it came to.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopctl import failpoints
from loopctl.calls import Effect, Outcome, OutcomeUnknown, ToolCall, ToolResult
from loopctl.clock import SystemClock
from loopctl.domain import DecisionDraft, DecisionKind, RunStatus, Scope, Sha, TaskId
from loopctl.errors import CallInFlightError
from loopctl.records import RunRecord
from loopctl.sandbox.proxy import ToolProxy
from loopctl.store.stores import Stores
from loopctl.testing import MemoryEventLog

CALLS = 14
PROBED = 5


class Append:
    """A tool whose effect is a line in a file: its key."""

    def __init__(self, sink: Path, *, effect: Effect = Effect.OUTSIDE, probeable: bool) -> None:
        self.sink = sink
        self.effect = effect
        self.probeable = probeable

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        file = os.open(self.sink, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{idempotency_key}\n".encode())
        os.close(file)
        return ToolResult(f"did {arguments['n']}")

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        if not self.probeable:
            return Outcome.UNKNOWN
        is_there = idempotency_key in self.sink.read_text() if self.sink.exists() else False
        return ToolResult(f"did {arguments['n']}") if is_there else Outcome.ABSENT


def step(folder: Path) -> list[str]:
    """Do all calls of the step; what waits for a person is answered with the truth at once."""
    sink = folder / "sink"
    tools = {
        "send": Append(sink, probeable=False),
        "put": Append(sink, probeable=True),
        "read": Append(folder / "reads", effect=Effect.NONE, probeable=False),
    }
    came: list[str] = []
    with Stores(folder) as stores:
        if stores.runs.run("r1") is None:
            stores.runs.create_run(record())
        session = stores.sessions.open_session("r1", TaskId("T1"), "main", Sha("c1"))
        proxy = ToolProxy(
            session, tools, stores.ledger, clock=SystemClock(), emit=MemoryEventLog().emit
        )
        for n in range(CALLS):
            tool = "put" if n == PROBED else "send"
            call = ToolCall(session.id, 1, n, tool, {"n": n})
            came.append(one(stores, proxy, call, sink))
        proxy.call(ToolCall(session.id, 1, CALLS, "read", {"n": CALLS}))
    return came


def one(stores: Stores, proxy: ToolProxy, call: ToolCall, sink: Path) -> str:
    """Make one call until it has a result; say how it came to it."""
    asked = ""
    while True:
        try:
            found = proxy.call(call)
        except CallInFlightError:
            continue
        if isinstance(found, ToolResult):
            assert found.content == f"did {call.arguments['n']}"
            return f"{asked}{'replayed' if found.replayed else 'done'}"
        assert isinstance(found, OutcomeUnknown)
        asked = "asked "
        draft = DecisionDraft(DecisionKind.OUTCOME, f"{call.key} {found.since}", call_key=call.key)
        decision = stores.decisions.raise_decision("r1", "T1", draft)
        is_there = sink.exists() and call.key in sink.read_text()
        result = ToolResult(f"did {call.arguments['n']}") if is_there else None
        stores.call_decisions.settle(decision.id, call.key, result)


def record() -> RunRecord:
    return RunRecord(
        id="r1",
        status=RunStatus.RUNNING,
        goal="g",
        base=Sha("c1"),
        branch="loop/integration",
        started="2026-01-02T03:04:05.000Z",
        scope=Scope(),
        settings_json="{}",
        settings_hash="h",
    )


def case(folder: Path, spec: str) -> None:
    """Do the calls in this process and leave what they came to in a file."""
    if spec != "-":
        failpoints.arm({failpoints.VARIABLE: spec})
    (folder / f"came-{os.getpid()}").write_text(json.dumps(step(folder)))


def main() -> None:
    for line in sys.stdin:
        folders = [part.rpartition(" ") for part in line.strip().split("\t")]
        children = []
        for folder, _, spec in folders:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    case(Path(folder), spec)
                    code = 0
                finally:
                    os._exit(code)
            children.append((child, Path(folder)))
        answers = []
        for child, folder in children:
            _, status = os.waitpid(child, 0)
            came = folder / f"came-{child}"
            words = json.loads(came.read_text()) if came.exists() else []
            answers.append({"code": os.waitstatus_to_exitcode(status), "came": words})
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
