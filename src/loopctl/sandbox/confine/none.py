"""No confinement, which it says."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopctl.domain import ExecResult
from loopctl.records import Confined


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

    @property
    def has_mounts(self) -> bool:
        """All stands where it is."""
        return False

    def wrap(
        self,
        argv: Sequence[str],
        *,
        workdir: Path,
        writable: Sequence[Path],
        kept: Sequence[Path] = (),
        network: bool = False,
    ) -> Confined:
        """Return ``argv`` as it is."""
        del workdir, writable, kept, network
        return Confined(tuple(argv))

    def inside(self, workdir: Path) -> Path:
        """Return ``workdir`` as it is."""
        return workdir

    def explain(self, ended: ExecResult) -> str:
        """Return nothing: all that is outside can be had."""
        del ended
        return ""

    def describe(self) -> str:
        """Return what keeps a command inside, in a few words."""
        return f"no confinement ({self.why})" if self.why else "no confinement"
