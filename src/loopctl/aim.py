"""Turns a goal into tasks of the manifest: what ``sources.kickoff`` needs, put together."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from loopctl.ability import hindrances
from loopctl.assembly import gate_of
from loopctl.clock import Clock
from loopctl.domain import Goal, Manifest, Sha
from loopctl.errors import KickoffError
from loopctl.modelling import asking
from loopctl.place import Place
from loopctl.ports import Gate
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sources.kickoff import Interview, Kickoff, Means, kick_off
from loopctl.store.stores import Stores
from loopctl.verdict import CheckResult, Verdict
from loopctl.worker.names import GRAPH

_NOT_STARTED: Final = frozenset({126, 127})


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
    cancel: threading.Event,
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
        cancel: Set when the user asks to stop.

    Raises:
        KickoffError: There is nothing that can be used; nothing was written.
        ManifestError: It is broken, or cannot be written; nothing was.
        CancelledError: The user has asked to stop; nothing was written.
    """
    gate = gate_of(place, stores, repository, clock)
    with ExitStack() as stack:
        oracle = stack.enter_context(asking(place, place.settings, stores, run_id, clock, cancel))
        means = Means(
            oracle=oracle,
            run_id=run_id,
            files=[file.path for file in repository.files(repository.tree_of(base))],
            manifest=manifest_now(place),
            preview=place.file.preview,
            why_unfit=Trial(gate, base),
            interview=aim.interview,
        )
        kickoff = kick_off(aim.text, means)
    place.file.extend(kickoff.addition)
    aim.show(kickoff)
    return kickoff


class Trial:
    """Tries commands at the base, in checkouts of the gate's own: each command once."""

    def __init__(self, gate: Gate, base: Sha) -> None:
        self._gate = gate
        self._base = base
        self._tried: dict[str, CheckResult] = {}

    def __call__(self, command: str, *, is_met_ok: bool) -> str:
        """Return why a command cannot verify work that is still to be done; empty where it can."""
        if command not in self._tried:
            self._tried[command] = self._gate.run_check(command, self._base)
        result = self._tried[command]
        if result.verdict is Verdict.PASS:
            return "" if is_met_ok else "passes before any work; it must fail until it is done"
        if result.exit in _NOT_STARTED and not _is_to_be_made(command):
            return f"cannot start here (exit {result.exit}): {_end(result.tail)}"
        if result.verdict is Verdict.UNKNOWN and result.exit not in _NOT_STARTED:
            return f"could not be judged: {result.reason}"
        return ""


def _is_to_be_made(command: str) -> bool:
    """Return whether a command is a file of the repository, which a task may be about to make."""
    words: Sequence[str] = command.split(maxsplit=1)
    return bool(words) and "/" in words[0] and not words[0].startswith("/")


def _end(tail: str) -> str:
    lines = tail.strip().splitlines()
    return lines[-1][:200] if lines else "it is not there"
