"""Doubles for a step inside the worker's process: a scripted model and a scripted door."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopctl.calls import Ruling, ToolCall, ToolResult, ToolSpec, Waiting
from loopctl.domain import Usage
from loopctl.moneyports import Claim, Refused, Reserved
from loopctl.worker.model.reply import (
    AskedCall,
    Message,
    NoMoney,
    Overflow,
    Reply,
    Unavailable,
)

Came = Reply | Overflow | NoMoney | Unavailable


def calling(
    *calls: tuple[str, Mapping[str, Any]], text: str = "", usage: Usage | None = None
) -> Reply:
    """Return a reply that asks for ``calls``, each a tool and its arguments."""
    asked = tuple(
        AskedCall(f"id{index}", name, json.dumps(arguments))
        for index, (name, arguments) in enumerate(calls)
    )
    return Reply(text, asked, usage or Usage(10, 5, 0.001), "scripted", "tool_calls")


@dataclass(frozen=True)
class Asked:
    """One request to the scripted model."""

    tier: str
    messages: tuple[Message, ...]
    specs: tuple[ToolSpec, ...]
    purpose: str
    must_call: bool

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(spec.name for spec in self.specs)

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "".join(json.dumps(message, ensure_ascii=False) for message in self.messages)


@dataclass
class StagedModel:
    """The port ``Model``: answers as told, in order; asked more often, it is a test's mistake."""

    script: Sequence[Came]
    asked: list[Asked] = field(default_factory=list)

    def complete(
        self,
        tier: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        purpose: str,
        must_call: bool = False,
    ) -> Came:
        """Return what the script says next."""
        # Copied, so that what a step changes later does not change what was asked.
        kept = tuple(json.loads(json.dumps(message)) for message in messages)
        self.asked.append(Asked(tier, kept, tuple(tools), purpose, must_call))
        return self.script[len(self.asked) - 1]


Tool = Callable[[ToolCall, str | None], ToolResult | Waiting]


@dataclass
class ScriptedDoor:
    """The port ``Door``: rules and calls as told, and writes down what was asked of it.

    Attributes:
        tools: By name; another tool answers with its own name and arguments.
        rulings: By the tool's name; what is not named is allowed.
        trace: ``keep N``, ``rule TOOL ORDINAL`` and ``call TOOL ORDINAL``, in order.
        kept: Replies by number.
    """

    tools: Mapping[str, Tool] = field(default_factory=dict)
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    kept: dict[int, str] = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    approvals: list[str | None] = field(default_factory=list)

    def reserve(self, claim: Claim) -> Reserved | Refused:
        """Put everything aside."""
        del claim
        return Reserved(1)

    def settle(self, reservation: int, usage: Usage) -> None:
        """Forget it."""

    def rule(self, call: ToolCall) -> Ruling:
        """Return what was told."""
        self.trace.append(f"rule {call.tool} {call.ordinal}")
        return self.rulings.get(call.tool, Ruling())

    def call(self, call: ToolCall, approval: str | None = None) -> ToolResult | Waiting:
        """Return what the tool was told to."""
        self.trace.append(f"call {call.tool} {call.ordinal}")
        self.calls.append(call)
        self.approvals.append(approval)
        tool = self.tools.get(call.tool)
        if tool is None:
            return ToolResult(f"{call.tool} {call.arguments_json}")
        return tool(call, approval)

    def keep_reply(self, number: int, reply: str) -> str:
        """Keep it; another reply under the same number is an error."""
        if self.kept.setdefault(number, reply) != reply:
            raise ValueError(f"reply {number} was kept before, and was another one")
        self.trace.append(f"keep {number}")
        return reply
