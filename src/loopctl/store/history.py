"""What earlier runs have left to know, read from their events: results, summaries, decisions."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loopctl.contextports import Passage
from loopctl.events import (
    AnyEvent,
    DecisionAnswered,
    DecisionRaised,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
    TodoClosed,
    parse,
)
from loopctl.store.eventlog import FILE_NAME

RUNS: Final = 200
"""The newest ones; older ones have no more to say."""

TEXT_CHARS: Final = 2000
"""Of one result, question or answer."""

_KEY: Final = "run:"
_TELLING: Final = tuple(
    f'"{kind.model_fields["type"].default}"'.encode()
    for kind in (
        TaskClaimed,
        TodoClosed,
        TaskLanded,
        TaskStopped,
        DecisionRaised,
        DecisionAnswered,
    )
)


class RunHistory:
    """The port ``History`` over the folders of runs.

    Args:
        runs: The folder of all runs; may be missing.
        current: The run that is driven now, of which nothing is told.
    """

    def __init__(self, runs: Path, current: str) -> None:
        self._runs = runs
        self._current = current

    def versions(self) -> Mapping[str, str]:
        """Return the runs that are over, key to version; looks at their files' sizes alone."""
        found = {}
        for path in sorted(self._runs.glob(f"*/{FILE_NAME}"), reverse=True)[: RUNS + 1]:
            run_id = path.parent.name
            try:
                stat = path.stat()
            except OSError:
                continue
            if run_id != self._current:
                found[_KEY + run_id] = f"{stat.st_size}:{stat.st_mtime_ns}"
        return found

    def passages(self, key: str) -> tuple[Passage, ...]:
        """Return what one run says, a passage of any length for each of its tasks."""
        run_id = key.removeprefix(_KEY)
        try:
            lines = (self._runs / run_id / FILE_NAME).read_bytes().splitlines()
        except OSError:
            return ()
        told: dict[str, list[str]] = defaultdict(list)
        titles: dict[str, str] = {}
        for line in lines:
            event = _read(line)
            if event is None or event.task is None:
                continue
            if isinstance(event, TaskClaimed):
                titles[event.task] = event.title
            told[event.task] += [text[:TEXT_CHARS] for text in _told(event)]
        return tuple(
            Passage(f"run {run_id}, task {task}", "\n".join([titles.get(task, task), *texts]))
            for task, texts in told.items()
            if texts
        )


def _read(line: bytes) -> AnyEvent | None:
    """Return the event, where it is one that tells something."""
    if not any(kind in line for kind in _TELLING):
        return None
    try:
        return parse(line)
    except ValueError:
        return None


def _told(event: AnyEvent) -> tuple[str, ...]:
    match event:
        case TodoClosed(todo=todo, summary=summary) if summary:
            return (f"Done: {todo}: {summary}",)
        case TaskLanded(result=result) if result:
            return (f"Landed: {result}",)
        case TaskStopped(axis=axis, reason=reason, result=result):
            ended = f"Ended: {axis.value}, {reason}"
            return (f"{ended}: {result}" if result else ended,)
        case DecisionRaised(question=question, best_guess=guess):
            return (f"Asked: {question}", *((f"Guessed: {guess}",) if guess else ()))
        case DecisionAnswered(answer=answer):
            return (f"Answered: {answer}",)
        case _:
            return ()
