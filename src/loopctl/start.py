"""Where a drive starts from, and what there is to say before its first step."""

import os
import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from loopctl.assembly import confinement_notice
from loopctl.domain import Decision, Manifest, RunStatus, Scope, Sha, TaskId
from loopctl.engine import late
from loopctl.engine.recovery import rescue_notice
from loopctl.errors import UsageError
from loopctl.events import DecisionAnswered, Noticed
from loopctl.manifest.frontier import Frontier
from loopctl.place import Place
from loopctl.records import RunRecord
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store.eventlog import read_events
from loopctl.store.stores import Stores

Start = tuple[Sha, tuple[Noticed, ...]]
"""The commit that new worktrees are made from, and the notices."""


def new(repository: OwnedRepository, place: Place, *, wip: bool) -> Start:
    """Return the start of a new run; what a dead process has left is saved and removed first.

    Args:
        repository: Under the lease.
        place: Where.
        wip: The checkout's uncommitted changes are taken along.

    Raises:
        UserError: The run cannot begin; says why and what mends it.
    """
    rescued = _rescued(repository)
    commit, notice = repository.prepare_branch()
    if wip and commit != repository.head():
        raise UsageError(
            f"--wip begins from your checkout, but {place.settings.land.branch} holds "
            "results that are not landed yet; run `loop land` first"
        )
    notices = [*rescued, *_info(notice)]
    count, files = _uncommitted(repository, place)
    if wip:
        commit = repository.snapshot_checkout()
    if wip and count:
        notices.append(Noticed(text=f"{files} taken along, below the run", level="info"))
    elif count:
        notices.append(_left_out(files))
    return commit, (*notices, confinement_notice(repository.confinement, place.settings))


def again(repository: OwnedRepository, place: Place, *, snapshot: Sha | None) -> Start:
    """Return the start of a run that goes on.

    Args:
        repository: Under the lease.
        place: Where.
        snapshot: The uncommitted changes that the run was begun from, where it was.

    Raises:
        UserError: The run cannot go on; says why and what mends it.
    """
    rescued = _rescued(repository)
    commit, notice = repository.prepare_branch()
    if snapshot is not None and commit == repository.head():
        commit, notice = snapshot, ""
    count, files = _uncommitted(repository, place)
    left_out = [_left_out(files)] if count and snapshot is None else []
    notices = (
        *rescued,
        *_info(notice),
        *left_out,
        confinement_notice(repository.confinement, place.settings),
    )
    return commit, notices


def _rescued(repository: OwnedRepository) -> tuple[Noticed, ...]:
    notices = (rescue_notice(rescued) for rescued in repository.rescue_leftovers())
    return tuple(notice for notice in notices if notice is not None)


def _info(text: str) -> tuple[Noticed, ...]:
    return (Noticed(text=text, level="info"),) if text else ()


def _uncommitted(repository: OwnedRepository, place: Place) -> tuple[int, str]:
    found = repository.uncommitted(leaving_out=place.manifest_in_tree)
    count = found.changed + found.untracked
    return count, f"{count} uncommitted file{'s' if count > 1 else ''} of the checkout"


def _left_out(files: str) -> Noticed:
    return Noticed(text=f"{files}: no part of this run (--wip takes uncommitted work along)")


def members(manifest: Manifest, scope: Scope) -> tuple[tuple[TaskId, str], ...]:
    """Return ids and titles of a run's own tasks; those that are gone are left out."""
    known = {task.id for task in manifest.tasks}
    areas = {area for task in manifest.tasks for area in task.area}
    left = replace(
        scope,
        ids=tuple(task for task in scope.ids if task in known),
        areas=tuple(area for area in scope.areas if area in areas),
    )
    if left.is_whole and not scope.is_whole:
        return ()
    return tuple((task.id, task.title) for task in Frontier(manifest, left).tasks())


def answered(stores: Stores, record: RunRecord) -> tuple[Decision, ...]:
    """Return the decisions of a run that have their answer."""
    return tuple(
        one
        for one in stores.decisions.decisions()
        if one.run_id == record.id and one.answer is not None
    )


def untold(stores: Stores, record: RunRecord, place: Place) -> tuple[Decision, ...]:
    """Return those of a run's answered decisions whose answer its events do not tell."""
    given = answered(stores, record)
    if not given:
        return ()
    events = read_events(place.run_folder(record.id))
    told = {event.id for event in events if isinstance(event, DecisionAnswered)}
    return late.untold(given, record.id, told)


def chosen(records: Sequence[RunRecord], run_id: str | None) -> RunRecord:
    """Return the run to go on with: the named one, else the newest that has something left.

    Raises:
        UsageError: There is none.
    """
    if run_id is None:
        left = [record for record in records if record.status is not RunStatus.COMPLETE]
        if not left:
            raise UsageError("no run has anything left; `loop` starts a new one")
        return left[0]
    found = next((record for record in records if record.id == run_id), None)
    if found is None:
        known = ", ".join(record.id for record in records[:3]) or "none"
        raise UsageError(f"there is no run {run_id}; the newest: {known}")
    return found


def refuse_sandbox(place: Place) -> None:
    """Refuse to drive a worktree of ours: a task would drive the manifest that it is part of."""
    folder = place.checkout.parent
    if folder.name == "worktrees" and folder.parent.name == ".local":
        raise UsageError(
            f"{place.checkout} is a sandbox of loop, in which no run can be driven; a task says "
            "what it has to say with loop defer, loop fork or loop todo-done"
        )


def write_down(fault: BaseException, place: Place, now: datetime) -> str:
    """Write a bug of ours down, keys taken out, and return where."""
    redact, folder = place.redactor(), place.local / "crash"
    path = folder / f"{now:%Y%m%dT%H%M%S%f}.txt"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(redact("".join(traceback.format_exception(fault))))
    except OSError as exc:
        return f"no file, since none could be written ({exc.strerror}): {redact(repr(fault))}"
    return str(path)
