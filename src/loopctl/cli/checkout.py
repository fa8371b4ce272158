"""What can be read about a checkout from git's files alone: no process, no git library.

For hints only: nothing is decided on what is found here, and whatever is unusual is "unknown".
"""

from pathlib import Path


def git_folder(checkout: Path) -> Path | None:
    """Return the ``.git`` folder of a checkout, also of a linked worktree."""
    dot_git = checkout / ".git"
    if dot_git.is_dir():
        return dot_git
    text = _read(dot_git)
    if text.startswith("gitdir:"):
        return (checkout / text.removeprefix("gitdir:").strip()).resolve()
    return None


def current_branch(checkout: Path) -> str:
    """Return the branch that is checked out; empty where HEAD is detached or unreadable."""
    folder = git_folder(checkout)
    head = _read(folder / "HEAD") if folder else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def branch_commit(checkout: Path, branch: str) -> str:
    """Return the commit of a branch; empty where there is none or it cannot be told."""
    folder = git_folder(checkout)
    if folder is None or not branch:
        return ""
    shared = _read(folder / "commondir")
    common = (folder / shared).resolve() if shared else folder
    loose = _read(common / "refs" / "heads" / branch)
    if loose:
        return loose
    for line in _read(common / "packed-refs").splitlines():
        commit, _, name = line.partition(" ")
        if name == f"refs/heads/{branch}":
            return commit
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
