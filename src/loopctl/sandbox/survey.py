"""Looks over a worktree's files before git does: what git must not meet is found here."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from loopctl.errors import SandboxError
from loopctl.sandbox.git import Git

_ATTRIBUTES = ".gitattributes"
_IGNORE = ".gitignore"
_MAX_ATTRIBUTES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found.

    Attributes:
        nested: Every ``.git`` below the root's own, relative to the root.
        mentions_filters: An attributes file speaks of filters (Git LFS does).
        has_attributes: There is an attributes file.
        ignores: The files that say what git ignores, sorted.
        files: The paths of everything but folders and what is named ``.git``.
    """

    nested: tuple[str, ...]
    mentions_filters: bool
    has_attributes: bool
    ignores: tuple[str, ...]
    files: tuple[str, ...]


def survey(root: Path) -> Survey:
    """Return what is in a worktree; starts no process and follows no link."""
    nested: list[str] = []
    files: list[str] = []
    rules: dict[str, list[str]] = {_ATTRIBUTES: [], _IGNORE: []}
    folders = [str(root)]
    while folders:
        folder = folders.pop()
        for entry in entries(folder):
            if entry.name == ".git":
                if folder != str(root):
                    nested.append(os.path.relpath(entry.path, root))
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                files.append(entry.path)
                if entry.name in rules and entry.is_file(follow_symlinks=False):
                    rules[entry.name].append(entry.path)
    return Survey(
        nested=tuple(sorted(nested)),
        mentions_filters=any(map(_speaks_of_filters, rules[_ATTRIBUTES])),
        has_attributes=bool(rules[_ATTRIBUTES]),
        ignores=tuple(sorted(rules[_IGNORE])),
        files=tuple(files),
    )


def refuse_filters(git: Git, base: str) -> None:
    """Make sure that no changed path has a ``filter`` attribute.

    The harness runs no filters: the real content would be saved in the place of what the filter
    makes of it.

    Args:
        git: With the index that was just written.
        base: The commit or tree that the index is compared with.

    Raises:
        SandboxError: One has; says which.
    """
    changed = git.ask(
        *("diff-index", "--cached", "--name-only", "-z", "--no-renames", "--diff-filter=d"), base
    )
    if not changed:
        return
    fields = git.ask("check-attr", "--cached", "-z", "--stdin", "filter", stdin=changed).split(
        b"\0"
    )
    for path, value in zip(fields[::3], fields[2::3], strict=False):
        if value not in {b"unspecified", b"unset"}:
            name = path.decode(errors="replace")
            raise SandboxError(
                f"{name} goes through the filter {value.decode(errors='replace')!r} "
                "(.gitattributes), which a sandbox does not run; leave that file to a person"
            )


def forbidden(git: Git, nested: tuple[str, ...]) -> str:
    """Return the first nested repository that is not in an ignored folder; none is ``""``.

    git does not enter ignored folders, where build tools keep what they have cloned. Asking
    for the ignored ones reads patterns only.
    """
    folders = [f"./{Path(path).parent}" for path in nested]
    asked = "".join(f"{folder}\0" for folder in folders).encode(errors="surrogateescape")
    result = git.run("check-ignore", "--stdin", "-z", stdin=asked)
    ignored = set(result.stdout.decode(errors="surrogateescape").split("\0"))
    allowed = ignored if result.returncode in {0, 1} else set()
    pairs = zip(nested, folders, strict=True)
    return next((path for path, folder in pairs if folder not in allowed), "")


def entries(folder: str) -> list["os.DirEntry[str]"]:
    """Return what is in a folder, which is made readable first where it is not.

    Raises:
        OSError: It cannot be read all the same; its path may be too long.
    """
    for is_second in (False, True):
        try:
            with os.scandir(folder) as found:
                return list(found)
        except PermissionError:
            if is_second:
                raise
            # A folder that was made unreadable: git would take its files for deleted.
            with contextlib.suppress(OSError):
                Path(folder).chmod(stat.S_IRWXU)
        except FileNotFoundError:
            return []
    return []


def _speaks_of_filters(path: str) -> bool:
    with Path(path).open("rb") as file:
        return b"filter" in file.read(_MAX_ATTRIBUTES_BYTES)
