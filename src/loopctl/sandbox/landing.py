"""Fast-forwards the user's current branch: the one place where the user's files are checked out.

git's own merge does it, so that index, reflog and locks are as after any other; without hooks, and
with ignored files held as dear as all others.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loopctl.domain import Sha
from loopctl.errors import LandingRefusedError, SandboxError
from loopctl.sandbox.checkout import Checkout
from loopctl.sandbox.git import Git
from loopctl.sandbox.objects import Objects
from loopctl.sandbox.survey import refuse_filters

_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}
_FILE_SETTINGS = r"^core\.(autocrlf|eol|safecrlf|filemode|ignorecase|symlinks|precomposeunicode)$"


@dataclass(frozen=True, slots=True)
class FastForward:
    """What was landed: the branch (without ``refs/heads/``), from where to where."""

    branch: str
    old: Sha
    new: Sha
    commits: int


def fast_forward(
    checkout: Checkout,
    own: Git,
    objects: Objects,
    tip: Sha | None,
    name: str,
    env: Mapping[str, str],
) -> FastForward:
    """Move the user's current branch, index and files up to the integration branch.

    Args:
        checkout: As it is now.
        own: git on the harness's own repository, which holds ``tip``.
        objects: The same repository.
        tip: The integration branch's commit; ``None`` where there is none.
        name: Its name, for messages.
        env: The caller's environment, for the user's own settings of line endings.

    Raises:
        LandingRefusedError: Nothing was changed; says why.
    """
    if tip is None:
        raise LandingRefusedError(f"there is nothing to land: no branch {name} yet")
    old = checkout.head
    _refuse_state(checkout, objects, tip, name)
    _refuse_filtered(own, objects.scratch, old, tip, name)
    count = int(own.line("rev-list", "--count", f"{old}..{tip}"))
    users = own.on_users(checkout.git_dir, checkout.root)
    users = users.having(
        *file_settings(users, env), GIT_REFLOG_ACTION="loop land", **_no_filters(users)
    )
    with _kept_as_it_is(checkout.git_dir / "ORIG_HEAD"):
        _merge(users, checkout.root, tip, name)
    return FastForward(checkout.branch.removeprefix("refs/heads/"), old, tip, count)


def _merge(users: Git, root: Path, tip: Sha, name: str) -> None:
    result = users.run(
        *("merge", "--ff-only", "--no-stat", "--no-autostash", "--no-verify-signatures"),
        *("--no-overwrite-ignore", "--quiet", tip),
        cwd=root,
    )
    if result.returncode != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise LandingRefusedError(
            f"git does not fast-forward to {name}, and nothing was changed: {said}"
        )


@contextmanager
def _kept_as_it_is(path: Path) -> Iterator[None]:
    """Put a file of the user's git folder back where what is done inside is refused.

    git writes down where HEAD was before it looks whether it can move it.
    """
    content = path.read_bytes() if path.exists() else None
    try:
        yield
    except LandingRefusedError:
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
        raise


def file_settings(users: Git, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return how the user has files written and read: line endings, modes, links."""
    found = users.as_user(env).run("config", "--null", "--get-regexp", _FILE_SETTINGS)
    records = found.stdout.decode(errors="surrogateescape").split("\0")
    pairs = (record.partition("\n") for record in records if record)
    return tuple(f"{key}={value}" if mark else key for key, mark, value in pairs)


def _no_filters(users: Git) -> dict[str, str]:
    """Return variables that empty every filter of the repository's own configuration.

    No file that changes has one, but git may look at others again to see whether they changed.
    """
    found = users.run("config", "--null", "--name-only", "--get-regexp", r"^filter\.")
    names = sorted(set(filter(None, found.stdout.decode(errors="surrogateescape").split("\0"))))
    variables = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        is_flag = name.endswith(".required")
        variables[f"GIT_CONFIG_VALUE_{number}"] = "false" if is_flag else ""
    return variables


def _refuse_state(checkout: Checkout, objects: Objects, tip: Sha, name: str) -> None:
    if not checkout.branch:
        raise LandingRefusedError(
            "HEAD is detached, so there is no branch to move; `git switch` to the branch that "
            "should take the work, and run `loop land` again"
        )
    for mark, what in _UNDER_WAY.items():
        if (checkout.git_dir / mark).exists():
            raise LandingRefusedError(
                f"{what} is under way in {checkout.root}; finish or abort it first"
            )
    if objects.is_ancestor(tip, checkout.head):
        raise LandingRefusedError(f"there is nothing to land: HEAD already contains {name}")
    if not objects.is_ancestor(checkout.head, tip):
        raise LandingRefusedError(
            f"{checkout.branch.removeprefix('refs/heads/')} and {name} have diverged; bring them "
            f"together with `git merge {name}`"
        )


def _refuse_filtered(own: Git, scratch: Path, old: Sha, tip: Sha, name: str) -> None:
    with tempfile.TemporaryDirectory(dir=scratch, prefix="land-") as folder:
        index = own.having(GIT_INDEX_FILE=str(Path(folder, "index")))
        index.ask("read-tree", tip)
        try:
            refuse_filters(index, old)
        except SandboxError as error:
            raise LandingRefusedError(
                f"{error}; land it with `git merge --ff-only {name}`"
            ) from error
