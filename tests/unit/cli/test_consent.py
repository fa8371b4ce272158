import contextlib
import io
import os
import threading
from collections.abc import Iterator
from typing import TextIO

import pytest

from loopctl.cli.consent import TerminalConsent
from loopctl.domain import APPROVED, REJECTED, TIMED_OUT, DecisionDraft, DecisionKind
from loopctl.errors import CancelledError
from loopctl.testing import StillClock

DRAFT = DecisionDraft(
    DecisionKind.APPROVAL, "May T1 (a\x1b[2Jtitle) be worked on?", reason="[policy] approve has x"
)


class Screen(io.StringIO):
    """What is shown; tells when an answer is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.prompted = threading.Semaphore(0)

    def write(self, text: str) -> int:
        written = super().write(text)
        if text == "> ":
            self.prompted.release()
        return written


class Typist:
    """The two ends of a standard input."""

    def __init__(self, read: int, write: int) -> None:
        self.stdin: TextIO = os.fdopen(read, encoding="utf-8")
        self._write = write

    def type(self, text: bytes) -> None:
        os.write(self._write, text)

    def hang_up(self) -> None:
        if self._write >= 0:
            os.close(self._write)
        self._write = -1

    def close(self) -> None:
        self.hang_up()
        self.stdin.close()


@pytest.fixture
def pipe() -> Iterator[Typist]:
    typist = Typist(*os.pipe())
    yield typist
    typist.close()


@pytest.fixture
def terminal() -> Iterator[Typist]:
    master, slave = os.openpty()
    typist = Typist(slave, master)
    yield typist
    typist.close()


class HurriedClock(StillClock):
    """A minute passes whenever somebody looks."""

    def monotonic(self) -> float:
        self.pass_time(60)
        return super().monotonic()


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (b"approve\n", APPROVED),
        (b"yes\n", APPROVED),
        (b" Y \r\n", APPROVED),
        (b"reject\n", REJECTED),
        (b"n\n", REJECTED),
        (b"maybe\nwhat?\nno\n", REJECTED),
        (b"\xff\xfe\nyes\n", APPROVED),
        (b"\nyes\n", None),
        (b"", None),
        (b"yes", None),
    ],
)
def test_only_a_whole_word_of_consent_approves(
    pipe: Typist, typed: bytes, answer: str | None
) -> None:
    pipe.type(typed)
    pipe.hang_up()
    assert TerminalConsent(pipe.stdin, io.StringIO()).ask(DRAFT, 60) == answer


def test_question_shows_why_and_how_to_answer_without_control_codes(pipe: Typist) -> None:
    screen = io.StringIO()
    pipe.type(b"hm\nyes\n")
    TerminalConsent(pipe.stdin, screen, clock=StillClock()).ask(DRAFT, 3600)
    shown = screen.getvalue()
    assert "[approval] May T1 (a" in shown
    assert "\x1b" not in shown
    assert "    why: [policy] approve has x\n    answer with: approve or reject\n" in shown
    assert "    3600 seconds; an empty line leaves it for later\n> " in shown
    assert shown.endswith("> answer with: approve or reject\n> ")


def test_time_that_is_up_is_no_answer(pipe: Typist) -> None:
    screen = io.StringIO()
    asked = TerminalConsent(pipe.stdin, screen, clock=HurriedClock())
    assert asked.ask(DRAFT, 150) == TIMED_OUT
    assert "no answer in time" in screen.getvalue()


def test_end_of_input_is_remembered(pipe: Typist) -> None:
    screen = io.StringIO()
    asked = TerminalConsent(pipe.stdin, screen)
    pipe.hang_up()
    assert asked.ask(DRAFT, 60) is None
    shown = screen.getvalue()
    assert asked.ask(DRAFT, 60) is None
    assert screen.getvalue() == shown


def test_input_that_is_closed_or_has_no_file_is_nobody() -> None:
    assert TerminalConsent(None, io.StringIO()).ask(DRAFT, 60) is None
    assert TerminalConsent(io.StringIO("yes\n"), io.StringIO()).ask(DRAFT, 60) is None


def test_run_that_is_asked_to_stop_ends_the_question(pipe: Typist) -> None:
    cancel, screen = threading.Event(), Screen()
    faults: list[CancelledError] = []

    def ask() -> None:
        try:
            TerminalConsent(pipe.stdin, screen, cancel=cancel).ask(DRAFT, 3600)
        except CancelledError as error:
            faults.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert screen.prompted.acquire(timeout=60)
    cancel.set()
    thread.join(60)
    assert len(faults) == 1


def test_what_was_typed_before_the_question_does_not_answer_it(terminal: Typist) -> None:
    screen = Screen()
    answers: list[str | None] = []
    asked = TerminalConsent(terminal.stdin, screen)
    terminal.type(b"approve\n")
    thread = threading.Thread(target=lambda: answers.append(asked.ask(DRAFT, 3600)))
    thread.start()
    assert screen.prompted.acquire(timeout=60)
    terminal.type(b"reject\n")
    thread.join(60)
    assert answers == [REJECTED]


def test_end_of_file_at_a_terminal_leaves_one_question_alone(terminal: Typist) -> None:
    screen = Screen()
    answers: list[str | None] = []
    asked = TerminalConsent(terminal.stdin, screen)

    def ask() -> None:
        answers.extend(asked.ask(DRAFT, 3600) for _ in range(2))

    thread = threading.Thread(target=ask)
    thread.start()
    assert screen.prompted.acquire(timeout=60)
    terminal.type(b"\x04")
    assert screen.prompted.acquire(timeout=60)
    terminal.type(b"approve\n")
    thread.join(60)
    assert answers == [None, APPROVED]


def test_one_question_is_asked_at_a_time(pipe: Typist) -> None:
    screen = Screen()
    asked = TerminalConsent(pipe.stdin, screen)
    answers: dict[str, str | None] = {}

    def ask(name: str) -> None:
        draft = DecisionDraft(DecisionKind.SCOPE, f"Which way, {name}?", options=("a", "b"))
        answers[name] = asked.ask(draft, 3600)

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("T1", "T2")]
    for thread in threads:
        thread.start()
    assert screen.prompted.acquire(timeout=60)
    first = "T1" if "T1" in screen.getvalue() else "T2"
    assert screen.getvalue().count("Which way") == 1
    pipe.type(b"2\n")
    assert screen.prompted.acquire(timeout=60)
    pipe.type(b"both\n")
    for thread in threads:
        thread.join(60)
    second = {"T1": "T2", "T2": "T1"}[first]
    assert answers == {first: "b", second: "both"}


def test_others_are_quiet_while_somebody_is_asked(pipe: Typist) -> None:
    steps: list[str] = []

    @contextlib.contextmanager
    def quiet() -> Iterator[None]:
        steps.append("quiet")
        yield
        steps.append("on")

    pipe.type(b"yes\n")
    assert TerminalConsent(pipe.stdin, io.StringIO(), quiet=quiet).ask(DRAFT, 60) == APPROVED
    assert steps == ["quiet", "on"]
