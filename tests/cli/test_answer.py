import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from loopctl.domain import Decision, DecisionKind
from loopctl.given import Answer

Loop = Callable[..., Result]


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["T447", "use SAML"], Answer("T447.1", "use SAML")),
        (["T447.1", "use SAML"], Answer("T447.1", "use SAML")),
        (["T447", "--", "-1"], Answer("T447.1", "-1")),
        (
            ["T447", "go", "--budget", "usd=2", "--budget", "loops=9"],
            Answer("T447.1", "go", {"usd": 2.0, "loops": 9.0}),
        ),
        (["--accept-guesses"], Answer("T447.1", "use OAuth")),
        (["T447", "--reject"], Answer("T447.1", "reject")),
    ],
)
def test_an_answer_is_recorded_and_driven(
    loop: Loop, project: Any, argv: list[str], answer: Answer
) -> None:
    result = loop("answer", *argv)
    assert project.calls == [("answer", (answer,))]
    assert result.exit_code == 3
    assert result.stdout.startswith("Run ")


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["T440", "again"], "T440.1 was answered already at 2026-11-30T18:00:00Z: 'all'"),
        (["T448", "x"], "'T448' names no decision; did you mean 'T447'?"),
        (["T447"], "give the answer"),
        (["T447", "--approve"], "T447.1 is no approval"),
        (["--approve"], "name the task or decision"),
        (["--budget", "usd=2"], "name the task or decision"),
        (["T447", "x", "--budget", "usd"], "--budget 'usd'"),
        (["T447", "x", "--approve"], "whole answers"),
        (["T447", "x", "--accept-guesses"], "do not go together"),
        (["--file", "f", "--accept-guesses"], "do not go together"),
        (["--file", "nowhere.toml"], "No such file"),
    ],
)
def test_what_does_not_fit_records_nothing(
    loop: Loop, project: Any, argv: list[str], part: str
) -> None:
    result = loop("answer", *argv)
    assert result.exit_code == 2
    assert part in result.stderr
    assert result.stdout == ""
    assert project.calls == []


def test_without_a_terminal_the_open_ones_are_listed_with_their_commands(
    loop: Loop, project: Any
) -> None:
    result = loop("answer")
    assert result.exit_code == 2
    assert "T447.1: Which provider?" in result.stderr
    assert "loop answer T447.1 'use OAuth'" in result.stderr
    assert "--accept-guesses" in result.stderr
    assert project.calls == []


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "answers"), [("use SAML\n", "use SAML"), ("=\n", "use OAuth"), ("\n", None)]
)
def test_at_a_terminal_every_open_decision_is_asked(
    loop: Loop, project: Any, typed: str, answers: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.testing.make_input_stream", lambda *_: Terminal(typed.encode()))
    result = loop("answer")
    assert "(1/1) T447.1 [external] Which provider?" in result.stderr
    expected = [("answer", (Answer("T447.1", answers),))] if answers else []
    assert project.calls == expected
    assert result.exit_code == 3


def test_no_open_decision_is_no_error(loop: Loop, project: Any) -> None:
    project.asked.clear()
    result = loop("answer")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no open decision" in result.stderr


def test_template_is_filled_in_and_read_back(loop: Loop, project: Any, checkout: Path) -> None:
    template = loop("answer", "--template")
    assert template.exit_code == 0
    file = checkout / "answers.toml"
    file.write_text(template.stdout.replace('answer = ""', 'answer = "use SAML"'))
    loop("answer", "--file", "answers.toml")
    assert project.calls == [("answer", (Answer("T447.1", "use SAML"),))]


def test_answers_come_from_stdin(loop: Loop, project: Any) -> None:
    text = '[[answer]]\nid = "T447"\nanswer = "use SAML"\n'
    loop("answer", "--file", "-", stdin=text)
    assert project.calls == [("answer", (Answer("T447.1", "use SAML"),))]


def test_one_bad_answer_of_a_file_keeps_all_from_being_recorded(loop: Loop, project: Any) -> None:
    text = '[[answer]]\nid = "T447"\nanswer = "x"\n[[answer]]\nid = "T440.1"\nanswer = "y"\n'
    result = loop("answer", "--file", "-", stdin=text)
    assert result.exit_code == 2
    assert "T440.1 was answered already" in result.stderr
    assert project.calls == []


def test_an_approval_is_approved(loop: Loop, project: Any) -> None:
    project.asked.append(Decision("T501.1", "T501", "r", DecisionKind.APPROVAL, "Push?"))
    loop("answer", "T501", "--approve")
    assert project.calls == [("answer", (Answer("T501.1", "approve"),))]


def test_json_of_an_answer_is_the_run_s_document(loop: Loop) -> None:
    assert json.loads(loop("answer", "T447", "x", "--json").stdout)["schema"] == 1
