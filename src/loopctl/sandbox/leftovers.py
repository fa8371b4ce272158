"""What dead processes have left of their sandboxes, and how much room it takes."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loopctl.sandbox.owned import Layout


@dataclass(frozen=True, slots=True)
class Leftover:
    """All that is left of one sandbox: worktree, index, exchange folder, home.

    Attributes:
        name: Of the sandbox.
        size_bytes: What its files hold; links count as themselves.
    """

    name: str
    size_bytes: int


def leftovers(layout: Layout) -> tuple[Leftover, ...]:
    """Return what is left of sandboxes, by name; while nobody works, that is all there is."""
    places = (*layout.per_sandbox, layout.git_dir / "worktrees")
    return tuple(
        Leftover(
            name,
            sum(size_bytes(place / name) for place in places) + size_bytes(layout.scratch(name)),
        )
        for name in names(layout)
    )


def names(layout: Layout) -> tuple[str, ...]:
    """Return the names of all sandboxes of which something is there."""
    places = (*layout.per_sandbox, layout.git_dir / "worktrees")
    return tuple(
        sorted({path.name for place in places if place.is_dir() for path in place.iterdir()})
    )


def size_bytes(path: Path) -> int:
    """Return what the files at and below ``path`` hold; 0 where there is nothing."""
    return sum(_sizes(os.fspath(path)))


def _sizes(path: str) -> Iterator[int]:
    try:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            yield found.st_size
            return
        with os.scandir(path) as entries:
            names = [entry.path for entry in entries]
    except OSError:
        return
    for name in names:
        yield from _sizes(name)
