"""Finds the user's checkout; starts no process, so that every command can afford it."""

from pathlib import Path

from loopctl.errors import RepositoryError


def find_checkout(directory: Path) -> Path:
    """Return the root of the checkout around ``directory``; starts no process.

    Raises:
        RepositoryError: There is none.
    """
    start = directory.resolve()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
        own = next((one for one in (folder, *folder.parents) if one.name == ".git"), None)
        if own is not None and (own / "HEAD").is_file():
            raise RepositoryError(
                f"{start} is inside the repository's own folder; run loop in the checkout, "
                f"{own.parent}"
            )
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            raise RepositoryError(
                f"{folder} is a bare repository; run loop in a checkout of it "
                "(`git worktree add ../work`)"
            )
    raise RepositoryError(
        f"{start} is not in a git repository; run `git init` and commit what is there, "
        "or name the checkout with -C"
    )
