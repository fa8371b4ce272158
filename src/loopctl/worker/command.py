"""The command worker: runs a task's command in the sandbox, and reads its messages.

Exit 0 closes the todo, any other exit is an observation. A message in the outbox is the only
way to defer: prose never is.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from loopctl.domain import ExecResult
from loopctl.errors import CancelledError
from loopctl.ports import Sandbox
from loopctl.steps import (
    Deferred,
    ForkRaised,
    OutputTail,
    PremiseInvalid,
    StepEvent,
    StepRequest,
    TodoDone,
    WorkerProgress,
)

_NEVER_RAN: Final = frozenset({126, 127})
_NO_LIMIT_S: Final = 24 * 3600.0
_TAIL_BYTES: Final = 4096


class CommandWorker:
    """The port ``Worker`` for ``worker = "command"``; needs no model."""

    makes_plans = False

    def execute_step(self, request: StepRequest, sandbox: Sandbox) -> Iterator[StepEvent]:
        """Yield what the command said, its messages, and its progress last.

        Raises:
            SandboxError: The sandbox is gone.
            CancelledError: The run was asked to stop.
        """
        command = _command(request)
        exchange = sandbox.exchange()
        exchange.offer(request.observation)
        env = {**_variables(request), **exchange.env}
        result = sandbox.run(command, env=env, timeout_s=_seconds_left(request))
        yield OutputTail(
            exit=result.returncode,
            text=_text(command, result),
            is_environment=_is_environment(result),
        )
        closes = result.returncode == 0
        for message in exchange.messages():
            # The command's own exit decides; `loop todo-done` only adds the summary.
            if isinstance(message, TodoDone) and not closes:
                continue
            closes = closes and not isinstance(
                message, TodoDone | Deferred | ForkRaised | PremiseInvalid
            )
            yield message
        if closes:
            yield TodoDone()
        yield WorkerProgress(
            made_tool_calls=True,
            tool_calls_errored=result.returncode != 0,
            response_delta_hash=_digest(result),
            tool_calls_hash="",
        )


def _command(request: StepRequest) -> str:
    if request.option is not None and request.option.command is not None:
        return request.option.command
    if request.task.command is None:
        # The manifest reader refuses such a task; here it is the engine's fault.
        raise CancelledError(f"task {request.task.id} has no command")
    return request.task.command


def _variables(request: StepRequest) -> Mapping[str, str]:
    variables = {
        "LOOP_TASK": request.task.id,
        "LOOP_RUN": request.run_id,
        "LOOP_STEP_GOAL": request.step_goal,
    }
    if option := _option(request):
        variables["LOOP_OPTION"] = option
    if request.answer is not None:
        variables["LOOP_ANSWER"] = request.answer
    return variables


def _option(request: StepRequest) -> str:
    """Return the option that the command is to take: its candidate's, else the newest settled."""
    if request.option is not None:
        return request.option.name
    return request.settled[-1].option if request.settled else ""


def _seconds_left(request: StepRequest) -> float:
    budget = request.budget
    if budget.wall_max_ms is None:
        return _NO_LIMIT_S
    return max(0.1, (budget.wall_max_ms - budget.wall_ms) / 1000)


def _is_environment(result: ExecResult) -> bool:
    was_stopped = result.timed_out or bool(result.excess)
    return result.returncode in _NEVER_RAN or (result.returncode < 0 and not was_stopped)


def _text(command: str, result: ExecResult) -> str:
    first, *more = command.strip().splitlines() or [""]
    command = f"{first} …" if more else first
    said = result.stdout[-_TAIL_BYTES:].decode("utf-8", "replace").rstrip()
    if result.timed_out:
        end = f"was ended after {result.duration_ms / 1000:.0f} s"
    elif result.excess:
        end = f"was ended, since {result.excess}"
    elif result.returncode < 0:
        end = f"was ended by signal {-result.returncode}"
    else:
        end = f"ended with exit code {result.returncode}"
    return f"`{command}` {end}" + (f"; its output ends:\n{said}" if said else " and no output")


def _digest(result: ExecResult) -> str:
    return hashlib.sha256(b"%d:" % result.returncode + result.stdout).hexdigest()
