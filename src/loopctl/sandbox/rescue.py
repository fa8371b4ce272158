"""Saves the files of a worktree that is in no state to be saved as usual: a step was cut short.

The process may be dead, git's index locked, half written or gone, a repository nested among the
files. So the files are read with an index of their own, and what git would not take as it is
gets another name first. What a worker wrote is given up only once a ref keeps it.
"""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from loopctl.disk import describe
from loopctl.domain import Sha
from loopctl.errors import GitError, SandboxError
from loopctl.records import Rescued
from loopctl.sandbox.files import write_if_changed
from loopctl.sandbox.git import Git, git_words
from loopctl.sandbox.leftout import gitlinks, is_filled
from loopctl.sandbox.objects import Objects
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.survey import entries

_ANY_NAME: Final = ("core.protectHFS=false", "core.protectNTFS=false")
_GIT_NAME: Final = re.compile(r"\.git|git~\d+")
_ASIDE: Final = "git-set-aside"
_MOST_UNSEEN: Final = 3
_MESSAGE: Final = "Files of a step that was cut short"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a candidate's worktree was made from; on disk from its completion to its end.

    Attributes:
        tree: With which it was opened.
        ref: Under which its files are saved when a step in it is cut short.
    """

    base: Sha
    tree: str
    ref: str

    def write(self, path: Path) -> None:
        """Put it on the disk."""
        write_if_changed(path, json.dumps(asdict(self)).encode())


def origin_at(path: Path) -> Origin | None:
    """Return what :meth:`Origin.write` has written; ``None`` where nothing readable is."""
    try:
        fields = json.loads(path.read_bytes())
        return Origin(Sha(fields["base"]), fields["tree"], fields["ref"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rescue(layout: Layout, own: Git, objects: Objects, name: str) -> Rescued:
    """Return what became of the files of a worktree; never raises for the state they are in.

    Args:
        layout: Where the worktree is.
        own: git on the harness's own repository, without files.
        objects: The same repository.
        name: Of the sandbox. One in which no worker was at work has nothing to be saved.
    """
    origin = origin_at(layout.origins / name)
    files = layout.worktrees / name
    if origin is None or files.is_symlink() or not files.is_dir():
        return Rescued()
    try:
        tree, why = _saved(layout, own, files, origin)
        ref = _kept(objects, origin, tree)
    except GitError as error:
        return Rescued(folder=str(files), why=git_words(error))
    except (SandboxError, OSError) as error:
        said = describe(error) if isinstance(error, OSError) else str(error)
        return Rescued(folder=str(files), why=said)
    return Rescued(ref, folder=str(files) if why else "", why=why)


def _saved(layout: Layout, own: Git, files: Path, origin: Origin) -> tuple[str, str]:
    """Return the tree of the files, and why some of them are not in it where that is so."""
    with tempfile.TemporaryDirectory(dir=layout.root, prefix="rescue-") as folder:
        git = own.at(layout.git_dir, files, Path(folder, "index")).having(*_ANY_NAME)
        git.ask("read-tree", origin.base)
        unseen = _set_repositories_aside(files)
        _open_submodules(git, files)
        args = ("add", "--all", "--ignore-errors")
        added = git.run(*args)
        why = git_words(git.error(args, added)) if added.returncode != 0 else unseen
        return git.line("write-tree"), why


def _kept(objects: Objects, origin: Origin, tree: str) -> str:
    """Return the ref that keeps a tree from now on; empty where it holds nothing new."""
    kept = objects.kept_trees()
    known = {origin.tree, objects.tree_of(origin.base), *(tree for tree, _ in kept.values())}
    if tree in known:
        return ""
    ref, number = origin.ref, 1
    while ref in kept:
        number += 1
        ref = f"{origin.ref}-{number}"
    objects.keep(ref, tree, origin.base, _MESSAGE)
    return ref


def _set_repositories_aside(root: Path) -> str:
    """Give each ``.git`` but the root's own another name, under which git takes it for files.

    Returns:
        Why some folders cannot be looked into, which git would pass over in silence; empty where
        all can.
    """
    unseen: list[str] = []
    for folder, name in _git_names(str(root), unseen):
        number = 0
        while True:
            place = Path(folder, f"{_ASIDE}-{number}" if number else _ASIDE)
            if not os.path.lexists(place):
                break
            number += 1
        Path(folder, name).rename(place)
    return "; ".join(unseen[:_MOST_UNSEEN])


def _open_submodules(git: Git, root: Path) -> None:
    """Take submodules whose folders hold something for ordinary folders: git looks into those."""
    links = gitlinks(git)
    filled = [link for link in links if is_filled(Path(root, os.fsdecode(link)))]
    lines = b"".join(b"0 " + b"0" * len(links[link]) + b"\t" + link + b"\0" for link in filled)
    if lines:
        git.ask("update-index", "-z", "--index-info", stdin=lines)


def _git_names(root: str, unseen: list[str]) -> Iterator[tuple[str, str]]:
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            found = entries(folder)
        except OSError as error:
            unseen.append(describe(error))
            continue
        for entry in found:
            if (folder, entry.name) == (root, ".git"):
                continue
            if _is_refused(entry):
                yield folder, entry.name
            # What is set aside is not looked into.
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)


def _is_refused(entry: "os.DirEntry[str]") -> bool:
    return _is_git(entry.name) or (entry.name.casefold() == ".gitmodules" and entry.is_symlink())


def _is_git(name: str) -> bool:
    """Return whether some file system takes the name for ``.git``; some others are taken too."""
    plain = "".join(letter for letter in name if letter.isascii()).casefold()
    return _GIT_NAME.fullmatch(plain.partition(":")[0].rstrip(". ")) is not None


def forget(layout: Layout, name: str) -> None:
    """Tell that the files of a sandbox need no rescue any more."""
    with contextlib.suppress(FileNotFoundError):
        (layout.origins / name).unlink()
