"""``loop show``: the story of one task, over all runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from loopctl.cli import completion
from loopctl.cli.opening import (
    Directory,
    Json,
    ManifestPath,
    commands_for,
    manifest_if_any,
    opened,
)
from loopctl.cli.output import emit, emit_document
from loopctl.cli.words import shown, suggestion
from loopctl.domain import TaskId
from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Project
    from loopctl.report.story import Story

TaskWord = Annotated[
    str,
    typer.Argument(metavar="TASK", help="A task's id.", autocompletion=completion.task_ids),
]


def show(
    ctx: typer.Context,
    task: TaskWord,
    manifest: ManifestPath = None,
    as_json: Json = False,
    directory: Directory = None,
) -> None:
    """Show the story of a task over all runs.

    Its entry, status, steps, gates, landings, decisions and kept trees.
    """
    from loopctl.report.plain import to_plain
    from loopctl.report.story import story_blocks, story_document

    project = opened(ctx, directory, manifest)
    story = _story(project, task)
    if as_json:
        emit_document(story_document(story))
    else:
        emit(to_plain(story_blocks(story, commands_for(project))))


def _story(project: "Project", task: str) -> "Story":
    from loopctl.cli.lines import event_line
    from loopctl.report.fold import summarize
    from loopctl.report.story import Chapter, Story

    manifest = manifest_if_any(project)
    tasks = {one.id: one for one in (manifest.tasks if manifest else ())}
    entry = next((one for key, one in tasks.items() if key == task), None)
    chapters = []
    for record in reversed(project.runs()):
        events = tuple(project.events(record.id))
        own = tuple(event_line(event) for event in events if event.task == task)
        summary = summarize(events).task(task)
        if own and summary:
            chapters.append(Chapter(record.id, own, summary))
    if entry is None and not chapters:
        raise UsageError(f"{shown(task)} is no task of the manifest{suggestion(task, tasks)}")
    decisions = tuple(one for one in project.decisions(open_only=False) if one.task == task)
    refs = tuple(one.ref for one in project.kept() if one.ref.split("/")[3:4] == [task])
    return Story(task, project.title(TaskId(task)), entry, tuple(chapters), decisions, refs)
