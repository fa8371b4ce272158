"""``loop``: drives the tasks of the manifest to the end of the run."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli import background, completion
from loopctl.cli.driving import drive, warn_of_no_task
from loopctl.cli.group import IDS_ONLY, command_names
from loopctl.cli.opening import (
    Directory,
    Json,
    ManifestPath,
    commands_for,
    manifest_if_any,
    opened,
)
from loopctl.cli.output import emit, emit_document
from loopctl.cli.words import Goal, read_words, shown, suggestion
from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Listener, Project
    from loopctl.cli.driving import Work
    from loopctl.domain import RunOptions, Scope
    from loopctl.events import RunEnded
    from loopctl.launch import Ask

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TASK... | GOAL",
        help="Ids of tasks, or one goal in plain words; none means the whole manifest.",
        autocompletion=completion.task_ids,
        show_default=False,
    ),
]
GoalText = Annotated[
    str | None, typer.Option("--goal", metavar="TEXT", help="A goal in plain words.")
]
TestDebugFix = Annotated[
    bool,
    typer.Option("--test-debug-fix", help="Mend the code until the tests are green; no manifest."),
]
WorkerCommand = Annotated[
    str | None,
    typer.Option(
        "--command", metavar="CMD", help="With --test-debug-fix: the worker is this command."
    ),
]
Areas = Annotated[
    list[str] | None,
    typer.Option(
        "--area",
        metavar="TAG",
        help="Only tasks with this tag; repeatable.",
        autocompletion=completion.areas,
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Tasks worked on at once.")]
Worker = Annotated[
    str | None, typer.Option(metavar="W", help="The worker of tasks that name none.")
]
Mode = Annotated[
    str | None, typer.Option(metavar="M", help="autonomous or relay, for tasks that name none.")
]
Verify = Annotated[
    str | None, typer.Option(metavar="CMD", help="The verify command of every task in scope.")
]
MaxUsd = Annotated[float | None, typer.Option(min=0, metavar="X", help="US dollars for the run.")]
MaxTokens = Annotated[int | None, typer.Option(min=0, metavar="N", help="Tokens for each task.")]
MaxLoops = Annotated[int | None, typer.Option(min=0, metavar="N", help="Steps of each task.")]
MaxWall = Annotated[float | None, typer.Option(min=0, metavar="S", help="Seconds for each task.")]
WithDeps = Annotated[
    bool, typer.Option("--with-deps", help="Run unmet dependencies of the named tasks as well.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would run, in order; run and write nothing.")
]
Attended = Annotated[
    bool | None,
    typer.Option(
        "--attended/--unattended",
        help="Whether somebody can be asked; by default, where stdin is a terminal.",
        show_default=False,
    ),
]
Wip = Annotated[
    bool, typer.Option("--wip", help="Take uncommitted changes along as a snapshot below the run.")
]
Background = Annotated[
    bool, typer.Option("--bg", help="Go on in the background; say which run, and end at once.")
]
NoSandbox = Annotated[
    bool, typer.Option("--no-sandbox", help="Run commands without any confinement.")
]
Land = Annotated[
    bool, typer.Option("--land", help="Fast-forward the current branch to what landed, at the end.")
]


def run(
    ctx: typer.Context,
    words: Words = None,
    goal: GoalText = None,
    test_debug_fix: TestDebugFix = False,
    command: WorkerCommand = None,
    area: Areas = None,
    with_deps: WithDeps = False,
    dry_run: DryRun = False,
    jobs: Jobs = None,
    worker: Worker = None,
    mode: Mode = None,
    verify: Verify = None,
    max_usd: MaxUsd = None,
    max_tokens: MaxTokens = None,
    max_loops: MaxLoops = None,
    max_wall: MaxWall = None,
    attended: Attended = None,
    wip: Wip = False,
    no_sandbox: NoSandbox = False,
    land: Land = False,
    bg: Background = False,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Drive the tasks of the manifest, or a goal in plain words, to the end (the default).

    Words are ids of tasks; none means the whole manifest. One argument with white space in it is a
    goal, of which a model makes tasks. `loop run -- WORD...` reads ids only; `--goal TEXT` takes
    any text.
    """
    from loopctl.domain import RunOptions, Scope

    _check_worker(worker)
    caps = {"run_usd": max_usd, "task_tokens": max_tokens, "loops": max_loops, "wall_s": max_wall}
    overrides = {
        **_given("loop", {"jobs": jobs, "worker": worker, "mode": mode}),
        **_given("budget", caps),
        **_given("sandbox", {"confine": "off" if no_sandbox else None}),
    }
    project = opened(ctx, directory, manifest, overrides)
    asked = Asked(tuple(words or ()), goal, tuple(area or ()), with_deps)
    drawn = Drawn(test_debug_fix, command, worker, mode, verify)
    _check_drawn(drawn, asked, dry_run=dry_run)
    scope = _scope(project, ctx, asked)
    options = RunOptions(
        scope=Scope() if isinstance(scope, Goal) else scope,
        verify_cmd=_checked_command(verify),
        attended=sys.stdin.isatty() if attended is None else attended,
        wip=wip or test_debug_fix,
        land=land,
    )
    if isinstance(scope, Goal):
        _check_goal(scope, asked, dry_run=dry_run)
    if dry_run:
        _show_prospects(project, options, as_json=as_json)
    elif bg and not background.is_inside():
        if attended:
            raise UsageError("--attended and --bg: nobody can be asked in the background")
        background.send(ctx, as_json=as_json)
    else:
        drive(
            project,
            _drawing(project, options, drawn, as_json=as_json)
            if test_debug_fix
            else _work(project, options, scope.text if isinstance(scope, Goal) else None),
            as_json=as_json,
            attended=options.attended,
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the words and options say about which tasks are meant."""

    words: tuple[str, ...]
    goal: str | None
    areas: tuple[str, ...]
    with_deps: bool


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the options say about tasks that are drawn from the tree."""

    test_debug_fix: bool
    command: str | None
    worker: str | None
    mode: str | None
    verify: str | None


def _check_drawn(drawn: Drawn, asked: Asked, *, dry_run: bool) -> None:
    """Refuse what does not go together with tasks that are drawn from the tree."""
    if not drawn.test_debug_fix:
        if drawn.command is not None:
            raise UsageError("--command says what works on --test-debug-fix; give both")
        return
    if asked.words or asked.goal is not None or asked.areas or asked.with_deps:
        raise UsageError("--test-debug-fix makes its own task; leave ids, goals and --area out")
    if dry_run:
        raise UsageError("--dry-run runs nothing, and only a run of the tests tells what is red")
    is_command = drawn.worker == "command"
    if drawn.command is None and is_command:
        raise UsageError("--worker command: say with --command what it runs")
    if drawn.command is not None and (
        not drawn.command.strip() or (drawn.worker is not None and not is_command)
    ):
        raise UsageError(
            "--command is what the worker command runs; name no other, and no empty one"
        )
    for name, text in (("--verify", drawn.verify), ("--command", drawn.command)):
        try:
            (text or "").encode()
        except UnicodeEncodeError as exc:
            raise UsageError(f"{name}: it is no UTF-8 text; type it again") from exc


def _drawing(project: "Project", options: "RunOptions", drawn: Drawn, *, as_json: bool) -> "Work":
    from loopctl.cli.mending import print_green, tell
    from loopctl.domain import Mode
    from loopctl.mending import Mending

    mode = Mode(drawn.mode) if drawn.mode is not None else None
    source = Mending(options.verify_cmd, drawn.command, mode, tell)

    def work(listeners: "Sequence[Listener]", person: "Ask | None") -> "RunEnded":
        ended = project.draw(source, options, listeners, person)
        if ended is None:
            print_green(as_json=as_json)
            raise typer.Exit
        return ended

    return work


def _work(project: "Project", options: "RunOptions", goal: str | None) -> "Work":
    if goal is None:
        return lambda listeners, person: project.run(options, listeners, person)
    from loopctl.cli.aiming import aim_of

    aim = aim_of(goal, attended=options.attended)
    return lambda listeners, person: project.pursue(aim, options, listeners, person)


def _check_goal(goal: Goal, asked: "Asked", *, dry_run: bool) -> None:
    from loopctl.sources.kickoff import check_goal

    check_goal(goal.text)
    if asked.areas or asked.with_deps:
        raise UsageError("a goal drives the whole manifest; leave --area and --with-deps out")
    if dry_run:
        raise UsageError(
            "--dry-run asks no model, and only a model makes tasks of a goal; leave it out"
        )


def _given(section: str, values: Mapping[str, object]) -> dict[str, object]:
    """The settings of a section that the command line gives, by dotted name."""
    return {f"{section}.{name}": value for name, value in values.items() if value is not None}


def _check_worker(worker: str | None) -> None:
    from loopctl.manifest.keys import BUILT_IN_WORKERS

    if worker is not None and worker not in BUILT_IN_WORKERS:
        near = suggestion(worker, BUILT_IN_WORKERS)
        known = "" if near else f": {', '.join(sorted(BUILT_IN_WORKERS))}"
        raise UsageError(f"--worker {shown(worker)} is no worker{near or known}")


def _checked_command(verify: str | None) -> str | None:
    if verify is not None and not verify.strip():
        raise UsageError("--verify '': an empty command verifies nothing")
    return verify


def _scope(project: "Project", ctx: typer.Context, asked: Asked) -> "Scope | Goal":
    from loopctl.domain import Scope

    has_ids = bool(asked.words or asked.areas)
    manifest = manifest_if_any(project) if has_ids else None
    tasks = manifest.tasks if manifest else ()
    read = read_words(
        asked.words,
        commands=command_names(),
        ids=tuple(task.id for task in tasks) if manifest else None,
        goal=asked.goal,
        ids_only=ctx.meta[IDS_ONLY],
    )
    if isinstance(read, Goal):
        return read
    known = {tag for task in tasks for tag in task.area}
    for area in asked.areas:
        if area not in known:
            raise UsageError(f"--area {shown(area)}: no task has this tag{suggestion(area, known)}")
    return Scope(ids=read.ids, areas=asked.areas, with_deps=asked.with_deps)


def _show_prospects(project: "Project", options: "RunOptions", *, as_json: bool) -> None:
    from loopctl.report.listing import prospects_blocks, prospects_document, ways_on
    from loopctl.report.plain import to_plain

    prospects, waits = project.prospects(options)
    if not prospects and not waits and options.scope.is_whole:
        warn_of_no_task(project)
    if as_json:
        emit_document(prospects_document(prospects, waits))
        return
    ways = ways_on(project.decisions(), waits, commands_for(project))
    emit(to_plain(prospects_blocks(prospects, waits, ways)))
