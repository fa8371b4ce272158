"""Sets up ``.local/``: the harness's own repository and what surrounds it.

Idempotent, safe against other processes doing the same, and whole after a kill at any point: what
counts is made under another name and renamed.
"""

import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loopctl import failpoints
from loopctl.errors import GitError, RepositoryError
from loopctl.sandbox import environment, proctree
from loopctl.sandbox.checkout import LOOK, Checkout, trusted_folders
from loopctl.sandbox.files import move, remove_tree, write_if_changed
from loopctl.sandbox.git import Git, global_config_text
from loopctl.sandbox.lock import Presence, locked

USER_HEAD = "refs/user/HEAD"
_SHA256_DIGITS = 64
_PRIVATE = "core.sharedRepository=0600"
"""Nobody but the user reads what a run keeps."""

_TEMPORARY = (
    *("marker-*", "carry-*", "wip-*", "pack-*", "rescue-*", "land-*", "mcp-*", "clone-*"),
    "trash/*",
)

# Caches that tools leave everywhere: no part of a diff, though a project did not ignore them.
CACHES = (
    "__pycache__/",
    "*.pyc",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is below ``.local/``."""

    root: Path

    @property
    def git_dir(self) -> Path:
        """The harness's own repository."""
        return self.root / "git"

    @property
    def worktrees(self) -> Path:
        """One folder a sandbox."""
        return self.root / "worktrees"

    @property
    def indexes(self) -> Path:
        """One index a sandbox, out of its worktree's reach."""
        return self.root / "indexes"

    @property
    def exchange(self) -> Path:
        """One folder a sandbox: observation and outbox."""
        return self.root / "exchange"

    @property
    def origins(self) -> Path:
        """One file for each sandbox in which a worker is at work: what it was made from."""
        return self.root / "origins"

    @property
    def trash(self) -> Path:
        """What is being removed."""
        return self.root / "trash"

    @property
    def per_sandbox(self) -> tuple[Path, ...]:
        """The folders in which a sandbox has something under its name."""
        return (self.worktrees, self.indexes, self.exchange, self.origins)

    @property
    def shim(self) -> Path:
        """Holds ``loop``; first on the PATH of commands."""
        return self.root / "shim"

    @property
    def global_config(self) -> Path:
        """Git's global configuration in the harness's calls."""
        return self.root / "gitconfig"

    @property
    def worktree_lock(self) -> Path:
        """Held while a worktree is added or removed."""
        return self.root / "worktrees.lock"

    @property
    def landing(self) -> Path:
        """Exists while a branch of the user's is being moved; names its lock."""
        return self.root / "landing"

    def scratch(self, name: str) -> Path:
        """Return a sandbox's home and temporary files.

        Not below ``.local``: a socket's path has at most 107 bytes, and programs make theirs there.
        """
        mark = hashlib.sha256(os.fsencode(self.root / name)).hexdigest()[:12]
        return Path(tempfile.gettempdir(), f"loop-{os.getuid()}-{mark}")

    def admin(self, name: str) -> Path:
        """Return git's own folder for a worktree."""
        return self.git_dir / "worktrees" / name


def set_up(
    layout: Layout, checkout: Checkout, git: Git, share: tuple[str, ...], env: Mapping[str, str]
) -> Presence:
    """Make what is not there yet, and renew what may have changed.

    Where no other harness uses the folder, what a killed one has left locked is unlocked.

    Args:
        layout: Where to make it.
        checkout: The user's checkout, as it is now.
        git: Without a repository.
        share: Folders of the checkout that worktrees see; no part of any diff.
        env: The caller's environment.

    Returns:
        What tells other processes that this one uses the folder; to be held on to.

    Raises:
        RepositoryError: The user's repository cannot be cloned; says why.
    """
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    layout.root.chmod(0o700)
    presence = Presence(layout.root / "presence.lock")
    with locked(layout.root / "setup.lock"):
        write_if_changed(layout.global_config, global_config(layout, checkout))
        _mark(layout, git)
        _exclude_from_user(layout, checkout)
        if not layout.git_dir.exists():
            _clone(layout, checkout, git)
        _configure(layout, checkout, git, share, env)
        for folder in layout.per_sandbox:
            folder.mkdir(mode=0o700, exist_ok=True)
        layout.trash.mkdir(mode=0o700, exist_ok=True)
        environment.write_shim(layout.shim)
        if presence.is_alone():
            proctree.end_strays()
            _unlock(layout)
            _sweep(layout)
        presence.join()
    return presence


def _unlock(layout: Layout) -> None:
    """Remove the locks of git calls that were killed together with their harness."""
    for pattern in ("*.lock", "refs/**/*.lock"):
        for lock in layout.git_dir.glob(pattern):
            lock.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        # The one lock of ours in the user's repository: on the branch that was being moved.
        Path(os.fsdecode(layout.landing.read_bytes())).unlink(missing_ok=True)
        layout.landing.unlink()


def _sweep(layout: Layout) -> None:
    """Remove what killed harnesses have left half made or half removed."""
    for pattern in _TEMPORARY:
        for left in layout.root.glob(pattern):
            remove_tree(left)
    drafts = [
        folder.glob("*.new")
        for folder in (layout.root, layout.git_dir, layout.git_dir / "info", layout.origins)
    ]
    for draft in itertools.chain(*drafts, layout.shim.glob("loop.*")):
        remove_tree(draft)
    for look in Path(tempfile.gettempdir()).glob(f"{LOOK}*"):
        pid = look.name.removeprefix(LOOK).partition("-")[0]
        if pid.isdecimal() and not proctree.is_alive(int(pid)):
            remove_tree(look)
    for sandbox in layout.exchange.iterdir():
        remove_tree(layout.scratch(sandbox.name))
    # A rescue needs the files alone. What git itself knows of a worktree may name a commit that is
    # not there, and would keep every fetch from working.
    for admin in (layout.git_dir / "worktrees").glob("*"):
        remove_tree(admin)


def _mark(layout: Layout, git: Git) -> None:
    """Make ``.local`` a small repository with a commit: ``git clean -fdx`` passes those by."""
    if (layout.root / ".git").exists():
        return
    with tempfile.TemporaryDirectory(dir=layout.root, prefix="marker-") as folder:
        git.having(_PRIVATE).ask("init", "--quiet", "--template=", folder)
        made = git.at(Path(folder, ".git"))
        tree = made.line("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"")
        commit = made.line("commit-tree", "-F", "-", tree, stdin=b"The harness's own folder\n")
        made.ask("update-ref", "HEAD", commit)
        exclude = Path(folder, ".git", "info", "exclude")
        exclude.parent.mkdir(mode=0o700, exist_ok=True)
        write_if_changed(exclude, b"*\n")
        move(Path(folder, ".git"), layout.root / ".git")


def _exclude_from_user(layout: Layout, checkout: Checkout) -> None:
    """Add ``/.local/`` to the user's ``info/exclude``; its other bytes stay."""
    if not layout.root.is_relative_to(checkout.root):
        return
    line = f"/{layout.root.relative_to(checkout.root)}/".encode(errors="surrogateescape")
    exclude = checkout.common_dir / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    present = exclude.read_bytes() if exclude.exists() else b""
    if line not in present.splitlines():
        failpoints.reach("sandbox.before_exclude")
        with exclude.open("ab") as file:
            file.write((b"" if not present or present.endswith(b"\n") else b"\n") + line + b"\n")
        failpoints.reach("sandbox.after_exclude")


def _clone(layout: Layout, checkout: Checkout, git: Git) -> None:
    # What an earlier, killed clone left is under another name and goes.
    for left in layout.root.glob("clone-*"):
        remove_tree(left)
    folder = Path(tempfile.mkdtemp(dir=layout.root, prefix="clone-"))
    # Objects that the user's repository only borrows must be ours: the lender may clean up.
    borrowed = (checkout.common_dir / "objects" / "info" / "alternates").exists()
    args = [
        *("clone", "--quiet", "--bare", "--template=", "--no-recurse-submodules"),
        *(["--dissociate"] if borrowed else []),
        *("--", str(checkout.root), str(folder / "git")),
    ]
    try:
        git.having("transfer.fsckObjects=false", _PRIVATE).ask(*args)
    except GitError as error:
        remove_tree(folder)
        said = error.args[2].strip() or "git clone ended without a message"
        raise RepositoryError(f"{checkout.root} cannot be cloned: {said}") from error
    # Folders of objects and refs are made now: libgit2 would make those that lack readable for others.
    # The objects themselves may be the user's own files, under a second name.
    (folder / "git" / "refs" / "loop").mkdir(parents=True, exist_ok=True)
    for number in range(256):
        (folder / "git" / "objects" / f"{number:02x}").mkdir(exist_ok=True)
    for made in (folder / "git").rglob("*"):
        if made.is_dir():
            made.chmod(0o700)
    move(folder / "git", layout.git_dir)
    shutil.rmtree(folder, ignore_errors=True)


def _configure(
    layout: Layout, checkout: Checkout, git: Git, share: tuple[str, ...], env: Mapping[str, str]
) -> None:
    write_if_changed(layout.git_dir / "config", config_text(checkout.head))
    patterns = [
        *_lines(_users_ignore_file(git, checkout, env)),
        *_lines(checkout.common_dir / "info" / "exclude"),
        *(pattern.encode() for pattern in CACHES),
        # Anchored, and without a slash at the end, so that a symbolic link of that name matches.
        *(f"/{name.strip('/')}".encode() for name in share),
    ]
    (layout.git_dir / "info").mkdir(mode=0o700, exist_ok=True)
    write_if_changed(layout.git_dir / "info" / "exclude", b"\n".join([*patterns, b""]))


def global_config(layout: Layout, checkout: Checkout) -> bytes:
    """Return what stands for the user's global configuration: which folders git may enter."""
    return global_config_text(*trusted_folders(checkout.root), layout.git_dir).encode(
        errors="surrogateescape"
    )


def config_text(some_object: str) -> bytes:
    """Return the whole configuration of the harness's own repository.

    Args:
        some_object: Any id of the repository; its length tells the hash.
    """
    is_sha256 = len(some_object) == _SHA256_DIGITS
    extensions = "[extensions]\n\tobjectformat = sha256\n" if is_sha256 else ""
    return (
        f"[core]\n\trepositoryformatversion = {int(is_sha256)}\n\tbare = true\n"
        "\tfilemode = true\n\thooksPath = /dev/null\n\tsharedRepository = 0600\n"
        f"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n{extensions}"
    ).encode()


def _users_ignore_file(git: Git, checkout: Checkout, env: Mapping[str, str]) -> Path | None:
    """Return the file of patterns that the user ignores everywhere, like editor folders."""
    home = env.get("HOME")
    if not home:
        return None
    asking = git.on_users(checkout.git_dir).as_user(env)
    found = asking.run("config", "--path", "core.excludesFile")
    named = found.stdout.decode(errors="surrogateescape").strip()
    config = env.get("XDG_CONFIG_HOME") or str(Path(home, ".config"))
    return Path(named) if named else Path(config, "git", "ignore")


def _lines(path: Path | None) -> list[bytes]:
    with contextlib.suppress(OSError):
        return path.read_bytes().splitlines() if path else []
    return []
