"""A server's tool as one of ours: the port ``Tool``."""

from collections.abc import Mapping
from typing import Any, Final

from loopctl.calls import Effect, Outcome, ToolResult, canonical
from loopctl.sandbox.mcp.link import Link
from loopctl.sandbox.mcp.listing import ListedTool
from loopctl.sandbox.mcp.results import rendered

NOTHING: Final = "done; it gave no output"


class ServerTool:
    """Calls one tool of one server.

    Args:
        name: In this house.
        listed: What the server said of it first.
        link: The way to it.
    """

    def __init__(self, name: str, listed: ListedTool, link: Link) -> None:
        self._name = name
        self._link = link
        self._effect = Effect.NONE if listed.annotations.read_only else Effect.OUTSIDE

    @property
    def effect(self) -> Effect:
        """``none`` where the server calls it read-only; else ``outside``, wherever it may be."""
        return self._effect

    def run(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Return what the server answered.

        A call that was not sent, or was refused, is an error. One that was sent and not answered
        is ``Outcome.UNKNOWN``, or an error where the tool only reads.

        Raises:
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        try:
            canonical(dict(arguments)).decode()
        except ValueError:
            return self._error("its arguments hold what UTF-8 cannot say; it was not sent")
        came = self._link.call(self._name, arguments, idempotency_key)
        if isinstance(came, str):
            return self._error(came)
        # Imported by now, and by nobody before there is a server.
        from loopctl.sandbox.mcp.connection import Lost, Refused  # noqa: PLC0415

        if isinstance(came, Refused):
            return self._error(f"{self._name} was not carried out: {came.reason}")
        if isinstance(came, Lost):
            if self._effect is Effect.NONE:
                return self._error(f"{self._name} has no result: {came.reason}")
            return Outcome.UNKNOWN
        result = rendered(came, self._link.source.secrets)
        return result if result.content else ToolResult(NOTHING, is_error=result.is_error)

    def probe(self, arguments: Mapping[str, Any], idempotency_key: str) -> ToolResult | Outcome:
        """Return that nobody knows: the protocol has no way to ask.

        Not even a tool that calls itself idempotent is asked again: that is a claim, and the
        decision about an effect outside is a person's.
        """
        del arguments, idempotency_key
        return Outcome.UNKNOWN

    def _error(self, text: str) -> ToolResult:
        return ToolResult(self._link.source.secrets.hide(text), is_error=True)
