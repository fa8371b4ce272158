"""Removes what is no longer needed below ``.local/``, and only what has landed or was named."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopctl.assembly import open_repository
from loopctl.errors import UsageError
from loopctl.place import Place
from loopctl.records import Rescued
from loopctl.sandbox.files import remove_tree
from loopctl.sandbox.leftovers import size_bytes
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store import lease

Kept = tuple[str, str, bool]
"""A ref, its commit, and whether the same result has landed."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was removed; of a dry run, what would be.

    Attributes:
        refs: Kept trees that are forgotten.
        sandboxes: Of dead processes, by name.
        files: Half-written ones in the folders of runs.
        size_bytes: What the sandboxes and files held.
        saved: Refs that now keep what was left in a sandbox.
        left: Sandboxes that could not be saved and stay, each with the reason.
    """

    refs: tuple[str, ...] = ()
    sandboxes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    size_bytes: int = 0
    saved: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """What the user names: refs, and a run all of whose refs are meant."""

    refs: Sequence[str] = ()
    run_id: str | None = None

    def __bool__(self) -> bool:
        """Say whether anything is named."""
        return bool(self.refs) or self.run_id is not None


def clean(
    place: Place, kept: Callable[[], Sequence[Kept]], named: Named, *, is_dry: bool
) -> Cleaned:
    """Return what was removed: what is named, and nothing else, where something is named.

    Args:
        place: Where.
        kept: Lists the kept refs, their commits, and whether the same result has landed.
        named: Refs that are removed though they have not landed.
        is_dry: Nothing is removed.

    Raises:
        UsageError: Nothing is kept under a named ref; nothing was removed.
        LeaseHeldError: A run is being driven now.
    """
    with lease.hold(place.local):
        repository = open_repository(place, place.settings)
        repository.sync()
        refs = _meant(kept(), named)
        found = Cleaned(refs=refs) if named else _leftovers(place, repository, refs)
        if is_dry:
            return found
        for ref in refs:
            repository.drop(ref)
        return found if named else _removed(place, repository, found)


def _meant(kept: Sequence[Kept], named: Named) -> tuple[str, ...]:
    if not named:
        return tuple(ref for ref, _, has_landed in kept if has_landed)
    known = {ref for ref, _, _ in kept}
    for ref in named.refs:
        if ref not in known:
            raise UsageError(f"nothing is kept as {ref}; `loop recover` lists what is")
    of_run = f"refs/loop/{named.run_id}/"
    return tuple(ref for ref, _, _ in kept if ref in named.refs or ref.startswith(of_run))


def _leftovers(place: Place, repository: OwnedRepository, refs: tuple[str, ...]) -> Cleaned:
    sandboxes = repository.leftovers()
    files = _half_written(place)
    return Cleaned(
        refs=refs,
        sandboxes=tuple(left.name for left in sandboxes),
        files=tuple(path.relative_to(place.local).as_posix() for path in files),
        size_bytes=sum(left.size_bytes for left in sandboxes) + sum(map(size_bytes, files)),
    )


def _half_written(place: Place) -> list[Path]:
    """Return what a killed process was writing beside the files of runs."""
    runs = place.local / "runs"
    return sorted((*runs.glob("*/.*"), *runs.glob("*/*.tmp")))


def _removed(place: Place, repository: OwnedRepository, found: Cleaned) -> Cleaned:
    rescued = repository.rescue_leftovers()
    for name in found.files:
        remove_tree(place.local / name)
    left = repository.leftovers()
    staying = {one.name for one in left}
    return Cleaned(
        refs=found.refs,
        sandboxes=tuple(name for name in found.sandboxes if name not in staying),
        files=found.files,
        size_bytes=found.size_bytes - sum(one.size_bytes for one in left),
        saved=tuple(one.ref for one in rescued if one.ref),
        left=tuple((one.folder, one.why) for one in rescued if _stays(one)),
    )


def _stays(rescued: Rescued) -> bool:
    return not rescued.is_complete
