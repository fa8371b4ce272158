import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from typer.testing import CliRunner

from loopctl.cli.app import build

Shell = Callable[..., "CompletedProcess[str]"]


def say(*argv: str) -> tuple[int, str]:
    result = CliRunner().invoke(build(argv), list(argv), prog_name="loop")
    return result.exit_code, result.output


def messages(outbox: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(outbox.iterdir())]


@pytest.fixture
def outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "outbox"
    folder.mkdir()
    monkeypatch.setenv("LOOP_OUTBOX", str(folder))
    return folder


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["defer", "--reason", "no key", "--decision-needed", "Which key?"],
            {
                "type": "defer",
                "reason": "no key",
                "decision_needed": "Which key?",
                "best_guess": "",
            },
        ),
        (
            [
                *("fork", "--question", "How?", "--bucket", "quality", "--best-guess", "regex"),
                *("--option", "regex=use = a pattern", "--option", "parser"),
            ],
            {
                "type": "fork",
                "question": "How?",
                "bucket": "quality",
                "options": [
                    {"name": "regex", "prompt": "use = a pattern"},
                    {"name": "parser", "prompt": ""},
                ],
                "best_guess": "regex",
            },
        ),
        (["todo-done"], {"type": "todo_done", "summary": ""}),
        (["todo-done", "--summary", "it is in"], {"type": "todo_done", "summary": "it is in"}),
    ],
)
def test_a_worker_s_word_is_one_message(
    outbox: Path, argv: list[str], message: dict[str, Any]
) -> None:
    assert say(*argv) == (0, "")
    assert messages(outbox) == [message]


def test_messages_are_read_in_the_order_in_which_they_were_said(outbox: Path) -> None:
    for number in range(5):
        say("todo-done", "--summary", str(number))
    assert [message["summary"] for message in messages(outbox)] == list("01234")


@pytest.mark.parametrize(
    "argv",
    [
        ["defer", "--reason", "x"],
        ["defer"],
        ["fork", "--question", "x", "--bucket", "other", "--option", "a"],
        ["fork", "--question", "x", "--bucket", "scope"],
        ["fork", "--question", "x", "--bucket", "scope", "--option", "=prompt"],
    ],
)
def test_a_message_that_lacks_something_is_not_sent(outbox: Path, argv: list[str]) -> None:
    assert say(*argv)[0] == 2
    assert messages(outbox) == []


@pytest.mark.parametrize(
    "argv", [["todo-done"], ["defer", "--reason", "x", "--decision-needed", "y"]]
)
def test_outside_a_sandbox_there_is_nobody_to_tell(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOP_OUTBOX", raising=False)
    code, output = say(*argv)
    assert code == 2
    assert "LOOP_OUTBOX is not set" in output


def test_an_outbox_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOP_OUTBOX", str(tmp_path / "gone"))
    code, output = say("todo-done")
    assert code == 2
    assert "cannot be written" in output


def test_a_real_process_needs_no_checkout(shell: Shell, outbox: Path) -> None:
    done = shell("todo-done", env={"LOOP_OUTBOX": str(outbox)})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert messages(outbox) == [{"type": "todo_done", "summary": ""}]
