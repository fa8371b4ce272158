"""Which workers can be relied on here; finds out what confines a command where a model works."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from loopctl.domain import Goal, PolicyFinding, Task, TaskStatus
from loopctl.engine.workable import why_unworkable
from loopctl.place import Place
from loopctl.sandbox.confine.trying import tried
from loopctl.sandbox.floor.classes import Commands, class_of
from loopctl.settings import Settings
from loopctl.worker.model.routes import routes_of
from loopctl.worker.names import COMMAND, GRAPH

_OVER: Final = frozenset({TaskStatus.DONE, TaskStatus.ABANDONED})


def hindrances(
    settings: Settings, env: Mapping[str, str], *, is_attended: bool
) -> Mapping[str, str]:
    """Return for each worker that this version has why it cannot work now; empty where it can.

    Args:
        settings: That count.
        env: The caller's environment.
        is_attended: Somebody is there who can see what is done.
    """
    asks = routes_of(settings.models, env).reason
    if not asks and settings.sandbox.confine != "off" and not is_attended:
        asks = _unconfined(env)
    return {COMMAND: "", GRAPH: asks}


def _unconfined(env: Mapping[str, str]) -> str:
    """Return why nothing keeps what a model does inside its worktree; empty where something does."""
    trial = tried(env)
    if trial.is_holding:
        return ""
    return (
        f"nothing keeps what a model does inside its worktree: {trial.why}; {trial.mend}, or run "
        "it with --no-sandbox to let it do what you can do, or with --attended"
    )


def obstacle(task: Task, place: Place, settings: Settings, *, is_attended: bool) -> str | None:
    """Return why a task cannot be worked on with what is configured; ``None`` where it can."""
    found = hindrances(settings, place.env, is_attended=is_attended)
    return why_unworkable(task, settings.loop.worker, found)


def judges_by_model(
    goal: Goal, tasks: Sequence[Task], settings: Settings, env: Mapping[str, str]
) -> bool:
    """Return whether a model is there and something that only one can judge.

    That is a done-criterion in words, and the result of a task of prose that is still to be done.
    """
    is_needed = any(criterion.check is None for criterion in goal.done_when) or any(
        task.is_prose and task.status not in _OVER for task in tasks
    )
    return is_needed and routes_of(settings.models, env).is_there


def asks_models(task: Task, settings: Settings) -> bool:
    """Return whether a task is worked on by asking a model."""
    return (task.worker or settings.loop.worker) == GRAPH


def classifier(settings: Settings) -> Callable[[Task], PolicyFinding]:
    """Return what tells how far the effects of a task can be undone, with these settings."""
    typecheck = settings.gate.typecheck
    commands = Commands(
        setup_cmd=settings.sandbox.setup_cmd,
        typecheck="" if typecheck in {"auto", "off"} else typecheck,
        deny=settings.policy.deny,
        approve=settings.policy.approve,
    )
    return lambda task: class_of(task, commands)
