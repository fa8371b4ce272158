"""Takes what landed onto the user's branch, or onto the files that a run was begun with."""

from dataclasses import dataclass

from loopctl.engine import naming
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store.stores import Stores


@dataclass(frozen=True, slots=True)
class Landing:
    """What was landed: a branch moved over some commits, or a diff put onto files."""

    branch: str
    old: str
    new: str
    commits: int
    files: int = 0


def land_here(stores: Stores, repository: OwnedRepository) -> Landing:
    """Return what was taken onto the user's branch, or onto the files a run was begun with.

    Raises:
        LandingRefusedError: Nothing was changed; says why.
    """
    tip = repository.integration()
    head = repository.head()
    wip = next(
        (
            record
            for record in stores.runs.runs()
            if record.is_wip
            and tip is not None
            and repository.is_within(record.base, tip)
            and not repository.is_within(record.base, head)
        ),
        None,
    )
    if wip is None or tip is None:
        done = repository.fast_forward()
        return Landing(done.branch, done.old, done.new, done.commits)
    base_tree, tree = repository.tree_of(wip.base), repository.tree_of(tip)
    files = len(repository.changes(base_tree, tree))
    repository.apply_to_checkout(base_tree, tree, base_tree)
    repository.keep(naming.ref(wip.id, "integration", naming.MAIN), tree, head, "landed")
    repository.retire_branch(tip)
    return Landing(wip.branch, head, head, 0, files)
