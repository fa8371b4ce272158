"""Runs over a manifest of their own: tasks that are drawn from the tree, not read from a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loopctl.domain import Manifest, RunStatus, Sha
from loopctl.manifest.extend import written
from loopctl.manifest.replace import create_file
from loopctl.place import Own, Place
from loopctl.ports import Gate
from loopctl.records import RunRecord
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store.eventlog import make_private

UNENDED: Final = frozenset({RunStatus.RUNNING, RunStatus.INTERRUPTED})
"""How a run stands that was cut short, where no process drives it."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What tasks are drawn from.

    Attributes:
        place: With the user's own manifest.
        repository: Under the lease.
        gate: Runs commands in fresh checkouts.
        base: The commit that the run will start from.
        run_id: Of the run that will drive the tasks.
    """

    place: Place
    repository: OwnedRepository
    gate: Gate
    base: Sha
    run_id: str

    @property
    def suffix(self) -> str:
        """What keeps the ids of this run's tasks apart from those of every other run."""
        return self.run_id.rpartition("-")[2]


class Source(Protocol):
    """Draws tasks."""

    @property
    def own(self) -> Own:
        """What it is."""
        ...

    def draw(self, bench: Bench) -> Manifest | None:
        """Return the tasks; ``None`` where there is nothing to do, which was said already.

        Raises:
            UserError: Nothing can be drawn; says why.
            CancelledError: The user has asked to stop.
        """
        ...

    def has_drawn(self, bench: Bench, manifest: Manifest) -> bool:
        """Return whether the tasks of an earlier run are what is asked for now; runs no command.

        Raises:
            UserError: Nothing can be drawn; says why.
        """
        ...


def keep(bench: Bench, own: Own, manifest: Manifest) -> Place:
    """Write the manifest of a run into the run's folder; return the place that reads it there."""
    path = bench.place.own_manifest(bench.run_id, own)
    make_private(path.parent)
    create_file(path, written(manifest).encode())
    return bench.place.of_run(bench.run_id)


def cut_short(
    bench: Bench, source: Source, records: Sequence[RunRecord], *, is_wip: bool
) -> RunRecord | None:
    """Return the newest run of a source where it was cut short and is what is asked for now.

    Args:
        bench: Its base and run do not matter.
        source: What is asked for.
        records: All runs, the newest first.
        is_wip: The checkout has uncommitted changes that are to be taken along: they have to be
            those that the run took.
    """
    mine = ((one, bench.place.of_run(one.id)) for one in records)
    record, place = next((one for one in mine if one[1].own is source.own), (None, None))
    if record is None or place is None or record.status not in UNENDED or record.is_wip != is_wip:
        return None
    if is_wip and not _is_as_taken(bench.repository, record.base):
        return None
    of_record = replace(bench, base=record.base, run_id=record.id)
    return record if source.has_drawn(of_record, place.file.load()) else None


def _is_as_taken(repository: OwnedRepository, base: Sha) -> bool:
    """Return whether the checkout's files, and what they are changes of, are still as they were."""
    now = repository.snapshot_checkout()
    is_same_head = repository.is_within(repository.head(), base)
    return is_same_head and repository.tree_of(now) == repository.tree_of(base)
