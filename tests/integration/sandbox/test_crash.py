"""What a kill or a full disk leaves behind, the next call makes good."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from loopctl.errors import LoopctlError, RepositoryError, SandboxError
from loopctl.sandbox.checkout import LOOK

_LIFE = """
import os, sys, threading
from pathlib import Path
from loopctl.sandbox.repository import OwnedRepository
root = Path(sys.argv[1])
env = dict(os.environ)
repo = OwnedRepository(root, root / ".local", branch="loop/integration", env=env)
repo.sync()
print("ready", flush=True)
while True:
    sandbox = repo.open_sandbox("T1", repo.head())
    (sandbox.workdir / "new").write_text("x")
    tree = sandbox.snapshot()
    repo.keep("refs/loop/r/T1/main", tree, repo.head(), "kept")
    sandbox.restore(repo.tree_of(repo.head()))
    old = repo.integration()
    repo.advance(repo.commit(tree, old or repo.head(), "T1\\n\\nLoop-Key: k"), old)
"""


def wrapper(folder: Path, body: str) -> str:
    """A PATH on which ``git`` is a script that has ``$REAL``."""
    folder.mkdir()
    real = shutil.which("git")
    (folder / "git").write_text(f'#!/bin/sh\nREAL=\'{real}\'\n{body}\nexec "$REAL" "$@"\n')
    (folder / "git").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def works(users: Any) -> None:
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    assert sandbox.snapshot() == repo.tree_of(repo.head())
    sandbox.restore(repo.tree_of(repo.head()))
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""
    sandbox.close()
    repo.keep("refs/loop/r/T1/main", repo.tree_of(repo.head()), repo.head(), "kept")
    old = repo.integration()
    repo.advance(repo.commit(repo.tree_of("HEAD"), old or repo.head(), "T1"), old)
    git_dir = users.root / ".local" / "git"
    users.git(f"--git-dir={git_dir}", "fsck", "--strict")
    users.git("fsck", "--strict")
    local = users.root / ".local"
    known = {".git", "git", "worktrees", "indexes", "exchange", "origins", "trash", "shim"}
    others = {"gitconfig", "setup.lock", "worktrees.lock", "presence.lock"}
    assert {path.name for path in local.iterdir()} <= known | others
    assert list(Path(users.env["TMPDIR"]).iterdir()) == []
    assert list((local / "trash").iterdir()) == []
    assert [p for p in local.rglob("*.lock") if p.parent != local] == []


@pytest.mark.parametrize(
    "command",
    ["worktree", "read-tree", "add", "update-ref", "clone", "fetch"],
)
def test_a_kill_in_the_middle_of_git_is_made_good_by_the_next(
    users: Any, tmp_path: Path, command: str
) -> None:
    # git is started, and all of it is killed with the harness while it is at work.
    body = f"""
    case " $* " in *" {command} "*)
        "$REAL" "$@" & child=$!
        kill -KILL $child "$(cat '{tmp_path}/harness')" 2>/dev/null; exit 1;;
    esac"""
    env = {**users.env, "PATH": wrapper(tmp_path / "bin", body)}
    script = f"echo $$ > '{tmp_path}/harness'; exec '{sys.executable}' -c \"$0\" '{users.root}'"
    done = subprocess.run(
        ["sh", "-c", script, _LIFE], env=env, check=False, timeout=60, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL
    works(users)


@pytest.mark.parametrize("place", [".local/git/refs/loop/r/T1/main.lock", ".local/git/HEAD.lock"])
def test_a_lock_that_a_killed_git_has_left_is_removed_once_nobody_is_there(
    users: Any, place: str
) -> None:
    first = users.owned()
    first.sync()
    lock = users.root / place
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    users.owned().sync()
    assert lock.exists()
    del first
    works(users)


def test_the_lock_of_a_killed_landing_is_removed_and_no_other_of_the_users(users: Any) -> None:
    users.owned().sync()
    heads = users.root / ".git" / "refs" / "heads"
    (heads / "loop").mkdir()
    ours, theirs = heads / "loop" / "integration.lock", heads / "other.lock"
    ours.touch()
    theirs.touch()
    (users.root / ".local" / "landing").write_text(str(ours))
    works(users)
    assert theirs.exists()


def test_drafts_and_looks_of_dead_processes_are_swept_away_and_those_of_living_ones_stay(
    users: Any,
) -> None:
    users.owned().sync()
    local, temporary = users.root / ".local", Path(users.env["TMPDIR"])
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    dead = temporary / f"{LOOK}{ended.pid}-x"
    living = temporary / f"{LOOK}{os.getpid()}-x"
    for folder in (dead, living):
        folder.mkdir()
        (folder / "gitconfig").touch()
    drafts = [
        local / name
        for name in ("gitconfig.1.2.new", "git/config.1.2.new", "git/info/exclude.1.2.new")
    ]
    drafts += [local / "origins" / "T1.1.2.new", local / "shim" / "loop.1"]
    for draft in drafts:
        draft.touch()
    drafts.append(local / "clone-x")
    drafts[-1].mkdir()
    users.owned().sync()
    assert (dead.exists(), living.exists()) == (False, True)
    assert [draft for draft in drafts if draft.exists()] == []
    shutil.rmtree(living)
    works(users)


def test_kills_at_any_moment_are_made_good(users: Any) -> None:
    for round_ in range(4):
        harness = subprocess.Popen(
            [sys.executable, "-c", _LIFE, str(users.root)],
            env=users.env,
            stdout=subprocess.PIPE,
        )
        assert harness.stdout is not None
        with harness, harness.stdout as out:
            assert out.readline() == b"ready\n"
            threading.Event().wait(0.011 * round_)
            harness.kill()
        works(users)


def test_half_a_worktree_is_discarded(users: Any, repo: Any) -> None:
    local = users.root / ".local"
    (local / "git" / "worktrees" / "T1").mkdir(parents=True)
    (local / "git" / "worktrees" / "T1" / "locked").write_text("initializing")
    (local / "worktrees" / "T1").mkdir()
    (local / "worktrees" / "T1" / "half").write_text("x")
    works(users)


@pytest.mark.parametrize("head", ["0" * 40, "1" * 40, "", "ref: refs/heads/../x", "no head"])
def test_a_worktree_whose_head_names_nothing_does_not_keep_the_next_from_working(
    users: Any, head: str
) -> None:
    repo = users.owned()
    repo.sync()
    repo.open_sandbox("T1", repo.head())
    del repo
    (users.root / ".local" / "git" / "worktrees" / "T1" / "HEAD").write_text(f"{head}\n")
    works(users)


def test_set_ups_at_the_same_time_make_one(users: Any) -> None:
    errors: list[BaseException] = []

    def set_up() -> None:
        try:
            users.owned().sync()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=set_up) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert errors == []
    exclude = (users.root / ".git" / "info" / "exclude").read_text()
    assert exclude.count("/.local/") == 1
    works(users)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of 8 MB, or a skip where none can be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_and_nothing_is_lost(users: Any, small_disk: Path) -> None:
    moved = small_disk / "project"
    shutil.copytree(users.root, moved)
    users.root = moved
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    tree = sandbox.snapshot()
    filled = sandbox.run("head -c 20000000 /dev/urandom > big", timeout_s=30)
    assert b"No space left on device" in filled.stdout
    with pytest.raises(SandboxError, match="disk is full"):
        sandbox.snapshot()
    with pytest.raises(SandboxError, match="disk is full"):
        repo.open_sandbox("T2", repo.head())
    (sandbox.workdir / "big").unlink()
    assert sandbox.snapshot() == tree
    works(users)


def test_a_full_disk_at_set_up_is_told(users: Any, small_disk: Path) -> None:
    users.commit(big="x" * 100)
    (users.root / "noise").write_bytes(os.urandom(1_000_000))
    users.commit("noise")
    moved = small_disk / "project"
    shutil.copytree(users.root, moved)
    users.root = moved
    fill = small_disk / "fill"
    with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    with pytest.raises(LoopctlError, match="disk is full"):
        users.owned().sync()
    fill.unlink()
    works(users)


def test_a_file_size_limit_is_an_error_of_the_task(users: Any, repo: Any) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    (sandbox.workdir / "big").write_bytes(os.urandom(3_000_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        with pytest.raises(SandboxError, match="could not be saved"):
            sandbox.snapshot()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    tree = sandbox.snapshot()
    assert tree != repo.tree_of(repo.head())


def test_a_read_only_git_folder_is_told(users: Any) -> None:
    if os.getuid() == 0:
        pytest.skip("root writes everywhere")
    (users.root / ".git" / "info").chmod(0o500)
    (users.root / ".git" / "info" / "exclude").chmod(0o400)
    with pytest.raises((SandboxError, RepositoryError)):
        users.owned().sync()
