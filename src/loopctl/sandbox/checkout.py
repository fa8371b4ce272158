"""Says whether ``loop`` can work on the user's checkout; changes nothing."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from loopctl.domain import Sha
from loopctl.errors import GitError, RepositoryError
from loopctl.sandbox.git import Git, global_config_text, require_git

LOOK = f"loop-{os.getuid()}-look-"
"""What the names of temporary folders begin with in which a checkout is looked at; a pid follows."""

_ORDINARY = frozenset(
    ["noop", "preciousobjects", "objectformat", "worktreeconfig", "relativeworktrees", "refstorage"]
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """The user's checkout.

    Attributes:
        root: The folder that holds its files.
        git_dir: Its own git folder; for a linked worktree the one below ``worktrees/``.
        common_dir: The git folder with objects and branches.
        head: The commit of HEAD.
        branch: The current branch's full name; empty where HEAD is detached.
    """

    root: Path
    git_dir: Path
    common_dir: Path
    head: Sha
    branch: str


def inspect(root: Path, path: str) -> Checkout:
    """Return what there is to know of the checkout at ``root``.

    Args:
        root: What ``find_checkout`` returned.
        path: The caller's PATH, on which git is looked for.

    Raises:
        RepositoryError: It cannot be worked on: says why and what mends it.
        MachineError: git is missing or too old.
    """
    if "\n" in str(root):
        raise RepositoryError(
            f"{str(root)!r} has a line break in its name, which git's own files cannot hold; "
            "rename the folder"
        )
    # Not in .local, which may not be there yet; by its name the next set-up finds it after a kill.
    with tempfile.TemporaryDirectory(prefix=f"{LOOK}{os.getpid()}-") as folder:
        trusted = Path(folder, "gitconfig")
        trusted.write_text(global_config_text(*trusted_folders(root)))
        git = Git(path, trusted, is_own=False)
        require_git(git)
        git_dir, common_dir = _folders(git, root)
        users = git.on_users(git_dir)
        _refuse_unsupported(users, root, common_dir)
        return Checkout(root, git_dir, common_dir, _head(users, root), _branch(users))


def trusted_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders by which git may name the checkout when it asks who owns it."""
    dot_git = root / ".git"
    if dot_git.is_dir():
        return (root, dot_git)
    pointer = dot_git.read_text(errors="surrogateescape").removeprefix("gitdir:").strip()
    git_dir = (root / pointer).resolve()
    common = git_dir / "commondir"
    if not common.is_file():
        return (root, dot_git, git_dir)
    shared = (git_dir / common.read_text(errors="surrogateescape").strip()).resolve()
    return (root, dot_git, git_dir, shared, shared.parent)


def _folders(git: Git, root: Path) -> tuple[Path, Path]:
    # The one call that searches for a repository: it finds the user's.
    args = ("-C", str(root), "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir")
    try:
        lines = git.ask(*args).decode(errors="surrogateescape").split("\n")
        bare = git.line("-C", str(root), "rev-parse", "--is-bare-repository")
    except GitError as error:
        raise RepositoryError(f"{root} cannot be read as a git repository: {error}") from error
    if bare == "true":
        raise RepositoryError(
            f"{root} is a bare repository; run loop in a checkout of it (`git worktree add`)"
        )
    return Path(lines[0]), Path(lines[1])


def _refuse_unsupported(git: Git, root: Path, common_dir: Path) -> None:
    if (common_dir / "objects").is_symlink():
        raise RepositoryError(
            f"{common_dir / 'objects'} is a symbolic link, which git refuses to clone from; "
            "run loop in an ordinary clone"
        )
    listed = git.run("config", "--local", "--list", "--name-only", "-z")
    names = listed.stdout.decode(errors="replace").lower().split("\0")
    if any(name.startswith("remote.") and name.endswith(".promisor") for name in names) or (
        "extensions.partialclone" in names
    ):
        raise RepositoryError(
            f"{root} is a partial clone: objects that it lacks cannot be fetched unattended; "
            "run `git fetch --refetch --no-filter` and remove its `promisor` and "
            "`partialclonefilter` settings, or run loop in a full clone"
        )
    foreign = [
        name
        for name in names
        if name.startswith("extensions.") and name.removeprefix("extensions.") not in _ORDINARY
    ]
    if foreign:
        raise RepositoryError(f"{root} uses {foreign[0]}, which loop does not know")


def _head(git: Git, root: Path) -> Sha:
    found = git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if found.returncode != 0:
        raise RepositoryError(
            f"{root} has no commit yet; commit something first "
            "(`git add -A && git commit -m start`)"
        )
    return Sha(found.stdout.decode().strip())


def _branch(git: Git) -> str:
    return (
        git.run("symbolic-ref", "--quiet", "HEAD").stdout.decode(errors="surrogateescape").strip()
    )
