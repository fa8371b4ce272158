"""``loop defer``, ``loop fork``, ``loop propose``, ``loop todo-done``: what a worker says inside a sandbox."""

from enum import StrEnum
from typing import Annotated

import typer

from loopctl.cli.outbox import put
from loopctl.cli.words import shown
from loopctl.errors import UsageError


class Bucket(StrEnum):
    """What kind of decision a fork is; the engine may only make it stricter."""

    QUALITY = "quality"
    SCOPE = "scope"
    EXTERNAL = "external"


BestGuess = Annotated[str, typer.Option("--best-guess", metavar="TEXT", help="What you would do.")]


def defer(
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why the task cannot go on.")],
    decision_needed: Annotated[
        str, typer.Option("--decision-needed", metavar="TEXT", help="The question for a human.")
    ],
    best_guess: BestGuess = "",
) -> None:
    """In a sandbox: put the task aside with a question."""
    message = {"reason": reason, "decision_needed": decision_needed, "best_guess": best_guess}
    put("defer", message)


def fork(
    question: Annotated[str, typer.Option(metavar="TEXT", help="What has to be decided.")],
    bucket: Annotated[Bucket, typer.Option(metavar="B", help="quality, scope or external.")],
    option: Annotated[
        list[str],
        typer.Option(metavar="NAME=PROMPT", help="One way to do it; repeatable."),
    ],
    best_guess: BestGuess = "",
) -> None:
    """In a sandbox: say that a decision with options was met."""
    options = [_option(word) for word in option]
    message = {"question": question, "bucket": bucket.value, "options": options}
    put("fork", {**message, "best_guess": best_guess})


def _option(word: str) -> dict[str, str]:
    name, _, prompt = word.partition("=")
    if not name.strip():
        raise UsageError(f"--option {shown(word)}: a name is needed, as in regex=use a pattern")
    return {"name": name, "prompt": prompt}


def propose(
    title: Annotated[str, typer.Option(metavar="TEXT", help="What the task is called.")],
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="What is to be done.")],
    verify: Annotated[
        str, typer.Option(metavar="CMD", help="Fails now, and exits 0 once the task is done.")
    ],
    serves: Annotated[
        str,
        typer.Option(metavar="C", help="The open done-criterion it serves: its words or number."),
    ],
    dep: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A task that must be done before; repeatable."),
    ] = None,
) -> None:
    """In a sandbox: propose a task; it comes in only where it serves an open done-criterion."""
    message = {"title": title, "prompt": prompt, "verify_cmd": verify, "serves": serves}
    put("propose", {**message, "deps": dep or []})


def todo_done(
    summary: Annotated[str, typer.Option(metavar="TEXT", help="What it came to.")] = "",
) -> None:
    """In a sandbox: say that the todo is done, for the gate to judge.

    The todo of a command task is closed by exit 0 alone; this adds what it came to.
    """
    put("todo_done", {"summary": summary})
