"""What a project is given and gives: answers, kept trees, what was landed, tools."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kept:
    """A tree that the harness keeps for the user.

    Attributes:
        ref: ``refs/loop/RUN/TASK/CANDIDATE``.
        commit: What it points at, in the harness's own repository.
        landed: The same result is on the integration branch.
    """

    ref: str
    commit: str
    landed: bool


@dataclass(frozen=True, slots=True)
class LandedHere:
    """What ``loop land`` did: the branch it moved, from where to where.

    Attributes:
        files: Of a run with ``--wip``: the files that its diff was put onto; the branch stays.
    """

    branch: str
    old: str
    new: str
    commits: int
    files: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as the user gave it; ``budget`` raises caps of the task (``usd``, ``loops``...)."""

    decision_id: str
    text: str
    budget: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that ``loop`` needs, as it was found on the machine.

    Attributes:
        found: Its version; where it is missing or too old, what to do about it.
        is_usable: A run can rely on it.
    """

    name: str
    found: str
    is_usable: bool
