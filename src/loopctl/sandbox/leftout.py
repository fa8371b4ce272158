"""Says which files of a worktree no snapshot takes: ignored ones, and those in submodules' folders.

A fresh worktree has none of them, so what is found was written in it.
"""

import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from loopctl.sandbox.git import Git
from loopctl.sandbox.owned import CACHES

GITLINK: Final = b"160000"
_MOST_NAMES: Final = 3


def left_out(git: Git, root: Path, share: Iterable[str]) -> str:
    """Return in words what a snapshot leaves out; empty where it leaves out nothing.

    Args:
        git: On the worktree, with the index of its last snapshot.
        root: Of the worktree.
        share: Folders of the checkout that are linked into it; they and caches do not count.
    """
    said = git.ask("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    paths = [os.fsdecode(path) for path in said.split(b"\0") if path]
    shared = {name.strip("/") for name in share}
    ignored = [path for path in paths if not _is_expected(path, shared)]
    inside = sorted(path for link in gitlinks(git) for path in _below(root, os.fsdecode(link)))
    words = []
    if ignored:
        words.append(
            _words(ignored, "ignored file", "that the ignore rules (.gitignore) leave out")
        )
    if inside:
        words.append(_words(inside, "file", "in a submodule's folder, where nothing is kept"))
    return "; ".join(words)


def gitlinks(git: Git) -> dict[bytes, bytes]:
    """Return the submodules of an index: paths, and the commits that stand for them."""
    records = git.ask("ls-files", "-z", "--stage").split(b"\0")
    fields = (record.partition(b"\t") for record in records if record.startswith(GITLINK))
    return {path: meta.split()[1] for meta, _, path in fields}


def is_filled(folder: Path) -> bool:
    """Return whether something lies in a submodule's folder, which a checkout leaves empty."""
    return not folder.is_symlink() and folder.is_dir() and any(folder.iterdir())


def _below(root: Path, link: str) -> list[str]:
    if not is_filled(root / link):
        return []
    found = (Path(folder, name) for folder, _, files in os.walk(root / link) for name in files)
    return [str(path.relative_to(root)) for path in found]


def _is_expected(path: str, shared: set[str]) -> bool:
    parts = path.rstrip("/").split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    caches = (cache.rstrip("/") for cache in CACHES)
    return bool(shared & set(folders)) or any(
        fnmatch(part, cache) for cache in caches for part in parts
    )


def _words(paths: list[str], what: str, why: str) -> str:
    count = len(paths)
    names = ", ".join(paths[:_MOST_NAMES]) + (", ..." if count > _MOST_NAMES else "")
    return f"{count} {what}{'' if count == 1 else 's'} {why}: {names}"
