import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from loopctl.mcpsettings import McpServerSettings
from loopctl.ports import Confinement, Sandbox
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.mcp.servers import Servers
from loopctl.testing import MemoryPins

from .site import Site, opened

HERE = Path(__file__).parent
RAW = (sys.executable, str(HERE / "raw.py"))
SDK = (sys.executable, str(HERE / "serving.py"))


Serve = Callable[..., AbstractContextManager[str]]


@contextmanager
def serving(home: Path, how: str, port: int = 0, **env: str) -> Iterator[str]:
    """Run the SDK's server over HTTP; yield its address."""
    own = {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "HOME": str(home)}
    process = subprocess.Popen(
        [*SDK, str(port), how],
        env=own | env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        try:
            found = next(filter(None, (re.search(r"http://\S+", line) for line in process.stderr)))
            yield f"{found[0]}/mcp"
        finally:
            process.kill()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Run the SDK's server over HTTP, answering by ``json`` or ``stream``; gives its address."""
    home = tmp_path_factory.mktemp("home")
    return lambda how, port=0, **env: serving(home, how, port, **env)


@pytest.fixture
def site() -> Iterator[Site]:
    """An endpoint that misbehaves as it is told."""
    with opened() as made:
        yield made


@dataclass
class Folder:
    """What of a sandbox the servers look at."""

    workdir: Path
    name: str = "box"


@dataclass
class Bench:
    """Servers as a run has them, and what is around them."""

    root: Path
    env: dict[str, str]
    raw_command: tuple[str, ...] = RAW
    sdk_command: tuple[str, ...] = SDK
    pins: MemoryPins = field(default_factory=MemoryPins)
    cancel: threading.Event = field(default_factory=threading.Event)
    closing: ExitStack = field(default_factory=ExitStack)

    def box(self, name: str = "box") -> Sandbox:
        workdir = self.root / "worktrees" / name
        workdir.mkdir(parents=True, exist_ok=True)
        return cast("Sandbox", Folder(workdir, name))

    @property
    def log(self) -> Path:
        return self.root / "log"

    def logged(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def open(self, confinement: Confinement | None = None, **servers: dict[str, Any]) -> Servers:
        settings = {name: McpServerSettings(**values) for name, values in servers.items()}
        return self.closing.enter_context(
            Servers(
                settings,
                checkout=self.root,
                folder=self.root / "servers",
                env=self.env,
                confinement=confinement or Unconfined(),
                pins=self.pins,
                cancel=self.cancel,
            )
        )

    def raw(self, mode: str = "plain", *more: str, timeout_s: float = 30) -> Servers:
        return self.open(
            raw={"command": (*RAW, mode, *more), "env": ("RAW_LOG",), "timeout_s": timeout_s}
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "RAW_LOG": str(tmp_path / "log")}
    made = Bench(tmp_path, env)
    with made.closing:
        yield made


@pytest.fixture
def run(bench: Bench) -> Callable[..., Any]:
    """Calls a tool of the server ``raw`` in the sandbox ``box``."""

    def called(servers: Servers, tool: str, key: str = "key", **arguments: Any) -> Any:
        return servers.tools(bench.box())[f"mcp__raw__{tool}"].tool.run(arguments, key)

    return called
