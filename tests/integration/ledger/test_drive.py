"""A whole run whose worker calls tools: what waits for a person, and what its answer does."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loopctl import assembly
from loopctl.bootstrap import Project, open_project
from loopctl.calls import Action, Outcome, Ruling, ToolCall, ToolResult
from loopctl.clock import SystemClock
from loopctl.domain import DecisionKind, RunOptions, RunStatus
from loopctl.engine.questions import AGAIN, HAPPENED
from loopctl.errors import AnswerError
from loopctl.given import Answer
from loopctl.records import SessionRecord
from loopctl.sandbox.proxy import ToolProxy
from loopctl.steps import (
    StepEvent,
    StepRequest,
    TodoDone,
    ToolCallFinished,
    WorkerProgress,
    interrupt_for,
)
from loopctl.store.stores import Stores
from loopctl.testing import MemoryEventLog

MANIFEST = """
[goal]
text = "the goal"
[[task]]
id = "T1"
title = "Send it"
worker = "command"
command = "true"
verify_cmd = "test -f result"
"""


class Caller:
    """A worker that makes three calls, goes on where it was interrupted, and ends its todo."""

    makes_plans = False

    def __init__(self, local: Path, tools: dict[str, Any], policy: Any) -> None:
        self.local = local
        self.tools = tools
        self.policy = policy
        self.requests: list[StepRequest] = []

    def execute_step(self, request: StepRequest, sandbox: Any) -> Iterator[StepEvent]:
        self.requests.append(request)
        session = SessionRecord(
            request.session_id, "r", request.task.id, "main", sandbox.base, 0, None
        )
        resume = request.resume
        said = [done.content for done in resume.done] if resume else []
        with Stores(self.local) as stores:
            proxy = ToolProxy(
                session,
                self.tools,
                stores.ledger,
                clock=SystemClock(),
                emit=MemoryEventLog().emit,
                policy=self.policy,
            )
            for ordinal in range(len(said), 3):
                call = ToolCall(
                    request.session_id, request.loop_iteration, ordinal, "send", {"n": ordinal}
                )
                is_waiting = resume is not None and resume.call_id == ordinal
                if is_waiting and resume is not None and not resume.is_allowed:
                    came: Any = ToolResult("refused", is_error=True)
                else:
                    came = proxy.call(call, resume.approval if is_waiting and resume else None)
                if not isinstance(came, ToolResult):
                    yield interrupt_for(came, b"here")
                    break
                said.append(came.content)
                (sandbox.workdir / f"call{ordinal}").write_text(came.content)
                yield ToolCallFinished(ordinal, "send", came.content, came.is_error)
            else:
                (sandbox.workdir / "result").write_text("\n".join(said))
                yield TodoDone()
        yield WorkerProgress(True, False, str(said))  # noqa: FBT003 - signals in their order


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    root = tmp_path / "checkout"
    (root / "tasks").mkdir(parents=True)
    (root / "tasks" / "ACTIVE.toml").write_text(MANIFEST)
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "begin")):
        subprocess.run(["git", *words], cwd=root, check=True, timeout=60)

    def make(sink: Any, policy: Any = lambda _call: Ruling()) -> tuple[Project, Caller]:
        worker = Caller(root / ".local", {"send": sink}, policy)
        monkeypatch.setattr(assembly, "light_workers", lambda: {"command": worker})
        return open_project(root), worker

    return make


def landed(project: Project) -> str:
    return subprocess.run(
        ["git", "show", "loop/integration:result"],
        cwd=project.checkout,
        check=True,
        capture_output=True,
        timeout=60,
    ).stdout.decode()


class Lossy:
    """Loses sight of the second call: once in doubt, it is in doubt until a person has looked."""

    def __init__(self, sink: Any, *, happens: bool) -> None:
        self.sink = sink
        self.happens = happens
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sink, name)

    def run(self, arguments: Any, key: str) -> Any:
        if arguments["n"] == 1 and not self.lost:
            self.lost = True
            if self.happens:
                self.sink.run(arguments, key)
            return Outcome.UNKNOWN
        return self.sink.run(arguments, key)


@pytest.mark.parametrize(
    ("happens", "answer", "second"),
    [
        (True, f"{HAPPENED}: ticket 7", "it happened: ticket 7"),
        (False, AGAIN, "did {'n': 1}"),
    ],
)
def test_unknown_outcome_waits_for_a_person_and_every_effect_happens_once(
    project: Any, sink: Any, *, happens: bool, answer: str, second: str
) -> None:
    tool = Lossy(sink(), happens=happens)
    one, worker = project(tool)
    ended = one.run(RunOptions(), ())
    assert (ended.status, ended.exit_code) == (RunStatus.NEEDS_HUMAN, 3)
    (decision,) = one.decisions()
    assert (decision.kind, decision.options) == (DecisionKind.OUTCOME, (HAPPENED, AGAIN))
    assert len(worker.requests) == 1

    # Unanswered, it stays so; a vague answer is none.
    before = list(tool.sink.keys)
    assert one.resume(None, ()).status is RunStatus.NEEDS_HUMAN
    assert (one.decisions(), tool.sink.keys) == ((decision,), before)
    with pytest.raises(AnswerError, match="it happened"):
        one.answer([Answer(decision.id, "probably")], ())

    done = one.answer([Answer(decision.id, answer)], ())
    assert done.status is RunStatus.COMPLETE
    assert landed(one) == f"did {{'n': 0}}\n{second}\ndid {{'n': 2}}"
    assert len(tool.sink.keys) == len(set(tool.sink.keys))
    keys = {ToolCall(worker.requests[0].session_id, 1, n, "send", {}).key for n in range(3)}
    assert set(tool.sink.keys) == keys


def asks_for_the_second(call: ToolCall) -> Ruling:
    return Ruling(Action.APPROVE if call.ordinal == 1 else Action.ALLOW, "it cannot be undone")


@pytest.mark.parametrize(
    ("answer", "second", "effects"), [("approve", "did {'n': 1}", 3), ("reject", "refused", 2)]
)
def test_approval_is_a_decision_and_only_the_call_that_waited_is_made_after_it(
    project: Any, sink: Any, answer: str, second: str, effects: int
) -> None:
    tool = sink()
    one, worker = project(tool, asks_for_the_second)
    assert one.run(RunOptions(), ()).status is RunStatus.NEEDS_HUMAN
    (decision,) = one.decisions()
    assert (decision.kind, decision.reason) == (DecisionKind.APPROVAL, "it cannot be undone")
    assert len(tool.keys) == 1
    (one.local / "owners" / "0123").touch()
    done = one.answer([Answer(decision.id, answer)], ())
    assert done.status is RunStatus.COMPLETE
    assert landed(one) == f"did {{'n': 0}}\n{second}\ndid {{'n': 2}}"
    assert (len(tool.keys), len(set(tool.keys))) == (effects, effects)
    assert [request.loop_iteration for request in worker.requests] == [1, 1]
    assert list((one.local / "owners").iterdir()) == []
