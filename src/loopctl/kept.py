"""The trees that are kept of every attempt: listed, and brought back as a branch."""

from typing import Final

from loopctl.assembly import open_repository
from loopctl.domain import Sha
from loopctl.engine.landing import key_of_kept
from loopctl.place import Place

_REF_DEPTH: Final = 4
"""Slashes in ``refs/loop/RUN/TASK/CANDIDATE``."""


def listed(place: Place) -> tuple[tuple[str, str, bool], ...]:
    """Return the kept refs, their commits, and whether the same result has landed."""
    repository = open_repository(place, place.settings)
    repository.sync()
    landed = {entry.key for entry in repository.landings()}
    trees = repository.kept_trees()
    return tuple(
        (ref, commit, _landing_key(ref, *trees[ref]) in landed)
        for ref, commit in repository.kept().items()
    )


def recover(place: Place, ref: str, branch: str) -> str:
    """Bring a kept tree back as a branch of the user's repository; return its commit.

    Raises:
        RepositoryError: There is no such ref, or the branch exists.
    """
    repository = open_repository(place, place.settings)
    repository.sync()
    return repository.recover(ref, branch)


def _landing_key(ref: str, tree: str, base: Sha) -> str:
    return key_of_kept(ref, base, tree) if ref.count("/") == _REF_DEPTH else ""
