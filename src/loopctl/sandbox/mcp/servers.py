"""The servers of tools of one run: opened when a sandbox first needs them, closed with it.

A command that names its folder (``.``) has a process in each sandbox, in that sandbox's worktree.
Any other command has one process for the run, in an empty folder; a URL has one connection.
"""

import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from loopctl.calls import Annotations, ToolSpec
from loopctl.mcpsettings import McpServerSettings
from loopctl.ports import Confinement, Sandbox
from loopctl.sandbox.mcp.link import Link
from loopctl.sandbox.mcp.listing import spec
from loopctl.sandbox.mcp.pins import Pins
from loopctl.sandbox.mcp.source import Source, Surroundings
from loopctl.sandbox.mcp.tool import ServerTool
from loopctl.toolports import PinStore, Tool

if TYPE_CHECKING:
    from loopctl.sandbox.mcp.loop import LoopThread


class Offered(NamedTuple):
    """A tool that a server offers: for the model, for the proxy, for the policy.

    ``question`` returns why a person is asked about it first, empty where it is what was pinned.
    """

    spec: ToolSpec
    tool: Tool
    annotations: Annotations
    question: Callable[[], str] = str


class Servers(AbstractContextManager["Servers"]):
    """All servers that the settings name; none is started before :meth:`tools` asks for it.

    Args:
        settings: ``[mcp]``.
        checkout: The user's.
        folder: Made when it is needed and removed at the end; nothing else may be in it.
        env: The caller's environment; a server gets an allow-listed part, and what it names.
        confinement: What keeps the processes inside.
        pins: What their tools were when they were seen first, in this run or an earlier one.
        cancel: Ends all waiting when set.
    """

    def __init__(
        self,
        settings: Mapping[str, McpServerSettings],
        *,
        checkout: Path,
        folder: Path,
        env: Mapping[str, str],
        confinement: Confinement,
        pins: PinStore,
        cancel: threading.Event | None = None,
    ) -> None:
        around = Surroundings(checkout, folder, env, confinement)
        self._sources = [Source(name, settings[name], around) for name in sorted(settings)]
        self._pins = {source.name: Pins(source.scope, pins) for source in self._sources}
        self._folder = folder
        self._cancel = cancel
        self._lock = threading.Lock()
        self._links: dict[tuple[str, str], Link] = {}
        self._loop: LoopThread | None = None
        self._is_closed = False

    def tools(self, sandbox: Sandbox) -> Mapping[str, Offered]:
        """Return the tools for a sandbox by name, always in the same order.

        What the first sandbox of a run was offered is what all of them are, but for what a person
        has approved since.

        Raises:
            EnvironmentFaultError: A server cannot be had; says which, why and what to do.
            SandboxError: The worktree is gone.
            CancelledError: The run was asked to stop.
        """
        links = [self._link(source, sandbox) for source in self._sources]
        # All at once: each takes its time to start.
        for link in links:
            link.begin()
        return {
            name: Offered(
                spec(name, tool),
                ServerTool(name, tool, link),
                tool.annotations,
                partial(link.question, name),
            )
            for link in links
            for name, tool in link.tools().items()
        }

    def leave(self, sandbox: str) -> None:
        """End what was started in the sandbox of that name, before its worktree goes."""
        with self._lock:
            left = [key for key in self._links if key[1] == sandbox]
            links = [self._links.pop(key) for key in left]
        for link in links:
            link.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all servers; processes with all that came of them."""
        with self._lock:
            self._is_closed = True
            links, self._links = list(self._links.values()), {}
            loop, self._loop = self._loop, None
        for link in links:
            link.close()
        if loop is not None:
            loop.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _link(self, source: Source, sandbox: Sandbox) -> Link:
        is_own = source.settings.is_in_worktree
        key = (source.name, sandbox.name if is_own else "")
        with self._lock:
            if self._is_closed:
                raise source.fault("is closed, since its run is at its end")
            if self._loop is None:
                from loopctl.sandbox.mcp.loop import LoopThread  # noqa: PLC0415 - only with servers

                self._loop = LoopThread(self._cancel)
            if key not in self._links:
                worktree = sandbox.workdir if is_own else None
                pins = self._pins[source.name]
                self._links[key] = Link(source, self._loop, pins, worktree)
            return self._links[key]
