"""The refill brake: which of the tasks that workers propose come into the manifest.

A proposal must name a done-criterion of the goal that is still open, be new, and leave the tasks
that were ever added so within their cap. The cap counts the manifest's own tasks by their tag, so
that it holds over any number of runs.
"""

import queue
from collections.abc import Callable, Iterable
from typing import Final

from loopctl.domain import Addition, Criterion, Goal, Manifest, Task, TaskId
from loopctl.errors import ManifestError
from loopctl.events import AnyEvent
from loopctl.suggestions import ProposalJudged, TaskProposed

REFILL: Final = "refill"
"""The tag of tasks that workers have proposed."""


TRIES: Final = 2
"""For each task that may come in, so many verify commands are tried: each may take its time."""


class Refill:
    """Keeps what was proposed until the driver's thread judges it.

    Args:
        cap: So many tasks of a manifest may carry the tag.
        is_open: Says whether a criterion is not known to be met.
        why_unfit: Tries a verify command before any work, and says why it cannot verify it;
            empty where it can.
    """

    def __init__(
        self,
        goal: Goal,
        cap: int,
        is_open: Callable[[Criterion], bool],
        why_unfit: Callable[[str], str] = lambda _command: "",
    ) -> None:
        self._goal = goal
        self._cap = cap
        self._is_open = is_open
        self._why_unfit = why_unfit
        self._tries_left = TRIES * cap
        self._proposed: queue.SimpleQueue[TaskProposed] = queue.SimpleQueue()

    def listen(self, event: AnyEvent) -> None:
        """Keep a proposal; any thread may call it with any event."""
        if isinstance(event, TaskProposed):
            self._proposed.put(event)

    def recall(self, events: Iterable[AnyEvent]) -> None:
        """Keep what a process that died has heard and not judged."""
        left: dict[tuple[str | None, str], TaskProposed] = {}
        for event in events:
            if isinstance(event, TaskProposed):
                left[event.task, event.title] = event
            elif isinstance(event, ProposalJudged):
                left.pop((event.task, event.title), None)
        for proposed in left.values():
            self._proposed.put(proposed)

    def judge(
        self, manifest: Callable[[], Manifest], extend: Callable[[Addition], object]
    ) -> list[ProposalJudged]:
        """Return how each kept proposal was judged; those that are taken are in the manifest.

        Args:
            manifest: Returns the manifest as it is now.
            extend: Writes an addition to it, or raises ``ManifestError``.
        """
        judged: list[ProposalJudged] = []
        while not self._proposed.empty():
            proposed = self._proposed.get()
            now = manifest()
            why = self._why_not(proposed, now)
            added = ""
            if not why:
                task = _task(proposed, now)
                try:
                    extend(Addition(tasks=(task,)))
                    added = task.id
                except ManifestError as exc:
                    why = " ".join(str(exc).split())
            judged.append(
                ProposalJudged(
                    task=proposed.task,
                    title=proposed.title,
                    serves=proposed.serves,
                    added=added,
                    reason=why,
                )
            )
        return judged

    def _why_not(self, proposed: TaskProposed, manifest: Manifest) -> str:
        if not self._goal.done_when:
            return "the goal has no done-criterion that a task could serve"
        criterion = _named(proposed.serves, self._goal)
        if criterion is None:
            return "it names no done-criterion of the goal"
        if any(_line(task.title) == _line(proposed.title) for task in manifest.tasks):
            return "the manifest has a task of that title"
        if sum(REFILL in task.area for task in manifest.tasks) >= self._cap:
            return f"the manifest has {self._cap} proposed tasks already (loop.refills)"
        if not self._is_open(criterion):
            return "the done-criterion that it names is met"
        if self._tries_left <= 0:
            return (
                f"{TRIES * self._cap} verify commands of proposals were tried in this run already"
            )
        self._tries_left -= 1
        why = self._why_unfit(proposed.verify_cmd)
        return f"its verify_cmd `{proposed.verify_cmd}` {why}" if why else ""


def _named(words: str, goal: Goal) -> Criterion | None:
    """Return the criterion that is named: by its words, or by its number from 1."""
    for number, criterion in enumerate(goal.done_when, 1):
        text = criterion.check if criterion.check is not None else criterion.criterion
        if _line(words) in {_line(text or ""), str(number)}:
            return criterion
    return None


def _line(text: str) -> str:
    return " ".join(text.split()).casefold()


def _task(proposed: TaskProposed, manifest: Manifest) -> Task:
    taken = {task.id for task in manifest.tasks}
    number = next(n for n in range(1, len(taken) + 2) if TaskId(f"R{n}") not in taken)
    return Task(
        id=TaskId(f"R{number}"),
        title=proposed.title,
        prompt=proposed.prompt,
        verify_cmd=proposed.verify_cmd,
        deps=tuple(TaskId(dep) for dep in proposed.deps),
        area=(REFILL,),
    )
