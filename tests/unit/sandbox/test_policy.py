from typing import Any

import pytest

from loopctl.calls import Action, Annotations, ToolCall
from loopctl.sandbox.policy import ApprovalPolicy, ServerTool

ALLOW, APPROVE, DENY = Action.ALLOW, Action.APPROVE, Action.DENY
DEFAULT = ("mcp:*:destructive",)
CLAIMS_ALL = Annotations(read_only=True, destructive=False, idempotent=True)
WORK = ("bash", "read_file", "write_file")


def call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall("s", 1, 0, tool, arguments)


def ruled(
    command: str, *, approve: tuple[str, ...] = DEFAULT, deny: tuple[str, ...] = ()
) -> Action:
    return ApprovalPolicy(approve, deny, work=WORK)(call("bash", command=command)).action


def ruled_tool(
    annotations: Annotations,
    *,
    approve: tuple[str, ...] = DEFAULT,
    deny: tuple[str, ...] = (),
    tool: str = "move",
) -> Action:
    known = {f"mcp__files__{tool.replace('.', '_')}": ServerTool("files", tool, annotations)}
    return ApprovalPolicy(approve, deny, work=WORK, servers=known)(call(next(iter(known)))).action


@pytest.mark.parametrize(
    ("annotations", "action"),
    [
        (Annotations(), APPROVE),
        (Annotations(destructive=True), APPROVE),
        (Annotations(destructive=False), ALLOW),
        (Annotations(read_only=True), ALLOW),
        (Annotations(idempotent=True), APPROVE),
    ],
)
def test_tool_that_does_not_deny_it_counts_as_destructive(
    annotations: Annotations, action: Action
) -> None:
    assert ruled_tool(annotations) is action


@pytest.mark.parametrize("annotations", [Annotations(), CLAIMS_ALL])
@pytest.mark.parametrize(
    "pattern", ["mcp:files:move", "mcp:f*:m?ve", "mcp:files", "mcp:*:*", "mcp:files:[mn]ove"]
)
def test_claims_never_take_a_tool_out_of_a_pattern_that_names_it(
    annotations: Annotations, pattern: str
) -> None:
    assert ruled_tool(annotations, approve=(pattern,)) is APPROVE
    assert ruled_tool(annotations, approve=(), deny=(pattern,)) is DENY
    assert ruled_tool(annotations, approve=(pattern,), deny=(pattern,)) is DENY


@pytest.mark.parametrize("pattern", ["mcp:file:move", "mcp:files:mov", "step:*", "bash:move"])
def test_pattern_of_something_else_says_nothing(pattern: str) -> None:
    assert ruled_tool(Annotations(), approve=(pattern,)) is ALLOW


def test_pattern_means_a_tools_own_name_and_the_one_that_a_model_is_shown() -> None:
    quiet = Annotations(read_only=True)
    for pattern in ("mcp:files:read.it", "mcp:files:read_it"):
        assert ruled_tool(quiet, approve=(pattern,), tool="read.it") is APPROVE


def test_tool_that_nobody_knows_is_asked_about() -> None:
    policy = ApprovalPolicy(work=WORK)
    ruling = policy(call("mcp__new__thing"))
    assert (ruling.action, ruling.reason) == (APPROVE, "nothing is known of mcp__new__thing")
    assert policy(call("read_file", path="a")).action is ALLOW
    assert policy(call("write_file", path="a", content="sudo")).action is ALLOW


def test_reason_names_the_pattern() -> None:
    policy = ApprovalPolicy(("bash:make *",), ("bash:make deploy",), work=WORK)
    assert policy(call("bash", command="make x")).reason == "[policy] approve has bash:make *"
    assert (
        policy(call("bash", command="make deploy")).reason == "[policy] deny has bash:make deploy"
    )
    assert policy(call("bash", command="sudo x")).reason == (
        "no worker may do that, and no setting allows it: becomes another user, or gives a program "
        "more rights (sudo x)"
    )


@pytest.mark.parametrize(
    "command",
    [
        "sudo rm x",
        "/usr/bin/sudo -n true",
        "cd src && sudo make",
        "true; sudo true",
        "true\nsudo true",
        "(sudo true)",
        "{ sudo true; }",
        "if true; then sudo true; fi",
        "X=1 sudo true",
        "env X=1 sudo true",
        "nohup nice -n 5 sudo true &",
        "timeout 5 sudo true",
        "echo x | xargs sudo rm",
        's"ud"o true',
        "s\\udo true",
        "'sudo' true",
        "s\\\nudo true",
        "echo $(sudo true)",
        'echo "$(sudo true)"',
        "echo `sudo true`",
        "echo $(echo $(echo `sudo true`))",
        "sh -c 'sudo true'",
        'bash -lc "sudo true"',
        'eval "sudo true"',
        "sh -c \"bash -c 'sudo true'\"",
        "2>&1 sudo true",
        "> out sudo true",
        "diff <(sudo cat x) y",
        "$'sudo' true",
        "cat <<EOF\nplain\nEOF\nsudo true",
        "cat <<-'E'\n\tit's\n\tE\nsudo true",
        "echo 'it''s' # no end: '\nsudo true",
        "git push",
        "git -C sub push --force origin main",
        "git -c a=b --git-dir=x push",
        "rm -rf /",
        "rm -rf /*",
        "rm -r -f ~",
        'rm -rf "$HOME"',
        "rm -rf ${HOME}/",
        "dd if=/dev/zero of=/dev/sda bs=1M",
        "mkfs.ext4 /dev/sdb1",
        "shutdown -h now",
    ],
)
def test_floor_is_refused_however_it_is_written(command: str) -> None:
    assert ruled(command, approve=()) is DENY


@pytest.mark.parametrize(
    "command",
    [
        "",
        "echo sudo",
        "echo 'sudo rm -rf /'",
        "grep -rn 'git push' docs",
        "cat <<'EOF'\nsudo make\nit's\nEOF",
        "git commit -m \"$(cat <<'EOF'\nIt's done (mostly)\nEOF\n)\"",
        "cat > f.sh <<EOF\ngit push\nEOF",
        "# sudo true",
        "ls # it's",
        "rm -rf build /tmp/x/",
        "rm -rf ./",
        "dd if=a of=/dev/null",
        "git status && git log --grep push",
        "python - <<'PY'\nprint('a' \"b\")\nPY",
        "sed -e 's/a/b/' -e \"s/'/x/\" f",
        "echo $'it\\'s'",
        "echo ${x#y} $# $((1 + 2)) ${a:-'b'}",
        'for f in *.py; do echo "$f"; done',
        "[ -f x ] || exit 1",
        "case $x in a) echo a;; esac",
        "awk '{ print $1 > \"out\" }' f",
        "echo a >&2 2>/dev/null <<< 'x'",
        "sum=$(( (1 + 2) * 3 ))",
        "suite --mount x",
    ],
)
def test_ordinary_command_is_allowed(command: str) -> None:
    assert ruled(command) is ALLOW


@pytest.mark.parametrize(
    "command", ["echo 'x", 'echo "x', "echo `x", "echo $(x", "cat <<", "echo $'x"]
)
def test_command_that_cannot_be_read_is_refused(command: str) -> None:
    assert ruled(command) is DENY


def test_command_that_is_nested_without_end_is_refused() -> None:
    assert ruled("echo " + "$(" * 50_000 + ")" * 50_000) is DENY
    assert ruled("eval " * 10_000 + "true") is DENY


@pytest.mark.parametrize(
    ("pattern", "command", "action"),
    [
        ("bash:npm version", "npm version", APPROVE),
        ("bash:npm version", "npm version --tag x", APPROVE),
        ("bash:npm version", "cd a && npm   version", APPROVE),
        ("bash:npm version", "npm versions", ALLOW),
        ("bash:npm version", "npm install", ALLOW),
        ("bash:curl * -X POST*", "curl -s -X POST http://x", APPROVE),
        ("bash:cd * && make", "cd x && make", APPROVE),
        ("bash:*", "true", APPROVE),
        ("bash:*", "# nothing", APPROVE),
    ],
)
def test_pattern_of_a_command_means_it_and_what_begins_with_it(
    pattern: str, command: str, action: Action
) -> None:
    assert ruled(command, approve=(pattern,)) is action
    assert ruled(command, approve=(), deny=(pattern,)) is {APPROVE: DENY}.get(action, action)


def test_arguments_that_are_no_command_are_left_to_the_tool() -> None:
    policy = ApprovalPolicy(work=WORK)
    assert policy(call("bash")).action is ALLOW
    assert policy(call("bash", command=3)).action is ALLOW
