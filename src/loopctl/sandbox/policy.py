"""The policy on calls: which are refused, and which a person is asked about first. Pure.

The floor comes first, then what the settings refuse, then asking. What a server of tools says of its tools is its own claim: it
can bring a call under a pattern, and never out of one that names the tool. A tool that nobody has
told anything of is asked about.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopctl.calls import Action, Annotations, Ruling, ToolCall
from loopctl.patterns import matches_command, matches_tool
from loopctl.sandbox.floor.calls import call_refusal
from loopctl.sandbox.floor.judge import Finding, judge
from loopctl.sandbox.floor.outward import outward

BASH: Final = "bash"


@dataclass(frozen=True, slots=True)
class ServerTool:
    """What is known of a tool of a server.

    Attributes:
        server: The name of the server in the settings.
        tool: The tool's own name there.
        annotations: What the server claims of it.
        question: Returns why a person is asked about it first whatever the patterns say: it is not
            what was pinned; empty where it is.
    """

    server: str
    tool: str
    annotations: Annotations = field(default_factory=Annotations)
    question: Callable[[], str] = field(default=str, compare=False)

    @property
    def is_destructive(self) -> bool:
        """It may destroy something: it says so, or neither denies it nor says that it only reads."""
        return self.annotations.destructive and not self.annotations.read_only


class ApprovalPolicy:
    """The port ``Policy``, made of ``[policy] approve`` and ``deny``.

    Args:
        approve: Patterns of calls that are asked about; those of steps are passed over.
        deny: Patterns of calls that are refused, besides the floor.
        work: Tools whose effects stay in the sandbox.
        servers: The tools of servers, by the name that a model calls them by.
        roots: Absolute paths of the worktree and of what else is the sandbox's own.
    """

    def __init__(
        self,
        approve: Sequence[str] = (),
        deny: Sequence[str] = (),
        *,
        work: Sequence[str] = (),
        servers: Mapping[str, ServerTool] | None = None,
        roots: Sequence[str] = (),
    ) -> None:
        self._approve = tuple(approve)
        self._deny = tuple(deny)
        self._roots = tuple(roots)
        self._work = frozenset(work)
        self._servers = dict(servers or {})

    def __call__(self, call: ToolCall) -> Ruling:
        """Return whether the call may be made, and which pattern is against it."""
        if call.tool in self._work:
            return self._of_command(call) if call.tool == BASH else Ruling()
        known = self._servers.get(call.tool)
        tool = known.tool if known is not None else call.tool
        if why := call_refusal(tool, call.arguments, self._roots):
            return Ruling(Action.DENY, refused(why))
        if known is None:
            return Ruling(Action.APPROVE, f"nothing is known of {call.tool}")
        # A name that a model could not say was changed for it; a pattern may mean either.
        shown = replace(known, tool=call.tool.removeprefix(f"mcp__{known.server}__"))
        if pattern := _first(self._deny, known, shown):
            return Ruling(Action.DENY, f"[policy] deny has {pattern}")
        if why := known.question():
            return Ruling(Action.APPROVE, why)
        if pattern := _first(self._approve, known, shown):
            return Ruling(Action.APPROVE, f"[policy] approve has {pattern}")
        return Ruling()

    def _of_command(self, call: ToolCall) -> Ruling:
        command = call.arguments.get("command")
        if not isinstance(command, str):
            # The tool itself says what is wrong with its arguments.
            return Ruling()
        finding = judge(command, self._roots)
        if finding.refusal:
            return Ruling(Action.DENY, refused(finding.refusal))
        if pattern := matching(finding, command, self._deny):
            return Ruling(Action.DENY, f"[policy] deny has {pattern}")
        if pattern := matching(finding, command, self._approve):
            return Ruling(Action.APPROVE, f"[policy] approve has {pattern}")
        if why := outward(finding.commands):
            return Ruling(Action.APPROVE, why)
        return Ruling()


def refused(why: str) -> str:
    """Return what is said where the floor is against a call."""
    return f"no worker may do that, and no setting allows it: {why}"


def matching(finding: Finding, command: str, patterns: Sequence[str]) -> str:
    """Return the first pattern that is about a command or a part of it; empty where none is."""
    texts = [" ".join(words) for words in finding.commands]
    return _about(patterns, [*texts, " ".join(command.split())])


def _first(patterns: Sequence[str], *names: ServerTool) -> str:
    return next(
        (
            pattern
            for pattern in patterns
            for one in names
            if matches_tool(pattern, one.server, one.tool, is_destructive=one.is_destructive)
        ),
        "",
    )


def _about(patterns: Sequence[str], texts: Sequence[str]) -> str:
    return next(
        (pattern for pattern in patterns for text in texts if matches_command(pattern, text)), ""
    )
