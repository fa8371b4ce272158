"""The real command line, with one more worker: it calls tools whose effects are lines in a file.

``world.py ARGUMENTS`` is ``loop ARGUMENTS``. ``world.py --zygote`` loads everything once and then
starts a ``loop`` of its own for every line of JSON on its stdin, which takes a tenth of the time.

A task whose command begins with ``calls`` names the tools it calls, one after the other: ``send``
cannot be looked up afterwards, ``put`` can, ``read`` has no effect, and ``ask`` is a ``send`` that
a person has to approve.
"""

import contextlib
import ctypes
import importlib
import itertools
import json
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import loopctl
from loopctl import assembly
from loopctl.__main__ import main
from loopctl.calls import Action, Effect, Outcome, Ruling, ToolCall, ToolResult
from loopctl.clock import SystemClock
from loopctl.engine.questions import HAPPENED
from loopctl.ports import Sandbox
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
from loopctl.worker.command import CommandWorker

NOT_OURS: Final = ("loopctl.demo.project", "loopctl.judges.plugins")
"""What no command imports."""

MARK: Final = "/nonexistent/thread"
"""Below it every thread fails to make a folder of its own number: how a trace tells them apart."""

PR_SET_PTRACER: Final = 0x59616D61


class Append:
    """A tool whose effect is a line in a file: its key, its name and its number."""

    def __init__(self, sink: Path, name: str, effect: Effect = Effect.OUTSIDE) -> None:
        self._sink = sink
        self._name = name
        self.effect = effect

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        if self.effect is Effect.OUTSIDE:
            file = os.open(self._sink, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{idempotency_key} {self._name} {arguments['n']}\n".encode())
            os.close(file)
        return self._result(arguments)

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        if self._name != "put":
            return Outcome.UNKNOWN
        is_there = self._sink.exists() and idempotency_key in self._sink.read_text()
        return self._result(arguments) if is_there else Outcome.ABSENT

    @staticmethod
    def _result(arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult(f"did {arguments['n']}")


def policy(call: ToolCall) -> Ruling:
    """Let a person decide about what the worker was told to ask for."""
    is_asked = bool(call.arguments.get("ask"))
    return Ruling(Action.APPROVE, "it cannot be undone") if is_asked else Ruling()


class Caller:
    """The command worker, and beside it one that makes a task's calls through the tool proxy."""

    makes_plans = False

    def __init__(self) -> None:
        self._commands = CommandWorker()

    def execute_step(self, request: StepRequest, sandbox: Sandbox) -> Iterator[StepEvent]:
        words = (request.task.command or "").split()
        if words[:1] != ["calls"]:
            yield from self._commands.execute_step(request, sandbox)
            return
        local = sandbox.workdir.parents[1]
        with Stores(local) as stores:
            proxy = self._proxy(request, sandbox, stores, local.parent.parent / "effects")
            yield from self._calls(words[1:], request, proxy, sandbox.workdir / "calls.txt")
        yield WorkerProgress(
            made_tool_calls=True, tool_calls_errored=False, response_delta_hash=str(words)
        )

    @staticmethod
    def _proxy(request: StepRequest, sandbox: Sandbox, stores: Stores, sink: Path) -> ToolProxy:
        session = SessionRecord(
            request.session_id, request.run_id, request.task.id, "main", sandbox.base, 0, None
        )
        tools = {
            "send": Append(sink, "send"),
            "put": Append(sink, "put"),
            "read": Append(sink, "read", Effect.NONE),
        }
        emit = MemoryEventLog().emit
        return ToolProxy(
            session, tools, stores.ledger, clock=SystemClock(), emit=emit, policy=policy
        )

    def _calls(
        self, words: list[str], request: StepRequest, proxy: ToolProxy, kept: Path
    ) -> Iterator[StepEvent]:
        """Make the calls that have not been made yet; what they came to goes into a file."""
        resume = request.resume
        said = [done.content for done in resume.done] if resume else []
        for ordinal, word in list(enumerate(words))[len(said) :]:
            call = ToolCall(
                request.session_id,
                request.loop_iteration,
                ordinal,
                "send" if word == "ask" else word,
                {"n": ordinal, "ask": word == "ask"},
            )
            is_waiting = resume is not None and resume.call_id == ordinal
            came = proxy.call(call, resume.approval if resume and is_waiting else None)
            if not isinstance(came, ToolResult):
                yield interrupt_for(came, b"here")
                return
            # What a person says of a call that may have happened begins with the words asked for.
            said.append(came.content.removeprefix(f"{HAPPENED}: "))
            kept.write_text("\n".join(said) + "\n")
            yield ToolCallFinished(ordinal, call.tool, said[-1], came.is_error)
        yield TodoDone()


def number_threads(burn: str) -> None:
    """Number the threads in the order of their starts, and let each say its number.

    Args:
        burn: ``THREAD:CALL:COUNT``: that thread begins with so many failing system calls of that
            name. A tracer counts the calls of each thread by itself, and so finds this one's.
    """
    numbers = itertools.count(1)
    start, inner = threading.Thread.start, threading.Thread.run

    def numbered(thread: threading.Thread) -> None:
        vars(thread)["chaos_number"] = next(numbers)
        start(thread)

    def marked(thread: threading.Thread) -> None:
        begin(vars(thread)["chaos_number"])
        inner(thread)

    def begin(number: int) -> None:
        with contextlib.suppress(OSError):
            os.mkdir(f"{MARK}/{number}")  # noqa: PTH102 - exactly this system call
        wanted, _, rest = burn.partition(":")
        if wanted == str(number):
            name, _, count = rest.partition(":")
            burn_calls(BURNT[name], int(count))

    vars(threading)["Thread"].start = numbered
    vars(threading)["Thread"].run = marked
    begin(0)


def burn_calls(call: Callable[[int], object], count: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for _ in range(count):
        with contextlib.suppress(OSError):
            call(nothing)
    os.close(nothing)


NOWHERE: Final = "/nonexistent/a"
BURNT: Final[Mapping[str, Callable[[int], object]]] = {
    "write": lambda file: os.write(file, b"x"),
    "pwrite64": lambda file: os.pwrite(file, b"x", 0),
    "rename": lambda _: os.rename(NOWHERE, NOWHERE),  # noqa: PTH104 - exactly this call
    "unlink": lambda _: os.unlink(NOWHERE),  # noqa: PTH108
    "unlinkat": lambda file: os.unlink("a", dir_fd=file),
    "rmdir": lambda _: os.rmdir(NOWHERE),  # noqa: PTH106
    "mkdir": lambda _: os.mkdir(f"{NOWHERE}/a"),  # noqa: PTH102
    "link": lambda _: os.link(NOWHERE, NOWHERE),
    "symlink": lambda _: os.symlink("a", f"{NOWHERE}/a"),  # noqa: PTH211
    "openat": lambda _: os.close(os.open(NOWHERE, os.O_RDONLY)),
    "ftruncate": lambda file: os.ftruncate(file, 0),
    "truncate": lambda _: os.truncate(NOWHERE, 0),
    "fsync": os.fsync,
    "fdatasync": os.fdatasync,
    "sendfile": lambda file: os.sendfile(file, file, 0, 1),
}
"""How each system call that a kill comes at is made without changing anything."""


def loop(words: list[str]) -> None:
    """Be ``loop`` with these arguments, to the end of the process."""
    sys.argv = ["loop", *words]
    main()


def zygote() -> None:
    """Start a ``loop`` for each line; say its pid, then its exit code.

    A line is ``{"words": …, "env": …, "said": FILE, "go": FILE or ""}``; stderr goes to ``said``.
    Where ``go`` is a pipe the process waits until somebody has opened and closed it: by then it
    is traced.
    """
    for name in pkgutil.walk_packages(loopctl.__path__, "loopctl."):
        if not name.name.startswith(NOT_OURS):
            importlib.import_module(name.name)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            become(wanted)
            return
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def become(wanted: dict[str, Any]) -> None:
    """Turn a child of the zygote into what a new process would be, and run."""
    os.environ.update(wanted["env"])
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(wanted["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, file in enumerate((nothing, nothing, said)):
        os.dup2(file, number)
    os.close(nothing)
    os.close(said)
    if wanted["go"]:
        # Where only parents may trace their children, this one lets anybody.
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
        Path(wanted["go"]).read_bytes()
    if "CHAOS_BURN" in wanted["env"]:
        number_threads(wanted["env"]["CHAOS_BURN"])
    loop(wanted["words"])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    vars(assembly)["light_workers"] = lambda: {"command": Caller()}
    if sys.argv[1:] == ["--zygote"]:
        zygote()
    else:
        loop(sys.argv[1:])
