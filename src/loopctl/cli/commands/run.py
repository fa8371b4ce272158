"""``loop``: drives the tasks of the manifest to the end of the run."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli import background, completion
from loopctl.cli.drawing import Drawn, drawing
from loopctl.cli.driving import drive, tell_of_cut_short, warn_of_no_task
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
    from loopctl.bootstrap import Project
    from loopctl.cli.driving import Work
    from loopctl.domain import RunOptions, Scope

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
        "--command",
        metavar="CMD",
        help="With --test-debug-fix or --evolve: the worker is this command.",
    ),
]
Evolve = Annotated[
    bool, typer.Option("--evolve", help="Drive tasks found in recent history; no manifest.")
]
Commits = Annotated[
    int | None,
    typer.Option("--commits", min=1, metavar="N", help="How far --evolve looks back; default 50."),
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
    evolve: Evolve = False,
    commits: Commits = None,
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
    drawn = Drawn(test_debug_fix, evolve, commits, command, worker, mode, dry_run=dry_run)
    drawn.check(verify, has_others=bool(words or area or with_deps) or goal is not None)
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
    elif not drawn and not dry_run and not background.is_inside():
        tell_of_cut_short(project)
    if dry_run and not drawn:
        _show_prospects(project, options, as_json=as_json)
    elif bg and not background.is_inside():
        if attended:
            raise UsageError("--attended and --bg: nobody can be asked in the background")
        background.send(ctx, as_json=as_json)
    else:
        drive(
            project,
            drawing(project, options, drawn, as_json=as_json)
            if drawn
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
