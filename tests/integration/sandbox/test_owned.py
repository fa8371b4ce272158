"""What a worker or a kill does to a worktree's git files and links; the harness goes on as before."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.sandbox.hardlinks import linked
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.worktree import Worktree


@pytest.fixture
def sandbox(repo: OwnedRepository) -> Worktree:
    return repo.open_sandbox("T1", repo.head())


def admin(sandbox: Worktree) -> Path:
    """Return git's own folder for the worktree."""
    return Path((sandbox.workdir / ".git").read_text().removeprefix("gitdir: ").strip())


def to_folder(pointer: Path, _outside: Path) -> None:
    pointer.unlink()
    (pointer / "hooks").mkdir(parents=True)
    (pointer / "HEAD").write_text("ref: refs/heads/main\n")


def to_link(pointer: Path, outside: Path) -> None:
    pointer.unlink()
    pointer.symlink_to(outside)


def to_hard_link(pointer: Path, outside: Path) -> None:
    pointer.unlink()
    pointer.hardlink_to(outside)


def to_pipe(pointer: Path, _outside: Path) -> None:
    pointer.unlink()
    os.mkfifo(pointer)


def to_another(pointer: Path, outside: Path) -> None:
    pointer.chmod(0o644)
    pointer.write_text(f"gitdir: {outside.parent}\n")


SWAPS = [to_folder, to_link, to_hard_link, to_pipe, to_another, lambda path, _: path.unlink()]


def test_the_git_file_of_a_worktree_is_read_only(sandbox: Worktree) -> None:
    mode = stat.S_IMODE((sandbox.workdir / ".git").stat().st_mode)
    assert mode == 0o444


@pytest.mark.parametrize("swap", SWAPS)
def test_whatever_takes_the_place_of_the_git_file_changes_nothing(
    repo: OwnedRepository, sandbox: Worktree, tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("the user's\n")
    text = (sandbox.workdir / ".git").read_text()
    base = repo.tree_of(repo.head())
    swap(sandbox.workdir / ".git", outside)
    assert sandbox.snapshot() == base
    (sandbox.workdir / "new").write_text("work\n")
    tree = sandbox.snapshot()
    assert [change.path for change in repo.changes(base, tree)] == ["new"]
    sandbox.restore(base)
    assert (sandbox.workdir / ".git").read_text() == text
    assert stat.S_IMODE((sandbox.workdir / ".git").lstat().st_mode) == 0o444
    assert outside.read_text() == "the user's\n"
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""


@pytest.mark.parametrize("name", ["HEAD", "index"])
def test_a_link_in_gits_folder_of_a_worktree_is_not_written_through(
    repo: OwnedRepository, sandbox: Worktree, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("the user's\n")
    (admin(sandbox) / name).unlink()
    (admin(sandbox) / name).symlink_to(outside)
    sandbox.restore(repo.tree_of(repo.head()))
    assert outside.read_text() == "the user's\n"
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""


@pytest.mark.parametrize("what", ["commondir", "gitdir", "HEAD", "index", "."])
def test_a_worktree_whose_git_folder_is_broken_is_whole_after_a_restore(
    repo: OwnedRepository, sandbox: Worktree, tmp_path: Path, what: str
) -> None:
    broken = admin(sandbox) / what
    broken.rename(tmp_path / "away")
    if what in {"commondir", "gitdir"}:
        broken.write_text("/nowhere\n")
    tree = repo.tree_of(repo.head())
    assert sandbox.snapshot() == tree
    sandbox.restore(tree)
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""


def test_no_file_of_a_worktree_is_a_file_of_anybody_elses(
    users: Any, repo: OwnedRepository, sandbox: Worktree
) -> None:
    assert list(linked(sandbox.workdir)) == []
    blob = next((users.root / ".git/objects").glob("??/*"))
    places = {"a": users.root / "a", "b": users.root / "b", "new": users.root / "a", "c": blob}
    (users.root / "b").write_text("other\n")
    before = {place: place.read_bytes() for place in places.values()}
    for name, place in places.items():
        (sandbox.workdir / name).unlink(missing_ok=True)
        (sandbox.workdir / name).hardlink_to(place)
    tree = sandbox.snapshot()
    sandbox.restore(tree)
    assert list(linked(sandbox.workdir)) == []
    assert sandbox.snapshot() == tree
    sandbox.run("for name in *; do chmod u+w $name; echo changed >> $name; done", timeout_s=20)
    sandbox.restore(repo.tree_of(repo.head()))
    sandbox.close()
    assert {place: place.read_bytes() for place in places.values()} == before


@pytest.mark.parametrize("where", ["admin", "index"])
def test_a_worktree_that_a_kill_has_left_locked_is_made_anew_and_not_repaired(
    users: Any, sandbox: Worktree, where: str
) -> None:
    index = users.root / ".local/indexes/T1"
    for name in ("index.lock", "HEAD.lock"):
        place = admin(sandbox) if where == "admin" else index
        (place / name).write_bytes(b"half")
    (sandbox.workdir / "half").write_text("half")
    place = index / "index" if where == "index" else admin(sandbox) / "index"
    place.write_bytes(place.read_bytes()[:20])
    marks = [(folder, folder.stat().st_ino) for folder in (sandbox.workdir, index)]
    kept = [os.open(folder, os.O_RDONLY) for folder, _ in marks]
    repo = users.owned()
    repo.sync()
    again = repo.open_sandbox("T1", repo.head())
    assert [folder.stat().st_ino for folder, _ in marks] != [number for _, number in marks]
    for descriptor in kept:
        os.close(descriptor)
    assert sorted(path.name for path in again.workdir.iterdir()) == [".git", "a", "b"]
    assert [*index.glob("*.lock"), *admin(again).glob("*.lock")] == []
    assert again.snapshot() == repo.tree_of(repo.head())
    assert again.run("git status --short", timeout_s=20).stdout == b""
