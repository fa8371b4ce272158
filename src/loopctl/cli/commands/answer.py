"""``loop answer``: records answers, then drives what waited for them."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from loopctl.cli import completion
from loopctl.cli.driving import drive
from loopctl.cli.opening import Directory, Json, ManifestPath, commands_for, opened
from loopctl.cli.output import emit, emit_document, say
from loopctl.cli.words import shown
from loopctl.errors import LeaseHeldError, UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.cli.answers import Given
    from loopctl.domain import Decision
    from loopctl.recording import Recorded

NEEDS_HUMAN = 3

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK|DECISION",
        help="Which decision; a task stands for its one open decision, TASK:N for its Nth.",
        autocompletion=completion.task_ids,
        show_default=False,
    ),
]
Text = Annotated[
    str | None, typer.Argument(metavar="ANSWER", help="The answer.", show_default=False)
]
Approve = Annotated[
    bool | None,
    typer.Option(
        "--approve/--reject",
        help="Let a pending action happen, or refuse it; else a refusal leaves the task as it is.",
        show_default=False,
    ),
]
Budget = Annotated[
    list[str] | None,
    typer.Option(metavar="CAP=N", help="Raise a cap: usd, tokens, loops or wall_s; repeatable."),
]
AcceptGuesses = Annotated[
    bool,
    typer.Option("--accept-guesses", help="Take the best guess of every decision that has one."),
]
File = Annotated[
    str | None, typer.Option("--file", metavar="F", help="Read answers from a file; - is stdin.")
]
Template = Annotated[
    bool, typer.Option("--template", help="Print a file for --file with every open decision.")
]


def answer(
    ctx: typer.Context,
    target: Target = None,
    text: Text = None,
    approve: Approve = None,
    budget: Budget = None,
    accept_guesses: AcceptGuesses = False,
    file: File = None,
    template: Template = False,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Answer open decisions, then drive what waited for them.

    Without arguments every open decision is asked in one round.
    """
    said = Said(target, text, approve, tuple(budget or ()), accept_guesses, file, template)
    _refuse_mixture(said)
    project = opened(ctx, directory, manifest)
    if template:
        _print_template(project)
    _record_and_drive(project, _given(project, said), as_json=as_json)


@dataclass(frozen=True, slots=True)
class Said:
    """The words and options of one ``loop answer``."""

    target: str | None
    text: str | None
    approve: bool | None
    budget: tuple[str, ...]
    accept_guesses: bool
    file: str | None
    template: bool


def _refuse_mixture(said: Said) -> None:
    """One way to answer at a time, so that nothing given is passed over in silence."""
    ways = {
        "a task or decision": said.target is not None,
        "--accept-guesses": said.accept_guesses,
        "--file": said.file is not None,
        "--template": said.template,
    }
    used = [name for name, is_used in ways.items() if is_used]
    if len(used) > 1:
        raise UsageError(f"{' and '.join(used)} do not go together; give one of them")
    if said.target is None and (said.approve is not None or said.budget):
        raise UsageError("name the task or decision that is answered: loop answer T447 …")
    if said.approve is not None and (said.text or said.budget):
        raise UsageError("--approve and --reject are whole answers; give no other with them")


def _print_template(project: "Project") -> NoReturn:
    from loopctl.cli.answerfile import template
    from loopctl.report.decisions import ordered

    emit(template(ordered(project.decisions()), commands_for(project).ids()))
    raise typer.Exit


def _given(project: "Project", said: Said) -> list["Given"]:
    from loopctl.cli.answerfile import read_file
    from loopctl.cli.answers import guesses

    if said.target is not None:
        return [_one(said.target, said)]
    if said.file is not None:
        return read_file(said.file, sys.stdin)
    still_open = project.decisions()
    if not still_open:
        say("There is no open decision.")
        raise typer.Exit
    if not said.accept_guesses:
        return _asked(project, still_open)
    given = guesses(still_open)
    if not given:
        raise UsageError("no open decision has a best guess that can be taken; see `loop answer`")
    return given


def _one(target: str, said: Said) -> "Given":
    from loopctl.cli.answers import Given, read_caps
    from loopctl.domain import APPROVED, REJECTED

    caps = read_caps(said.budget)
    text = said.text or ""
    if said.approve is not None:
        text = APPROVED if said.approve else REJECTED
    if not text.strip() and not caps:
        raise UsageError(f'give the answer to {shown(target)} too: loop answer {shown(target)} "…"')
    return Given(target, text, caps or None)


def _asked(project: "Project", still_open: tuple["Decision", ...]) -> list["Given"]:
    from loopctl.cli.asking import ask_all
    from loopctl.report.decisions import ordered

    if not sys.stdin.isatty():
        commands = commands_for(project)
        lines = [
            f"{one.id}: {one.question}\n    {commands.answer(one)}" for one in ordered(still_open)
        ]
        lines.append(
            "stdin is no terminal, so nothing was asked; answer one by one as above, or with"
        )
        lines.append(f"{commands.drive('answer', '--accept-guesses')} or --file F (see --template)")
        raise UsageError("\n".join(["open decisions:", *lines]))
    given = ask_all(ordered(still_open), sys.stdin, sys.stderr)
    if not given:
        say("Nothing was answered.")
        raise typer.Exit(NEEDS_HUMAN)
    return given


def _tell(recorded: "Recorded", *, as_json: bool) -> NoReturn:
    if as_json:
        emit_document(
            {"schema": 1, "run_id": recorded.run_id, "pid": recorded.pid, "recorded": recorded.ids}
        )
    else:
        ids = ", ".join(recorded.ids)
        emit(
            f"recorded: {ids}; run {recorded.run_id}, which process {recorded.pid} drives, takes "
            "that up when a task of it has ended\n"
        )
    raise typer.Exit


def _record_and_drive(project: "Project", given: list["Given"], *, as_json: bool) -> NoReturn:
    from loopctl.cli.answers import checked

    standing = {decision.id for decision in project.decisions()}
    answers = checked(given, project.decisions(open_only=False), standing)
    recorded = project.record_beside(answers)
    if recorded is not None and not recorded.is_late:
        _tell(recorded, as_json=as_json)
    try:
        drive(
            project,
            lambda listeners, person: project.answer(
                answers if recorded is None else (), listeners, person
            ),
            as_json=as_json,
            attended=sys.stdin.isatty(),
        )
    except LeaseHeldError:
        if recorded is None:
            raise
        # The process that drove the run is still there, and has seen them with its last look.
        _tell(recorded, as_json=as_json)
