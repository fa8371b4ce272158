"""No confinement, which it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Unconfined:
    """Runs commands as they are: they can reach whatever the user can.

    Attributes:
        why: Why there is nothing better, and what mends it; empty where nothing better was asked
            for.
    """

    why: str = ""

    @property
    def is_holding(self) -> bool:
        """Nothing is held."""
        return False

    def wrap(self, argv: Sequence[str], *, workdir: Path, writable: Sequence[Path]) -> list[str]:
        """Return ``argv`` as it is."""
        del workdir, writable
        return list(argv)

    def inside(self, workdir: Path) -> Path:
        """Return ``workdir`` as it is."""
        return workdir

    def lacks(self, output: bytes) -> str:
        """Return nothing: all that is outside can be had."""
        del output
        return ""

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        return f"no confinement ({self.why})" if self.why else "no confinement"
