"""Values about git trees: their files, and how two of them differ."""

from dataclasses import dataclass
from enum import StrEnum


class ChangeType(StrEnum):
    """How a path differs between two trees (git's own letters)."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"
    TYPE = "T"


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A regular file of a tree.

    Attributes:
        path: Relative to the tree; bytes that are no UTF-8 as surrogate escapes.
        blob: The id of its contents.
    """

    path: str
    blob: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between two trees; renames are a deletion and an addition.

    Attributes:
        path: Relative to the tree; bytes that are no UTF-8 as surrogate escapes.
        type: How.
        old_mode: ``"000000"`` where the path is new; ``"120000"`` a symlink, ``"160000"`` a
            submodule.
        new_mode: ``"000000"`` where it is gone.
        old_blob: All zeros where new.
        new_blob: All zeros where gone.
    """

    path: str
    type: ChangeType
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str
