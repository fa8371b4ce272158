"""Confinement of a sandbox's processes: none so far, which it says."""

from collections.abc import Sequence
from pathlib import Path


class Unconfined:
    """Runs commands as they are: they can reach whatever the user can."""

    def wrap(self, argv: Sequence[str], *, workdir: Path, writable: Sequence[Path]) -> list[str]:
        """Return ``argv`` as it is."""
        del workdir, writable
        return list(argv)

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        return "no confinement"
