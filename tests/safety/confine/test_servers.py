"""A server of tools that runs in a worktree is confined as the commands there are."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loopctl.calls import ToolResult
from loopctl.errors import EnvironmentFaultError
from loopctl.mcpsettings import McpServerSettings
from loopctl.sandbox.mcp.servers import Servers
from loopctl.sandbox.worktree import Worktree
from loopctl.testing import MemoryPins

from .conftest import SECRET, Ground

SERVER = """\
import json, os, pathlib, socket, sys

def look(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError as error:
        return type(error).__name__

def connect(port):
    try:
        socket.create_connection(("127.0.0.1", int(port)), 5).close()
        return "connected"
    except OSError as error:
        return type(error).__name__

NAMES = {"look": look, "connect": connect}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    kind, given = asked["method"], asked.get("params", {})
    if kind == "initialize":
        said = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": WHO, "version": "1"}}
    elif kind == "tools/list":
        schema = {"type": "object", "properties": {"what": {"type": "string"}}}
        said = {"tools": [{"name": name, "inputSchema": schema} for name in NAMES]}
    elif kind == "tools/call":
        text = WHO + ": " + NAMES[given["name"]](given["arguments"]["what"])
        said = {"content": [{"type": "text", "text": text}]}
    else:
        said = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""
Ask = Callable[[Worktree, str, str], str]


@pytest.fixture
def ask(ground: Ground) -> Iterator[Callable[..., Ask]]:
    """Makes what asks a server of these settings, in a worktree that is confined."""
    with ExitStack() as closing:

        def made(**settings: object) -> Ask:
            repository = ground.repositories[-1]
            servers = closing.enter_context(
                Servers(
                    {"s": McpServerSettings.model_validate(settings)},
                    checkout=ground.checkout,
                    folder=ground.checkout / ".local/mcp-test",
                    env=ground.env,
                    confinement=repository.confinement,
                    pins=MemoryPins(),
                )
            )
            repository.before_close(servers.leave)

            def asked(box: Worktree, tool: str, what: str) -> str:
                said = servers.tools(box)[f"mcp__s__{tool}"].tool.run({"what": what}, "k")
                assert isinstance(said, ToolResult)
                return said.content

            return asked

        yield made


@pytest.fixture
def served(ground: Ground) -> Path:
    """A server in the user's checkout, committed."""
    place = ground.checkout / "tools/serve.py"
    ground.put(place, "from words import WHO\n" + SERVER)
    ground.put(place.with_name("words.py"), "WHO = 'mine'\n")
    ground.git("add", "tools")
    ground.git("commit", "-q", "--allow-empty", "-m", "server")
    return place


def test_a_server_in_a_worktree_sees_that_and_nothing_outside(
    ground: Ground,
    ask: Callable[..., Ask],
    served: Path,
    listening: dict[str, str],
    by: str,
) -> None:
    box = ground.open(f"S1-{by}", by=by)
    (box.workdir / "fresh").write_text("of the worktree")
    asked = ask(command=[sys.executable, str(served), "."])
    assert asked(box, "look", "fresh") == "mine: of the worktree"
    for place in (ground.outside / "secret", ground.home / ".ssh/id_rsa", ground.checkout / ".env"):
        assert place.read_text() == SECRET
        assert asked(box, "look", str(place)) in {
            "mine: FileNotFoundError",
            "mine: PermissionError",
        }
    assert asked(box, "connect", listening["PORT"]) in {
        "mine: ConnectionRefusedError",
        "mine: PermissionError",
    }


def test_a_server_that_may_use_the_network_does(
    ground: Ground, ask: Callable[..., Ask], served: Path, listening: dict[str, str], by: str
) -> None:
    box = ground.open(f"S2-{by}", by=by)
    asked = ask(command=[sys.executable, str(served), "."], network=True)
    assert asked(box, "connect", listening["PORT"]) == "mine: connected"


def test_a_worker_does_not_become_the_server(
    ground: Ground, ask: Callable[..., Ask], served: Path, by: str
) -> None:
    box = ground.open(f"S3-{by}", by=by)
    for name in ("serve.py", "words.py"):
        file = box.workdir / "tools" / name
        file.write_text(file.read_text().replace("mine", "planted"))
    asked = ask(command=[sys.executable, str(served), "."])
    assert asked(box, "look", "a") == "mine: one\n"


def test_a_link_in_the_servers_place_is_refused(
    ground: Ground, ask: Callable[..., Ask], served: Path
) -> None:
    box = ground.open("S4-main")
    (box.workdir / "tools").rename(box.workdir / "aside")
    (box.workdir / "tools").symlink_to(ground.outside)
    asked = ask(command=[sys.executable, str(served), "."])
    with pytest.raises(EnvironmentFaultError, match="has no tools any more"):
        asked(box, "look", "a")
    left = {one.name for one in ground.outside.iterdir() if not one.is_socket()}
    assert left == {"data", "secret"}


def test_a_server_that_lacks_its_files_inside_is_a_fault_that_names_the_setting(
    ground: Ground, ask: Callable[..., Ask], by: str
) -> None:
    box = ground.open(f"S5-{by}", by=by)
    place = ground.outside / "serve.py"
    place.write_text(SERVER)
    asked = ask(command=[sys.executable, str(place), "."])
    with pytest.raises(EnvironmentFaultError, match=r"only what \[sandbox\] read names\. Run its"):
        asked(box, "look", "a")
