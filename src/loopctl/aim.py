"""Turns a goal into tasks of the manifest: what ``sources.kickoff`` needs, put together."""

from collections.abc import Callable
from dataclasses import dataclass

from loopctl import failpoints
from loopctl.ability import hindrances
from loopctl.assembly import gate_of
from loopctl.clock import Clock
from loopctl.context.brain import LocalBrain
from loopctl.disk import machine_errors
from loopctl.domain import Goal, Manifest, Sha
from loopctl.errors import KickoffError, LoopctlError
from loopctl.judges.trial import Trial
from loopctl.modelling import asking
from loopctl.place import Place
from loopctl.records import Capsule
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sources.kickoff import Interview, Kickoff, Means, kick_off
from loopctl.store.kickoffs import KickoffFile
from loopctl.store.stores import Stores
from loopctl.worker.link import ModelProcess
from loopctl.worker.names import GRAPH


@dataclass(frozen=True, slots=True)
class Aim:
    """A goal as the command line gives it.

    Attributes:
        text: Verbatim.
        interview: Asks a person everything in one round; ``None`` where nobody is there.
        show: Told what the goal became, after it was written and before it is driven.
    """

    text: str
    interview: Interview | None
    show: Callable[[Kickoff], None]


def manifest_now(place: Place) -> Manifest:
    """Return the manifest; an empty one where there is no file.

    Raises:
        ManifestError: It is broken.
    """
    return place.file.load() if place.file.path.exists() else Manifest(Goal(), ())


def is_made(manifest: Manifest, text: str) -> bool:
    """Return whether the goal has become tasks before: it is driven on then."""
    return bool(manifest.tasks) and manifest.goal.text == text


def refuse_unaskable(place: Place, *, is_attended: bool) -> None:
    """Refuse a goal where no model can be asked, or nobody could do the tasks.

    Raises:
        KickoffError: Says what to set.
    """
    found = hindrances(place.settings, place.env, is_attended=is_attended)
    why = found[GRAPH] or found.get(place.settings.loop.worker, "")
    if why:
        raise KickoffError(f"a model makes the tasks of a goal, and none can be asked: {why}")


def take_aim(
    place: Place,
    aim: Aim,
    stores: Stores,
    repository: OwnedRepository,
    *,
    run_id: str,
    base: Sha,
    clock: Clock,
    process: ModelProcess,
) -> Kickoff:
    """Write what a goal becomes to the manifest, and return it.

    Args:
        place: Where.
        aim: The goal.
        stores: The run is in there; it pays.
        repository: Under the lease.
        run_id: Of the run that will drive the tasks.
        base: The commit at which commands are tried.
        clock: For durations.
        process: Of the models that are asked.

    Raises:
        KickoffError: There is nothing that can be used; nothing was written.
        ManifestError: It is broken, or cannot be written; nothing was.
        CancelledError: The user has asked to stop; nothing was written.
    """
    _announce(place, run_id, aim.text)
    gate = gate_of(place, stores, repository, clock)
    means = Means(
        oracle=asking(process, place, stores, run_id, clock),
        run_id=run_id,
        files=[file.path for file in repository.files(repository.tree_of(base))],
        manifest=manifest_now(place),
        preview=place.file.preview,
        why_unfit=Trial(gate, lambda: base),
        interview=aim.interview,
    )
    kickoff = kick_off(aim.text, means)
    kept = KickoffFile(place.local)
    kept.save(aim.text, kickoff.suppositions, kickoff.settled)
    try:
        place.file.extend(kickoff.addition)
    except LoopctlError:
        kept.clear()
        raise
    aim.show(kickoff)
    return kickoff


def _announce(place: Place, run_id: str, goal: str) -> None:
    """Write the goal and the next action to the capsule before any model is asked."""
    folder = place.run_folder(run_id)
    with machine_errors(f"{folder} cannot be made"):
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    step = "kickoff: make done-criteria and tasks of the goal, and write them to the manifest"
    LocalBrain(folder, goal).carry(Capsule(goal, current_step=step))
    failpoints.reach("next.kickoff")
