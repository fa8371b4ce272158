"""From a TOML document to a :class:`~loopctl.domain.Manifest`, or all that is wrong with it."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from loopctl.domain import Goal, Limits, Manifest, Task
from loopctl.manifest.cycles import find_cycles
from loopctl.manifest.keys import TASK, TOP
from loopctl.manifest.readers import Flaw, Problem, Reader, UnfitTableError, read_table
from loopctl.tomlsource.scan import Path
from loopctl.tomlsource.words import Guesses, show

COMMAND_WORKER: Final = "command"


class InvalidError(Exception):
    """The document is no manifest. ``args`` are its :class:`Problem` values, in no order."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)


def validate(document: Mapping[str, Any], known_workers: Collection[str] | None = None) -> Manifest:
    """Return the manifest that a document holds. O(n + e).

    Args:
        document: As ``tomllib`` returns it.
        known_workers: Names that ``worker`` may have; ``None`` means any.

    Raises:
        InvalidError: All that is wrong.
    """
    reading = _Reading(known_workers)
    manifest = reading.manifest(document)
    if reading.problems:
        raise InvalidError(*reading.problems)
    return manifest


class _Reading:
    """One look at one document; collects problems instead of stopping at the first."""

    def __init__(self, known_workers: Collection[str] | None) -> None:
        self.problems: list[Problem] = []
        self._known_workers = known_workers
        self._guesses = Guesses()
        self._defaults: dict[str, Any] = {}
        self._default_limits = Limits()

    def manifest(self, document: Mapping[str, Any]) -> Manifest:
        top = self._table(document, TOP, ())
        self._take_defaults(top.get("defaults", {}))
        raw_tasks: list[dict[str, Any]] = top.get("task", [])
        tasks = [self._task(raw, index) for index, raw in enumerate(raw_tasks)]
        index_of = self._index(raw_tasks)
        self._check_deps(raw_tasks, tasks, index_of)
        goal: Goal = top.get("goal", Goal())
        return Manifest(goal, tuple(tasks))

    def _take_defaults(self, defaults: dict[str, Any]) -> None:
        self._defaults = defaults
        self._default_limits = Limits(**defaults.get("budget", {}))
        self._check_worker(defaults.get("worker"), ("defaults", "worker"), "[defaults]: ")

    def _task(self, raw: dict[str, Any], index: int) -> Task:
        path: Path = ("task", index)
        own = self._table(raw, TASK, path, index)
        merged = {**self._defaults, **own}
        for key in ("id", "title"):
            if key not in merged:
                if key not in raw:
                    self._problem(path, f"{_owner(raw, index)}has no {key}")
                merged[key] = ""
        caps = own.get("budget")
        merged["budget"] = (
            self._default_limits
            if caps is None
            else Limits(**{**self._defaults.get("budget", {}), **caps})
        )
        has_command = bool(merged.get("command")) or any(
            option.command for option in merged.get("options", ())
        )
        if has_command and "worker" not in merged and "worker" not in raw:
            merged["worker"] = COMMAND_WORKER
        task = Task(**merged)
        if has_command or task.worker == COMMAND_WORKER:
            self._check_command(task, raw, index)
        if "worker" in own:
            self._check_worker(task.worker, (*path, "worker"), _owner(raw, index))
        return task

    def _check_command(self, task: Task, raw: dict[str, Any], index: int) -> None:
        """Check a task that has a command or the worker of commands: it must have both."""
        path: Path = ("task", index)
        owner = _owner(raw, index)
        if task.worker not in {None, COMMAND_WORKER}:
            key = next((key for key in ("command", "options") if key in raw), "worker")
            source = "" if "worker" in raw else " of [defaults]"
            self._problem(
                (*path, key),
                f"{owner}has a command, but the worker{source} is {show(task.worker)}; "
                'only the worker "command" runs one',
            )
        elif task.command is None and task.options:
            self._check_option_commands(task, raw, index)
        elif task.command is None and not raw.get("command") and not raw.get("options"):
            message = f'{owner}has the worker "command" but no command'
            self._problem((*path, "worker"), message)

    def _check_option_commands(self, task: Task, raw: dict[str, Any], index: int) -> None:
        for number, option in enumerate(task.options):
            if option.command is None:
                path: Path = ("task", index, "options", number)
                message = f"option {show(option.name)} has no command, and neither has the task"
                self._problem(path, _owner(raw, index) + message)

    def _check_worker(self, worker: str | None, path: Path, owner: str) -> None:
        if worker is None or self._known_workers is None or worker in self._known_workers:
            return
        hint = self._guesses.hint(worker, self._known_workers)
        self._problem(path, f"{owner}worker: {show(worker)} is not known{hint}")

    def _index(self, raw_tasks: list[dict[str, Any]]) -> dict[str, int]:
        """Return where each id stands first, ids that are malformed included."""
        index_of: dict[str, int] = {}
        for index, raw in enumerate(raw_tasks):
            name = raw.get("id")
            if not isinstance(name, str):
                continue
            first = index_of.setdefault(name, index)
            if first != index:
                path: Path = ("task", index, "id")
                message = f"id: {show(name)} is used twice"
                self._problem(path, message, see=("task", first, "id"))
        return index_of

    def _check_deps(
        self, raw_tasks: list[dict[str, Any]], tasks: list[Task], index_of: dict[str, int]
    ) -> None:
        edges: list[list[int]] = []
        for index, task in enumerate(tasks):
            raw = raw_tasks[index]
            known: list[int] = []
            # What was read lacks the whole list when one element does not fit.
            deps = raw.get("deps", task.deps)
            for position, dep in enumerate(deps if isinstance(deps, list | tuple) else ()):
                found = index_of.get(dep) if isinstance(dep, str) else None
                if found is not None:
                    known.append(found)
                elif "deps" in raw and isinstance(dep, str):
                    path: Path = ("task", index, "deps", position)
                    self._dangling(path, _owner(raw, index), dep, index_of)
            edges.append(known)
        for position, dep in enumerate(self._defaults.get("deps", ())):
            if dep not in index_of:
                self._dangling(("defaults", "deps", position), "[defaults]: ", dep, index_of)
        for cycle in find_cycles(edges):
            names = [show(raw_tasks[index].get("id"))[1:-1] for index in (*cycle, cycle[0])]
            self._problem(("task", cycle[0], "deps"), f"deps form a cycle: {' -> '.join(names)}")

    def _dangling(self, path: Path, owner: str, dep: str, known: Collection[str]) -> None:
        hint = self._guesses.hint(dep, known)
        self._problem(path, f"{owner}deps: {show(dep)} is no task's id{hint}")

    def _table(
        self, raw: Mapping[str, Any], readers: Mapping[str, Reader], path: Path, index: int = -1
    ) -> dict[str, Any]:
        try:
            return read_table(raw, readers)
        except UnfitTableError as exc:
            owner = _owner(raw, index) if index >= 0 else ""
            for flaw in exc.args:
                hint = self._guesses.hint(flaw.word, flaw.known) if flaw.word else ""
                self._problem((*path, *flaw.inner), f"{owner}{_sentence(flaw)}{hint}")
            return exc.partial

    def _problem(self, path: Path, message: str, see: Path | None = None) -> None:
        self.problems.append(Problem(path, message, see))


def _owner(raw: Mapping[str, Any], index: int) -> str:
    name = raw.get("id")
    return f"task {show(name)[1:-1]}: " if isinstance(name, str) else f"task number {index + 1}: "


def _sentence(flaw: Flaw) -> str:
    where = ""
    for part in flaw.inner:
        if isinstance(part, int):
            where += f"[{part}]"
        else:
            where += ("." if where else "") + show(part)[1:-1]
    return " ".join(word for word in (f"{where}:", flaw.shown, flaw.why) if word)
