"""Opens desks: the tools of one session, behind the tool proxy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from loopctl.calls import Action, Ruling, ToolCall, ToolResult, ToolSpec, Waiting
from loopctl.clock import Clock
from loopctl.domain import Task
from loopctl.ports import Emit, Sandbox
from loopctl.sandbox.hooks.asking import Hooks
from loopctl.sandbox.mcp.servers import Offered
from loopctl.sandbox.policy import ServerTool
from loopctl.sandbox.proxy import ToolProxy
from loopctl.sandbox.tools.catalogue import work_tools
from loopctl.sandbox.tools.shell import TIMEOUT_S
from loopctl.toolports import Ledger, Policy, Tool

Serve = Callable[[Sandbox], Mapping[str, Offered]]
"""Returns the tools of servers for a sandbox, by the name that a model calls them by."""

PolicyOf = Callable[[Mapping[str, ServerTool], Sandbox], Policy]
"""Returns the policy where these tools of servers are there, for calls in a sandbox."""

_SHORTEST_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Session:
    id: str
    task: str
    candidate: str


class ToolDesks:
    """The port ``Desks``.

    Args:
        ledger: Of the run.
        clock: The run's.
        emit: Takes the events of calls.
        policy_of: Makes what is asked about every call of a session.
        wall_s: What a task may take that says nothing of its own; no command takes longer.
        servers: Asked for the tools of servers; none of them has a work tool's name.
        hooks: The user's programs that are asked about calls.
        redact: Takes keys out of every result, before a worker reads it.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        clock: Clock,
        emit: Emit,
        policy_of: PolicyOf,
        wall_s: float,
        servers: Serve | None = None,
        hooks: Hooks | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._emit = emit
        self._policy_of = policy_of
        self._wall_s = wall_s
        self._servers = servers or (lambda _sandbox: {})
        self._hooks = hooks
        self._redact = redact or (lambda text: text)

    def open(self, session_id: str, task: Task, candidate: str, sandbox: Sandbox) -> "ToolDesk":
        """Return the desk of a session whose worker works in ``sandbox``.

        Raises:
            EnvironmentFaultError: A server of tools cannot be had; says which, why and what to do.
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        own = task.budget.wall_s
        wall_s = self._wall_s if own is None else own
        timeout_s = max(_SHORTEST_S, min(TIMEOUT_S, wall_s))
        work = {tool.spec.name: tool for tool in work_tools(sandbox, timeout_s=timeout_s)}
        offered = dict(sorted(self._servers(sandbox).items()))
        tools: dict[str, Tool] = {name: one.tool for name, one in offered.items()}
        specs = [tool.spec for tool in work.values()]
        specs += [one.spec for name, one in offered.items() if name not in work]
        policy = self._policy_of(
            {name: _known(name, one) for name, one in offered.items()}, sandbox
        )
        proxy = ToolProxy(
            _Session(session_id, task.id, candidate),
            {**tools, **work},
            self._ledger,
            clock=self._clock,
            emit=self._emit,
            policy=policy,
            hooks=self._hooks.at(sandbox.workdir) if self._hooks is not None else None,
        )
        return ToolDesk(tuple(specs), proxy, policy, self._redact)


def _known(name: str, offered: Offered) -> ServerTool:
    """Return what the policy is told of a tool that is called ``mcp__SERVER__TOOL``."""
    _, server, tool = name.split("__", 2)
    return ServerTool(server, tool, offered.annotations, offered.question)


class ToolDesk:
    """The port ``Desk``: what one session's worker may call.

    Args:
        specs: Of all the tools that ``proxy`` has.
        proxy: Makes the calls.
        policy: The one that ``proxy`` asks.
        redact: Takes keys out of results.
    """

    def __init__(
        self,
        specs: tuple[ToolSpec, ...],
        proxy: ToolProxy,
        policy: Policy,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._redact = redact
        self._specs = specs
        self._names = frozenset(spec.name for spec in specs)
        self._proxy = proxy
        self._policy = policy

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The work tools, then those of servers by name."""
        return self._specs

    def rule(self, call: ToolCall) -> Ruling:
        """Return what the policy says of a call; does nothing.

        A call that cannot be made at all is denied: nobody is asked about it.
        """
        if call.tool not in self._names:
            return Ruling(Action.DENY, f"there is no tool {call.tool}")
        try:
            _ = call.arguments_hash
        except ValueError as exc:
            return Ruling(Action.DENY, f"the arguments of {call.tool} are {exc}")
        return self._policy(call)

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what the call came to: made now, or recorded when it was made before.

        Raises:
            LedgerConflictError: The call is another session's, or its ordinal was used for
                another call.
            CallInFlightError: Another process is at it.
            SandboxError: The sandbox is gone.
            CancelledError: The run was asked to stop.
        """
        came = self._proxy.call(call, approval)
        if isinstance(came, ToolResult):
            return replace(came, content=self._redact(came.content))
        return came
