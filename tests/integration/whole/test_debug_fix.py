"""``loop --test-debug-fix`` with the worker that asks a model: wrong edits first, then the right one."""

import shlex
import sys
from collections.abc import Callable
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest
from loopctl.testing.tinybugs import BUGS, RUNNER, TinyBug

VERIFY = f"{shlex.quote(sys.executable)} -SB tests/run.py"


class Mind:
    """Writes one text after the other, and says each time that it is done."""

    def __init__(self, *writes: tuple[str, str]) -> None:
        self.left = list(writes)
        self.prompts: list[str] = []

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        self.prompts.append("\n".join(str(message["content"]) for message in request.messages))
        path, text = self.left.pop(0)
        return ScriptedReply(
            calls=(
                ScriptedCall("write_file", {"path": path, "content": text}),
                ScriptedCall("todo_done", {"summary": "mended"}),
            )
        )


FEW = BUGS[5:7]
"""Those that are mended in every run of the tests; each asks a process of its own."""


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=() if bug in FEW else pytest.mark.slow) for bug in BUGS],
)
def test_a_model_lands_the_right_mending_alone(whole: Callable[..., Any], bug: TinyBug) -> None:
    module, tests = f"{bug.name}.py", f"tests/test_{bug.name}.py"
    mind = Mind((module, bug.miss), (tests, "\n"), (module, bug.right))
    # What a refused edit has left is undone beside the next one.
    mind.left[2:2] = [(tests, bug.tests)]
    one = whole(mind)
    (one.root / "tasks" / "ACTIVE.toml").unlink()
    for path, text in {**bug.files, "tests/run.py": RUNNER}.items():
        (one.root / path).parent.mkdir(exist_ok=True)
        (one.root / path).write_text(text)
    one.commit()
    ended = one.run("--test-debug-fix", "--verify", VERIFY)
    assert ended.code == 0, ended.err
    assert one.git("diff", "--name-only", "main", "loop/integration") == f"{module}\n"
    assert one.on_branch(module) == bug.right
    assert mind.left == []
    assert f"Begin with: {tests}::test_{bug.name}_" in mind.prompts[0]
