"""A hook that says no, or nothing that is clearly a yes, keeps a call from being made."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from loopctl.calls import ApprovalRequired, ToolResult
from loopctl.events import Noticed

if TYPE_CHECKING:
    from tests.safety.conftest import Ground

CALLS: dict[str, dict[str, Any]] = {
    "bash": {"command": "touch made"},
    "write_file": {"path": "made", "content": "x"},
    "mcp__mail__send": {"to": "made"},
}

FAILURES = {
    "time-out": ("sleep 600", "took longer than it may"),
    "crash": ("exec python3 -c 'raise RuntimeError'", "ended with exit code 1"),
    "missing file": ("./hooks/not-there.sh", "ended with exit code 127"),
    "bad output": ("echo it looks fine to me", "said what is no JSON"),
    "signal": ("kill -KILL $$", "was ended by signal 9"),
    "unknown exit code": ("exit 3", "ended with exit code 3"),
}


def decision(word: str, **more: str) -> str:
    own = {"hookEventName": "PreToolUse", "permissionDecision": word, **more}
    return f"echo '{json.dumps({'hookSpecificOutput': own})}'"


@pytest.mark.parametrize("tool", CALLS)
def test_control_a_hook_that_ends_with_0_lets_the_call_be_made(ground: "Ground", tool: str) -> None:
    came = ground.desk(ground.hooks("cat > /dev/null")).call(ground.call(tool, **CALLS[tool]))
    assert isinstance(came, ToolResult)
    assert not came.is_error, came.content
    assert ground.effects() == ["made"]


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("mode", FAILURES)
def test_hook_that_fails_blocks_the_call(ground: "Ground", mode: str, tool: str) -> None:
    command, why = FAILURES[mode]
    timeout_s = 0.2 if mode == "time-out" else 30
    hooks = ground.hooks(guard={"command": command, "timeout_s": timeout_s})
    came = ground.desk(hooks).call(ground.call(tool, **CALLS[tool]))
    assert isinstance(came, ToolResult)
    assert came.is_error
    assert why in came.content
    assert ground.effects() == []
    (notice,) = [event for event in ground.log.events if isinstance(event, Noticed)]
    assert "the hook guard" in notice.text


@pytest.mark.parametrize(
    "output",
    [
        "[]",
        '"allow"',
        "{",
        '{"decision": "yes"}',
        '{"decision": 1}',
        '{"continue": "no"}',
        '{"async": true}',
        '{"hookSpecificOutput": []}',
        '{"hookSpecificOutput": {"permissionDecision": "ALLOW"}}',
        '{"hookSpecificOutput": {"permissionDecision": ["allow"]}}',
        '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision": "allow"}}',
        '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "x"}}}',
        "\\377",
    ],
)
def test_output_that_is_not_clearly_a_yes_blocks(ground: "Ground", output: str) -> None:
    hooks = ground.hooks(f"printf '{output}'")
    came = ground.desk(hooks).call(ground.call("bash", command="touch made"))
    assert isinstance(came, ToolResult)
    assert came.is_error
    assert ground.effects() == []


@pytest.mark.parametrize(
    "command",
    [
        "echo 'not on a Friday' >&2; exit 2",
        decision("deny", permissionDecisionReason="not on a Friday"),
        """echo '{"decision": "block", "reason": "not on a Friday"}'""",
        """echo '{"continue": false, "stopReason": "not on a Friday"}'""",
    ],
)
def test_hook_that_says_no_blocks_with_its_reason(ground: "Ground", command: str) -> None:
    came = ground.desk(ground.hooks(command)).call(ground.call("bash", command="touch made"))
    assert isinstance(came, ToolResult)
    assert came.is_error
    assert "not on a Friday" in came.content
    assert ground.effects() == []


def test_hook_that_asks_has_a_person_approve_the_call_first(ground: "Ground") -> None:
    hooks = ground.hooks(decision("ask", permissionDecisionReason="is it wanted?"))
    came = ground.desk(hooks).call(ground.call("bash", command="touch made"))
    assert isinstance(came, ApprovalRequired)
    assert "is it wanted?" in came.reason
    assert ground.effects() == []


def test_hook_that_allows_lifts_neither_the_floor_nor_another_hook(ground: "Ground") -> None:
    allow = decision("allow")
    floor = ground.desk(ground.hooks(allow)).call(ground.call("bash", command="sudo touch made"))
    assert isinstance(floor, ToolResult)
    assert floor.is_error
    asking = ground.hooks(allow, decision("ask"), allow)
    came = ground.desk(asking).call(ground.call("bash", command="touch made"))
    assert isinstance(came, ApprovalRequired)
    both = ground.desk(ground.hooks(allow, "exit 2", allow))
    came = both.call(ground.call("bash", command="touch made"))
    assert isinstance(came, ToolResult)
    assert came.is_error
    assert ground.effects() == []


def test_hook_is_told_in_claude_codes_words_and_without_keys(ground: "Ground") -> None:
    hooks = ground.hooks(
        'cat > "$CLAUDE_PROJECT_DIR/said"; env > environment; pwd > folder',
        after={"event": "post_tool_use", "command": "cat > told"},
    )
    desk = ground.desk(hooks)
    desk.call(ground.call("write_file", path="a/../b.txt", content="x"))
    said = json.loads((ground.checkout / "said").read_text())
    assert said["hook_event_name"] == "PreToolUse"
    assert said["tool_name"] == "Write"
    assert said["tool_input"] == {"file_path": str(ground.worktree / "b.txt"), "content": "x"}
    assert (said["loop_tool_name"], said["cwd"]) == ("write_file", str(ground.worktree))
    assert said["session_id"]
    assert "sk-never-to-be-seen" not in (ground.checkout / "environment").read_text()
    assert (ground.checkout / "folder").read_text().strip() == str(ground.checkout)
    told = json.loads((ground.checkout / "told").read_text())
    assert (told["hook_event_name"], told["tool_name"]) == ("PostToolUse", "Write")
    assert told["tool_response"]["is_error"] in {True, False}
    desk.call(ground.call("bash", command="true"))
    said = json.loads((ground.checkout / "said").read_text())
    assert (said["tool_name"], said["tool_input"]) == ("Bash", {"command": "true"})
    desk.call(ground.call("mcp__mail__send", to="a"))
    said = json.loads((ground.checkout / "said").read_text())
    assert (said["tool_name"], said["tool_input"]) == ("mcp__mail__send", {"to": "a"})


@pytest.mark.parametrize(
    ("match", "blocked"),
    [
        ("Bash", ["bash"]),
        ("bash", ["bash"]),
        ("Write|Edit", ["write_file"]),
        ("mcp__.*", ["mcp__mail__send"]),
        ("mcp__mail", []),
        ("*", list(CALLS)),
    ],
)
def test_hook_is_for_the_tools_that_it_names(
    ground: "Ground", match: str, blocked: list[str]
) -> None:
    desk = ground.desk(ground.hooks(guard={"match": match, "command": "exit 2"}))
    for tool, arguments in CALLS.items():
        came = desk.call(ground.call(tool, **arguments))
        assert isinstance(came, ToolResult)
        assert came.is_error == (tool in blocked), tool


@pytest.mark.parametrize("command", [*(one for one, _ in FAILURES.values()), "exit 2"])
def test_hook_that_observes_changes_no_result(ground: "Ground", command: str) -> None:
    plain = ground.desk().call(ground.call("bash", command="echo seen"))
    hooks = ground.hooks(o={"event": "post_tool_use", "command": command, "timeout_s": 0.5})
    assert ground.desk(hooks).call(ground.call("bash", command="echo seen")) == plain


def test_script_of_a_hook_is_the_users_and_held_to_what_it_was(ground: "Ground") -> None:
    script = ground.script("guard.sh", "#!/bin/sh\nexit 2\n")
    desk = ground.desk(ground.hooks("./guard.sh"))
    for lenient in (ground.worktree / "guard.sh", script):
        lenient.write_text("#!/bin/sh\nexit 0\n")
        lenient.chmod(0o700)
        came = desk.call(ground.call("mcp__mail__send", to="made"))
        assert isinstance(came, ToolResult)
        assert came.is_error
        assert ground.mail.sent == []
    said = [event.text for event in ground.log.events if isinstance(event, Noticed)]
    assert any("is not what it was when the run began" in text for text in said)
    # A resume is the same run: the script as it was counts. Another run takes it up as it is.
    came = ground.desk(ground.hooks("./guard.sh")).call(ground.call("bash", command="true"))
    assert isinstance(came, ToolResult)
    assert came.is_error
    fresh = ground.hooks("./guard.sh", run_id="r2")
    came = ground.desk(fresh).call(ground.call("mcp__mail__send", to="made"))
    assert isinstance(came, ToolResult)
    assert not came.is_error
    assert ground.mail.sent == ["made"]


@pytest.mark.parametrize(
    "command",
    ["sh guard.sh", '"$CLAUDE_PROJECT_DIR"/guard.sh', "true && ./guard.sh --quick", "./guard.sh;"],
)
def test_script_is_found_however_a_command_names_it(ground: "Ground", command: str) -> None:
    script = ground.script("guard.sh", "#!/bin/sh\nexit 2\n")
    desk = ground.desk(ground.hooks(command))
    script.write_text("#!/bin/sh\nexit 0\n")
    came = desk.call(ground.call("bash", command="touch made"))
    assert isinstance(came, ToolResult)
    assert "is not what it was" in came.content
    assert ground.effects() == []
