"""What a server that is a process may do, and what comes of it."""

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loopctl.calls import Effect, Outcome, ToolResult
from loopctl.errors import CancelledError, EnvironmentFaultError, SandboxError
from loopctl.records import Confined
from loopctl.sandbox.confine.none import Unconfined

if TYPE_CHECKING:
    from tests.integration.mcp.conftest import Bench

Run = Callable[..., Any]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def starts(bench: "Bench") -> int:
    return sum(line.startswith("start ") for line in bench.logged())


def test_a_server_is_started_when_its_tools_are_asked_for_and_once(
    bench: "Bench", run: Run
) -> None:
    servers = bench.raw()
    assert bench.logged() == []
    for _ in range(3):
        said = run(servers, "echo", key="the key", text="hello")
        assert json.loads(said.content) == {
            "said": {"text": "hello"},
            "meta": {"idempotencyKey": "the key"},
        }
    assert starts(bench) == 1


def test_a_server_has_a_session_no_terminal_and_an_allow_listed_environment(
    bench: "Bench", run: Run
) -> None:
    bench.env |= {"SECRET_TOKEN": "s3cret-token", "TZ": "UTC", "RAW_KEY": "handed-over"}
    servers = bench.open(
        raw={"command": (*bench.raw_command, "plain"), "env": ("RAW_LOG", "RAW_KEY")}
    )
    found = json.loads(run(servers, "where").content)
    assert found["sid"] == found["pid"] != os.getsid(0)
    assert not found["tty"]
    assert found["env"]["TZ"] == "UTC"
    assert found["env"]["PATH"] == bench.env["PATH"]
    assert "SECRET_TOKEN" not in found["env"]
    assert found["env"]["HOME"] == str(bench.root / "servers/raw/home")
    # It has the variable, and what it says of it comes back without the value.
    assert found["env"]["RAW_KEY"] == "[RAW_KEY]"


def test_a_server_that_names_no_folder_is_one_for_all_in_an_empty_folder(
    bench: "Bench", run: Run
) -> None:
    servers = bench.raw()
    servers.tools(bench.box("other"))
    found = json.loads(run(servers, "where").content)
    assert Path(found["cwd"]) == bench.root / "servers/raw/work"
    assert os.listdir(found["cwd"]) == []  # noqa: PTH208 - names alone
    assert starts(bench) == 1
    servers.leave("other")
    assert not run(servers, "echo").is_error
    assert starts(bench) == 1


def test_a_server_that_names_its_folder_runs_in_each_worktree(bench: "Bench") -> None:
    servers = bench.raw("plain", ".")
    pids = {}
    for name in ("one", "two"):
        box = bench.box(name)
        found = servers.tools(box)["mcp__raw__where"].tool.run({}, "k")
        assert isinstance(found, ToolResult)
        assert json.loads(found.content)["cwd"] == str(box.workdir)
        pids[name] = json.loads(found.content)["pid"]
    servers.leave("one")
    assert (is_alive(pids["one"]), is_alive(pids["two"])) == (False, True)
    servers.leave("nowhere")
    assert is_alive(pids["two"])


def test_a_worktree_that_was_made_anew_gets_a_new_process(bench: "Bench", run: Run) -> None:
    servers = bench.raw("plain", ".")
    box = bench.box()
    before = json.loads(run(servers, "where").content)
    tool = servers.tools(box)["mcp__raw__write"].tool
    box.workdir.rename(bench.root / "aside")
    with pytest.raises(SandboxError, match="is gone"):
        tool.run({"path": "x"}, "k")
    box.workdir.mkdir()
    assert tool.run({"path": "x"}, "k") == ToolResult("written")
    assert (box.workdir / "x").read_text() == "written"
    assert not is_alive(before["pid"])


def test_the_program_of_a_relative_path_is_the_users_and_never_the_worktrees(
    bench: "Bench",
) -> None:
    script = f"#!/bin/sh\nexec {' '.join(bench.raw_command)} plain\n"
    for folder, text in (
        (bench.root, script),
        (bench.box().workdir, "#!/bin/sh\ntouch planted\n"),
    ):
        (folder / "serve").write_text(text)
        (folder / "serve").chmod(0o700)
    servers = bench.open(raw={"command": ("./serve", "."), "env": ("RAW_LOG",)})
    assert "mcp__raw__echo" in servers.tools(bench.box())
    assert not (bench.box().workdir / "planted").exists()


def test_the_process_is_confined_to_its_worktree_and_its_own_folders(
    bench: "Bench", run: Run
) -> None:
    asked: list[tuple[Path, tuple[Path, ...], tuple[Path, ...], bool]] = []

    class Recording(Unconfined):
        def wrap(
            self,
            argv: Sequence[str],
            *,
            workdir: Path,
            writable: Sequence[Path],
            kept: Sequence[Path] = (),
            network: bool = False,
        ) -> Confined:
            asked.append((workdir, tuple(writable), tuple(kept), network))
            return Confined(("env", "CONFINED=yes", *argv))

    tool = bench.root / "tools/serve.py"
    tool.parent.mkdir()
    tool.touch()
    command = (*bench.raw_command, "plain", ".", f"--script={tool}")
    servers = bench.open(Recording(), raw={"command": command, "network": True})
    found = json.loads(run(servers, "where").content)
    assert found["env"]["CONFINED"] == "yes"
    own = bench.root / "servers/raw"
    kept = (tool.parent,)
    assert asked == [(bench.box().workdir, (own / "home", own / "tmp"), kept, True)]


def test_a_process_that_does_not_run_in_a_worktree_is_the_users_own_and_not_confined(
    bench: "Bench", run: Run
) -> None:
    class Refusing(Unconfined):
        def wrap(self, argv: Sequence[str], **_: object) -> Confined:
            raise AssertionError(argv)

    servers = bench.open(Refusing(), raw={"command": (*bench.raw_command, "plain")})
    assert not run(servers, "where").is_error


def test_everything_that_a_server_has_started_is_gone_with_it(bench: "Bench", run: Run) -> None:
    with bench.closing:
        servers = bench.raw()
        child = int(run(servers, "start").content)
        server = json.loads(run(servers, "where").content)["pid"]
        assert is_alive(child)
    assert (is_alive(child), is_alive(server)) == (False, False)
    assert not (bench.root / "servers").exists()
    assert bench.logged()[-1] == "end of input"


def test_a_server_that_does_not_end_by_itself_is_ended(bench: "Bench", run: Run) -> None:
    with bench.closing:
        servers = bench.raw("stubborn")
        server = json.loads(run(servers, "where").content)["pid"]
    assert not is_alive(server)


def test_a_call_after_the_end_is_an_error_and_starts_nothing(bench: "Bench") -> None:
    with bench.closing:
        servers = bench.raw()
        tool = servers.tools(bench.box())["mcp__raw__write"].tool
    late = tool.run({"path": "x"}, "k")
    assert isinstance(late, ToolResult)
    assert late.is_error
    assert "was not sent" in late.content
    with pytest.raises(EnvironmentFaultError, match="its run is at its end"):
        servers.tools(bench.box())
    assert starts(bench) == 1


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("silent", "gave no answer within 0.2 seconds"),
        ("dies", "ended before it had answered. It ended with exit code 7. The end of its "),
        ("dies", "no such database; the key was [RAW_KEY]"),
        ("chatty", "writes other things than messages to its standard output: tick"),
        ("many", "lists more than 256 tools"),
        ("circle", "lists its tools in a circle"),
        ("clash", "lists the tools 'a.b' and 'a_b', which would both be called mcp__raw__a_b"),
        ("malformed", "does not speak the protocol"),
    ],
)
def test_a_server_that_cannot_be_had_is_a_fault_that_says_which_why_and_what_to_do(
    bench: "Bench", mode: str, said: str
) -> None:
    bench.env["RAW_KEY"] = "very-secret"
    timeout_s = 0.2 if mode == "silent" else 60
    command = (*bench.raw_command, mode)
    servers = bench.open(
        raw={"command": command, "env": ("RAW_LOG", "RAW_KEY"), "timeout_s": timeout_s}
    )
    with pytest.raises(EnvironmentFaultError) as caught:
        servers.tools(bench.box())
    text = str(caught.value)
    assert text.startswith("the tool server 'raw' (")
    assert f"raw.py {mode}) " in text
    assert said in text
    assert "Run its command by hand" in text
    assert "[mcp.raw]" in text
    assert "very-secret" not in text
    assert len(text) < 3000


def test_a_program_that_is_missing_and_a_variable_that_is_not_set_are_faults(
    bench: "Bench",
) -> None:
    servers = bench.open(a={"command": ("no-such-program-here", "x")})
    with pytest.raises(EnvironmentFaultError) as caught:
        servers.tools(bench.box())
    assert "(no-such-program-here x) cannot be started: no-such-program-here: not found" in str(
        caught.value
    )
    servers = bench.open(b={"command": ("true",), "env": ("NOT_SET_HERE",)})
    with pytest.raises(EnvironmentFaultError, match="NOT_SET_HERE, which is not set"):
        servers.tools(bench.box())


def test_a_banner_on_standard_output_is_put_up_with(bench: "Bench", run: Run) -> None:
    assert not run(bench.raw("banner"), "echo").is_error


def test_all_pages_of_a_listing_are_read(bench: "Bench") -> None:
    assert list(bench.raw("pages").tools(bench.box())) == [f"mcp__raw__t{n}" for n in range(3)]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("die", "its server ended, or broke the connection off"),
        ("huge", "its server sent a message of more than 16 MiB"),
        ("broken", "its server sent what is no message of the protocol: {"),
        ("hang", "its server gave no answer within 3 seconds"),
    ],
)
def test_a_reading_call_without_an_answer_is_an_error_and_the_next_one_works(
    bench: "Bench", run: Run, tool: str, said: str
) -> None:
    servers = bench.raw(timeout_s=3 if tool == "hang" else 60)
    lost = run(servers, tool)
    assert lost.is_error
    assert said in lost.content
    assert not run(servers, "echo").is_error


@pytest.mark.parametrize("tool", ["die_writing", "hang_writing"])
def test_nobody_knows_what_came_of_a_writing_call_without_an_answer(
    bench: "Bench", run: Run, tool: str
) -> None:
    servers = bench.raw(timeout_s=3)
    assert run(servers, tool) is Outcome.UNKNOWN
    made = servers.tools(bench.box())[f"mcp__raw__{tool}"].tool
    assert made.effect is Effect.OUTSIDE
    assert made.probe({}, "key") is Outcome.UNKNOWN
    assert [line for line in bench.logged() if line.startswith("call")] == [f"call {tool} key"]


def test_a_server_that_dies_of_every_call_is_not_started_for_ever(bench: "Bench", run: Run) -> None:
    servers = bench.raw()
    tool = servers.tools(bench.box())["mcp__raw__die"].tool
    said = [tool.run({}, "k") for _ in range(8)]
    assert starts(bench) == 5
    last = said[-1]
    assert isinstance(last, ToolResult)
    assert last.is_error
    assert "was lost 5 times and is not tried again" in last.content
    with pytest.raises(EnvironmentFaultError, match="lost 5 times"):
        run(servers, "echo")


def test_what_a_server_calls_an_error_is_one_and_is_shown_without_control_characters(
    bench: "Bench", run: Run
) -> None:
    servers = bench.raw()
    assert run(servers, "fail") == ToolResult("it went wrong", is_error=True)
    refused = run(servers, "refuse")
    assert refused.is_error
    assert "not \\u{1b}[31mtoday" in refused.content


def test_bytes_that_are_no_text_are_replaced(bench: "Bench", run: Run) -> None:
    assert run(bench.raw(), "bytes") == ToolResult("a\ufffd\ufffdb")


def test_arguments_that_cannot_be_sent_are_an_error(bench: "Bench", run: Run) -> None:
    servers = bench.raw()
    assert "was not sent" in run(servers, "echo", text="\ud800").content
    assert not run(servers, "echo", text="ok").is_error


def test_a_tool_that_says_something_else_in_another_sandbox_is_not_called_there(
    bench: "Bench",
) -> None:
    servers = bench.raw("rug", str(bench.root / "marker"), ".")
    one, two = servers.tools(bench.box("one")), servers.tools(bench.box("two"))
    assert one["mcp__raw__write"].spec == two["mcp__raw__write"].spec
    assert one["mcp__raw__write"].tool.run({"path": "x"}, "k") == ToolResult("written")
    for name, what in (("write", "its description changed"), ("echo", "its annotations changed")):
        refused = two[f"mcp__raw__{name}"].tool.run({"path": "x"}, "k")
        assert isinstance(refused, ToolResult)
        assert refused.is_error
        assert f"mcp__raw__{name} is not what it was" in refused.content
        assert what in refused.content
    assert not (bench.box("two").workdir / "x").exists()
    still = two["mcp__raw__where"].tool.run({}, "k")
    assert isinstance(still, ToolResult)
    assert not still.is_error


def test_a_tool_that_the_server_has_taken_back_is_not_called_any_more(
    bench: "Bench", run: Run
) -> None:
    servers = bench.raw("plain", ".")
    assert run(servers, "change") == ToolResult("changed")
    refused = run(servers, "write", path="x")
    assert refused.is_error
    assert "it is not listed any more" in refused.content
    assert not (bench.box().workdir / "x").exists()


def test_a_call_ends_when_the_run_is_asked_to_stop(bench: "Bench", tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    bench.env["RAW_LOG"] = str(fifo)
    lines: list[str] = []

    # Both ends stay open here, so that no line the server writes finds the pipe without a reader.
    log = os.fdopen(os.open(fifo, os.O_RDWR))

    def read() -> None:
        with log:
            while "hanging\n" not in lines:
                lines.append(log.readline())
        bench.cancel.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    tool = bench.raw(timeout_s=250).tools(bench.box())["mcp__raw__hang_writing"].tool
    with pytest.raises(CancelledError):
        tool.run({}, "k")
    reader.join(20)
    assert not reader.is_alive()


def test_sandboxes_at_work_at_once_share_what_is_shared(bench: "Bench") -> None:
    servers = bench.raw()
    found: list[object] = []

    def work(name: str) -> None:
        tools = servers.tools(bench.box(name))
        found.extend(tools["mcp__raw__echo"].tool.run({}, name) for _ in range(10))

    threads = [threading.Thread(target=work, args=(f"box{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 60
    assert all(isinstance(result, ToolResult) and not result.is_error for result in found)
    assert starts(bench) == 1
