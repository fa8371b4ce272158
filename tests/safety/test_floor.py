"""The deny floor: what it refuses however it is written, and what it lets pass."""

import shlex
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopctl.calls import Action, Annotations, ToolCall
from loopctl.sandbox.floor.calls import call_refusal
from loopctl.sandbox.floor.judge import LETTERS, judge
from loopctl.sandbox.policy import ApprovalPolicy, ServerTool
from tests.safety.corpus import DISGUISED, ORDINARY, UNREADABLE

WRAPPERS: Final[tuple[Callable[[str], str], ...]] = (
    lambda one: f"sh -c {shlex.quote(one)}",
    lambda one: f"bash -lc {shlex.quote(one)}",
    lambda one: f"/usr/bin/env A=1 timeout -k 1 5 nice -n 3 dash -c {shlex.quote(one)}",
    lambda one: f"eval {shlex.quote(one)}",
    lambda one: f"({one}\n)",
    lambda one: f"{{ {one}\n}}",
    lambda one: f"true && {one}",
    lambda one: f"if true; then {one}\nfi",
    lambda one: f"f() {{ {one}\n}}; f",
    lambda one: f"echo $({one}\n)",
    lambda one: f'x="$({one}\n)"',
    lambda one: f"printf %s {shlex.quote(one)} | sh",
    lambda one: f"sh <<'LAST-LINE'\n{one}\nLAST-LINE",
    lambda one: f"bash <<< {shlex.quote(one)}",
    lambda one: f"busybox sh -c {shlex.quote(one)}",
    lambda one: f"find . -exec sh -c {shlex.quote(one)} \\;",
    lambda one: f"echo a | xargs sh -c {shlex.quote(one)}",
    lambda one: f"git -c alias.x={shlex.quote('!' + one)} x",
    lambda one: f"trap {shlex.quote(one)} EXIT",
    lambda one: f"alias x={shlex.quote(one)}; x",
    lambda one: f"diff <({one}\n) a",
    lambda one: f"case a in a) {one}\n;; esac",
    lambda one: f"python3 -c {shlex.quote(f'import os; os.system({one!r})')}",
    lambda one: f"ls # it's\n{one}",
)


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    assert len(set(DISGUISED)) >= 250
    assert len(set(ORDINARY)) >= 150


@pytest.mark.parametrize("command", [*DISGUISED, *UNREADABLE])
def test_disguised_command_is_refused(command: str) -> None:
    assert judge(command).refusal
    ruling = ApprovalPolicy(work=("bash",))(ToolCall("s", 1, 0, "bash", {"command": command}))
    assert ruling.action is Action.DENY


@pytest.mark.parametrize("command", ORDINARY)
def test_ordinary_command_passes(command: str) -> None:
    assert judge(command).refusal == ""


@given(st.sampled_from(DISGUISED), st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=3))
@settings(max_examples=400, deadline=None)
def test_refused_command_stays_refused_in_any_wrapping(
    command: str, wrappers: list[Callable[[str], str]]
) -> None:
    for wrap in wrappers:
        command = wrap(command)
    assert judge(command).refusal, command


@pytest.mark.parametrize("wrap", WRAPPERS, ids=range(len(WRAPPERS)))
def test_wrapping_alone_is_no_reason_to_refuse(wrap: Callable[[str], str]) -> None:
    assert judge(wrap("echo hi")).refusal == ""


@given(st.text(max_size=80) | st.text(alphabet="ab'\"\\`$(){}<>|&;#\n \t[]*?~=!-/,.", max_size=80))
@settings(max_examples=1500, deadline=None)
def test_junk_gives_a_finding_and_never_an_error(text: str) -> None:
    found = judge(text)
    assert isinstance(found.refusal, str)
    assert "Error" not in found.refusal, found.refusal


@pytest.mark.parametrize(
    "command",
    [
        "echo " + "$(" * 40_000,
        "eval " * 20_000 + "true",
        "x" * (LETTERS + 1),
        "{a,b}" * 40,
        "`" * 50_001,
        "\ue000",
        "a\0b",
        "(" * 50_000,
        "X=1;" * 100 + "".join(f"X=$X{i};" for i in range(60)) + "$X",
    ],
)
def test_what_is_too_large_or_too_deep_is_refused(command: str) -> None:
    assert judge(command).refusal


def test_the_worktrees_own_absolute_path_is_inside() -> None:
    roots = ("/work/tree",)
    for command in ("rm -rf /work/tree/build", "cd /work/tree/src && rm -rf *"):
        assert judge(command, roots).refusal == ""
        assert judge(command).refusal
    assert judge("rm -rf /work/tree/../x", roots).refusal
    assert judge("rm -rf /work/treetop", roots).refusal
    assert judge("rm -rf /work/tree/.git", roots).refusal


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_command", {"command": "sudo id"}),
        ("run_command", {"command": "rm", "args": ["-rf", "/"]}),
        ("exec", {"argv": ["git", "push"]}),
        ("exec", {"options": {"cmd": ["sh", "-c", "sudo id"]}}),
        ("shell", {"script": "echo 'x"}),
        ("execute_python", {"code": "import os; os.system('sudo id')"}),
        ("query", {"sql": "DROP TABLE users"}),
        ("query", {"statements": ["select 1", "drop database x"]}),
        ("read_file", {"path": "~/.ssh/id_rsa"}),
        ("read_file", {"paths": ["a", "/proc/self/environ"]}),
        ("read_resource", {"uri": "file:///root/.aws/credentials"}),
        ("delete_file", {"path": "/etc/hosts"}),
        ("delete_directory", {"path": "../other"}),
        ("delete_repository", {"name": "x"}),
        ("dropDatabase", {}),
        ("terminate-instances", {"ids": ["i"]}),
        ("git_push", {}),
        ("push_files", {"branch": "main"}),
        ("publishPackage", {}),
    ],
)
def test_call_of_a_servers_tool_is_refused_whatever_the_settings_and_the_server_say(
    tool: str, arguments: dict[str, Any]
) -> None:
    quiet = Annotations(read_only=True, destructive=False)
    servers = {f"mcp__s__{tool}": ServerTool("s", tool, quiet)}
    ruling = ApprovalPolicy((), (), servers=servers)(
        ToolCall("s", 1, 0, f"mcp__s__{tool}", arguments)
    )
    assert ruling.action is Action.DENY
    assert "no setting allows it" in ruling.reason


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "src/delete.py"}),
        ("delete_file", {"path": "src/old.py"}),
        ("query", {"sql": "select * from dropped"}),
        ("search", {"query": "how to git push"}),
        ("run_command", {"command": "npm test"}),
        ("create_issue", {"title": "sudo is missing", "body": "rm -rf /"}),
        ("list_tables", {}),
        ("get_repository", {"name": "x"}),
    ],
)
def test_ordinary_call_of_a_servers_tool_passes(tool: str, arguments: dict[str, Any]) -> None:
    assert call_refusal(tool, arguments) == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_arguments_of_any_shape_give_a_ruling(value: object) -> None:
    assert isinstance(call_refusal("tool", {"command": value, "x": [value]}), str)
    assert call_refusal("tool", {"x": _deep(100)})


def _deep(depth: int) -> object:
    found: object = "x"
    for _ in range(depth):
        found = [found]
    return found
