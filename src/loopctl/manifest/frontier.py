"""The frontier: which tasks can run now, in which order, and what each of the others waits for.

A task is *ready* when its status is ``todo`` and all its dependencies are ``done``. Nothing but
``done`` satisfies a dependency: what waits for an abandoned task says so.
"""

import heapq
from collections.abc import Iterable

from loopctl.domain import Manifest, Scope, Task, TaskId, TaskStatus, Wait
from loopctl.errors import UsageError
from loopctl.tomlsource.words import near, show

_TO_DO = frozenset({TaskStatus.TODO, TaskStatus.IN_PROGRESS})
"""What a run may begin; ``in-progress`` at its start was left by a crash."""


class Frontier:
    """The tasks of a scope and how they stand, kept up to date one status at a time.

    Args:
        manifest: n tasks, e edges, acyclic.
        scope: What is asked for.

    Raises:
        UsageError: The scope names an id or a tag that the manifest does not have.
    """

    def __init__(self, manifest: Manifest, scope: Scope | None = None) -> None:
        self._scope = scope or Scope()
        self._tasks = manifest.tasks
        self._index = {task.id: index for index, task in enumerate(manifest.tasks)}
        self._status: list[TaskStatus] = [
            TaskStatus.TODO if task.status is TaskStatus.IN_PROGRESS else task.status
            for task in manifest.tasks
        ]
        self._deps = [
            tuple({self._index[dep]: None for dep in task.deps}) for task in manifest.tasks
        ]
        self._dependents: list[list[int]] = [[] for _ in manifest.tasks]
        for index, deps in enumerate(self._deps):
            for dep in deps:
                self._dependents[dep].append(index)
        done = TaskStatus.DONE
        self._unmet = [
            sum(self._status[dep] is not done for dep in deps) if deps else 0 for deps in self._deps
        ]
        self._members = _members(self._scope, self._tasks, self._status, self._deps, self._index)
        for task_id in self._scope.ids:
            index = self._index[task_id]
            if self._status[index] is not done:
                self._status[index] = TaskStatus.TODO
        self._heap = [
            (-self._tasks[index].priority, index)
            for index in self._members
            if self._is_ready(index)
        ]
        heapq.heapify(self._heap)
        self._queued = {index for _, index in self._heap}

    def ready(self, limit: int | None = None) -> tuple[Task, ...]:
        """Return the tasks that can run now, the first to run first, at most ``limit`` of them.

        Nothing is taken away; :meth:`mark` a task ``in-progress`` when its work begins. O(k log n)
        for k tasks.
        """
        taken: list[tuple[int, int]] = []
        while self._heap and (limit is None or len(taken) < limit):
            entry = heapq.heappop(self._heap)
            if self._is_ready(entry[1]):
                taken.append(entry)
            else:
                self._queued.discard(entry[1])
        for entry in taken:
            heapq.heappush(self._heap, entry)
        return tuple(self._tasks[index] for _, index in taken)

    def next(self) -> Task | None:
        """Return the one task to begin now, ``None`` when the frontier is empty."""
        return next(iter(self.ready(1)), None)

    def mark(self, task: TaskId, status: TaskStatus) -> None:
        """Take over a task's new status. O(d log n) for d tasks that depend on it."""
        index = self._index[task]
        was_done = self._status[index] is TaskStatus.DONE
        self._status[index] = status
        is_done = status is TaskStatus.DONE
        if was_done != is_done:
            change = -1 if is_done else 1
            for dependent in self._dependents[index]:
                self._unmet[dependent] += change
                self._queue(dependent)
        self._queue(index)

    def status(self, task: TaskId) -> TaskStatus:
        """Return how a task stands: as the scope sees it at first, then as it was marked."""
        return self._status[self._index[task]]

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks in scope, in the order of the manifest."""
        return tuple(self._tasks[index] for index in sorted(self._members))

    def waits(self) -> tuple[Wait, ...]:
        """Return the one thing that each task left in scope waits for, in manifest order.

        Tasks that are done or abandoned are not left. O(n + e).
        """
        ended = (TaskStatus.DONE, TaskStatus.ABANDONED)
        return tuple(
            Wait(self._tasks[index].id, self._reason(index))
            for index in sorted(self._members)
            if self._status[index] not in ended
        )

    def unmet(self, task: TaskId) -> tuple[TaskId, ...]:
        """Return the dependencies of a task that are not done, in its own order."""
        return tuple(
            self._tasks[dep].id
            for dep in self._deps[self._index[task]]
            if self._status[dep] is not TaskStatus.DONE
        )

    def _is_ready(self, index: int) -> bool:
        return self._status[index] is TaskStatus.TODO and self._unmet[index] == 0

    def _queue(self, index: int) -> None:
        if index in self._members and index not in self._queued and self._is_ready(index):
            self._queued.add(index)
            heapq.heappush(self._heap, (-self._tasks[index].priority, index))

    def _reason(self, index: int) -> str:
        status = self._status[index]
        if status is not TaskStatus.TODO:
            return _own_reason(status, self._tasks[index].id)
        unmet = next((d for d in self._deps[index] if self._status[d] is not TaskStatus.DONE), None)
        if unmet is None:
            return "ready: the run ended before its turn"
        dep, dep_status = self._tasks[unmet].id, self._status[unmet]
        if dep_status is TaskStatus.ABANDONED:
            return f"waits for {dep} (abandoned, which is not done): drop it from deps or redo it"
        if unmet not in self._members and dep_status is TaskStatus.TODO:
            return f"out of scope: {dep} is not done; add --with-deps"
        return f"waits for {dep} ({dep_status})"


def _own_reason(status: TaskStatus, task: TaskId) -> str:
    return {
        TaskStatus.BACKLOG: "backlog: set its status to todo",
        TaskStatus.IN_PROGRESS: "in progress",
        TaskStatus.BLOCKED: f"blocked: loop {task} runs it again",
        TaskStatus.NEEDS_HUMAN: f"needs an answer: loop answer {task}",
        TaskStatus.STUCK: f"stuck: loop {task} runs it again",
    }[status]


def _members(
    scope: Scope,
    tasks: tuple[Task, ...],
    status: list[TaskStatus],
    deps: list[tuple[int, ...]],
    index: dict[TaskId, int],
) -> set[int]:
    """Return the indices of the tasks that a scope is about.

    A dependency is taken along only where a run may begin it: one that waits for a person is not
    run unnamed, and what it depends on could then not help.
    """
    if scope.is_whole:
        return set(range(len(tasks)))
    _refuse_unknown("task", scope.ids, index)
    tags = {tag: None for task in tasks for tag in task.area} if scope.areas else {}
    _refuse_unknown("area", scope.areas, tags)
    wanted = set(scope.areas)
    named = {index[task_id] for task_id in scope.ids}
    members = named | {i for i, task in enumerate(tasks) if not wanted.isdisjoint(task.area)}
    pending = [i for i in members if i in named or status[i] in _TO_DO]
    while scope.with_deps and pending:
        for dep in deps[pending.pop()]:
            if dep not in members and status[dep] in _TO_DO:
                members.add(dep)
                pending.append(dep)
    return members


def _refuse_unknown(what: str, words: Iterable[str], known: Iterable[str]) -> None:
    names = dict.fromkeys(known)
    messages: list[str] = []
    for word in words:
        if word not in names:
            close = near(word, names)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            messages.append(f"the manifest has no {what} {show(word)}{hint}")
    if messages:
        raise UsageError("\n".join(messages))
