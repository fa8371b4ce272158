"""The policy on calls: which are refused, and which a person is asked about first. Pure.

Refusing comes first, then asking. What a server of tools says of its tools is its own claim: it
can bring a call under a pattern, and never out of one that names the tool. A tool that nobody has
told anything of is asked about.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from loopctl.calls import Action, Annotations, Ruling, ToolCall
from loopctl.patterns import matches_command, matches_tool
from loopctl.sandbox.commandwords import UnreadableError, commands

BASH: Final = "bash"

FLOOR: Final = (
    *("bash:sudo", "bash:su", "bash:doas", "bash:pkexec"),
    *("bash:shutdown", "bash:reboot", "bash:halt", "bash:poweroff"),
    *("bash:mount", "bash:umount", "bash:mkfs*", "bash:insmod", "bash:modprobe"),
    *("bash:git push", "bash:git send-pack"),
    *(f"bash:dd *of=/dev/{disk}*" for disk in ("sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk")),
    *("bash:rm * /", "bash:rm * / *", "bash:rm * /[*]*"),
    *(f"bash:rm * {home}{end}" for home in ("~", "$HOME", "${HOME}") for end in ("", "/", "/[*]")),
)
"""Refused always; no setting lifts it. What is done by these is never a task's work."""


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
    """

    def __init__(
        self,
        approve: Sequence[str] = (),
        deny: Sequence[str] = (),
        *,
        work: Sequence[str] = (),
        servers: Mapping[str, ServerTool] | None = None,
    ) -> None:
        self._approve = tuple(approve)
        self._deny = (*FLOOR, *deny)
        self._work = frozenset(work)
        self._servers = dict(servers or {})

    def __call__(self, call: ToolCall) -> Ruling:
        """Return whether the call may be made, and which pattern is against it."""
        if call.tool in self._work:
            return self._of_command(call) if call.tool == BASH else Ruling()
        known = self._servers.get(call.tool)
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
        try:
            texts = [" ".join(words) for words in commands(command)]
        except UnreadableError as error:
            return Ruling(Action.DENY, f"the command cannot be read: {error}")
        texts.append(" ".join(command.split()))
        if pattern := _about(FLOOR, texts[:-1]):
            return Ruling(Action.DENY, f"no worker may do that ({pattern})")
        if pattern := _about(self._deny[len(FLOOR) :], texts):
            return Ruling(Action.DENY, f"[policy] deny has {pattern}")
        if pattern := _about(self._approve, texts):
            return Ruling(Action.APPROVE, f"[policy] approve has {pattern}")
        return Ruling()


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
