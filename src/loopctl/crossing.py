"""What two passing candidates of one task are compared by: values, and the port that does it."""

from dataclasses import dataclass
from typing import Protocol

from loopctl.domain import Sha, Task


@dataclass(frozen=True, slots=True)
class Entrant:
    """A candidate that the gate has passed.

    Attributes:
        name: Of the candidate.
        base: The commit that it was made on.
        tree: Its files.
    """

    name: str
    base: Sha
    tree: str


@dataclass(frozen=True, slots=True)
class Difference:
    """What one candidate's tests demand and another's files do not do.

    Attributes:
        tests_of: The candidate whose tests they are.
        files_of: The one on whose files they fail.
        found: Each test that fails and why, in one line; else the end of the output. Never empty.
    """

    tests_of: str
    files_of: str
    found: tuple[str, ...]


class Comparison(Protocol):
    """Tells whether candidates do the same; keeps nothing."""

    def differences(self, task: Task, one: Entrant, other: Entrant) -> tuple[Difference, ...]:
        """Return where the tests of one fail on the files of the other, either way.

        Nothing where that cannot be told: without tests of their own, or where the tests ask for
        names that only their own candidate has.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...

    def meets(self, command: str, entrant: Entrant) -> bool | None:
        """Return whether a command exits 0 on a candidate's files; ``None`` where nobody can tell.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ...
