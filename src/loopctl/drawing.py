"""Runs over a manifest of their own: tasks that are drawn from the tree, not read from a file."""

from dataclasses import dataclass
from typing import Protocol

from loopctl.domain import Manifest, Sha
from loopctl.manifest.extend import written
from loopctl.manifest.replace import create_file
from loopctl.place import Own, Place
from loopctl.ports import Gate
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store.eventlog import make_private


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


def keep(bench: Bench, own: Own, manifest: Manifest) -> Place:
    """Write the manifest of a run into the run's folder; return the place that reads it there."""
    path = bench.place.own_manifest(bench.run_id, own)
    make_private(path.parent)
    create_file(path, written(manifest).encode())
    return bench.place.of_run(bench.run_id)
