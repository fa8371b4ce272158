"""Where a drive starts from, and what there is to say before its first step."""

from loopctl.assembly import confinement_notice
from loopctl.domain import Sha
from loopctl.engine.recovery import rescue_notice
from loopctl.errors import UsageError
from loopctl.events import Noticed
from loopctl.place import Place
from loopctl.sandbox.repository import OwnedRepository

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
    return commit, (*notices, confinement_notice(place.settings))


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
    notices = (*rescued, *_info(notice), *left_out, confinement_notice(place.settings))
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
