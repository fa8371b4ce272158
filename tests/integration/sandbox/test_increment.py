"""A snapshot without a process is the snapshot that git would have made, whatever was done."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopctl.errors import GitError, SandboxError
from loopctl.sandbox.worktree import Worktree

NAMES = [
    "a.txt",
    "b.txt",
    "d/c.txt",
    "d/e/f.txt",
    "new.txt",
    "d/new.bin",
    "x.ignored",
    "d/.gitignore",
]
CONTENTS = ["", "one\n", "two\n", "six\r\n", "no end", "\0\1", "*.txt\n", "new.*\n", "!x.ignored\n"]


def write(root: Path, name: str, contents: str) -> None:
    path = root / name
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(contents, newline="")


def write_with_the_old_times(root: Path, name: str, contents: str) -> None:
    path = root / name
    if path.is_file():
        found = path.stat()
        path.write_text(contents[: found.st_size].ljust(found.st_size, "z"), newline="")
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def remove(root: Path, name: str, _contents: str) -> None:
    (root / name).unlink(missing_ok=True)


def make_executable(root: Path, name: str, contents: str) -> None:
    if (root / name).is_file():
        (root / name).chmod(0o755 if len(contents) % 2 else 0o644)


def link(root: Path, name: str, _contents: str) -> None:
    path = root / name
    if path.is_file() or path.is_symlink():
        path.unlink()
        path.symlink_to("b.txt" if name != "b.txt" else "a.txt")


def make_fifo(root: Path, name: str, _contents: str) -> None:
    path = root / name
    if path.is_file() and not path.is_symlink():
        path.unlink()
        os.mkfifo(path)


def replace_by_rename(root: Path, name: str, contents: str) -> None:
    path = root / name
    if path.is_file():
        (root / "draft").write_text(contents, newline="")
        (root / "draft").replace(path)


def set_attributes(root: Path, _name: str, contents: str) -> None:
    (root / ".gitattributes").write_text("* text=auto\n" if contents else "", newline="")


def drop_attributes(root: Path, _name: str, _contents: str) -> None:
    (root / ".gitattributes").unlink(missing_ok=True)


DEEDS: list[Callable[[Path, str, str], None]] = [
    write,
    write,
    write,
    write_with_the_old_times,
    remove,
    make_executable,
    link,
    make_fifo,
    replace_by_rename,
    set_attributes,
    drop_attributes,
]

deeds = st.lists(
    st.tuples(st.sampled_from(DEEDS), st.sampled_from(NAMES), st.sampled_from(CONTENTS)), max_size=3
)


@pytest.fixture
def repo(make: Callable[..., Any]) -> Any:
    users = make()
    (users.root / "d" / "e").mkdir(parents=True)
    files = {"a.txt": "one\n", "b.txt": "two\n", "d/c.txt": "three\n", "d/e/f.txt": "four\n"}
    users.commit("begin", **files, **{".gitignore": "*.ignored\n"})
    owned = users.owned()
    owned.sync()
    return owned


def git_beside(repo: Any, root: Path, index: Path) -> Any:
    """git with an index of its own that begins where the sandbox does."""
    git = repo._own.at(repo._layout.git_dir, root, index)
    git.ask("read-tree", repo.head())
    return git


def seen_by(git: Any) -> str:
    try:
        git.ask("add", "--all")
    except GitError:
        return "refused"
    return str(git.line("write-tree"))


def snapshot(sandbox: Any) -> str:
    try:
        return str(sandbox.snapshot())
    except SandboxError:
        return "refused"


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(deeds, min_size=1, max_size=5))
def test_every_snapshot_is_the_one_that_git_would_make(
    repo: Any, tmp_path: Path, steps: list[list[tuple[Any, str, str]]]
) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    sandbox.snapshot()
    git = git_beside(repo, sandbox.workdir, tmp_path / "beside")
    for step in steps:
        for deed, name, contents in step:
            deed(sandbox.workdir, name, contents)
        assert snapshot(sandbox) == seen_by(git)
    sandbox.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time that git had to look."""
    found: list[str] = []
    stage = Worktree._stage

    def staged(self: Worktree, seen: Any) -> None:
        found.append(self.name)
        stage(self, seen)

    monkeypatch.setattr(Worktree, "_stage", staged)
    return found


def test_git_does_not_look_where_only_contents_have_changed(repo: Any, looks: list[str]) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    first = sandbox.snapshot()
    assert len(looks) == 1
    (sandbox.workdir / "a.txt").write_text("another\n")
    second = sandbox.snapshot()
    (sandbox.workdir / "a.txt").write_text("one\n")
    assert (len(looks), first == second, sandbox.snapshot() == first) == (1, False, True)
    (sandbox.workdir / "new").write_text("x")
    sandbox.snapshot()
    assert len(looks) == 2


def test_a_restored_worktree_is_looked_at_by_git(repo: Any, looks: list[str]) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    first = sandbox.snapshot()
    (sandbox.workdir / "a.txt").write_text("another\n")
    second = sandbox.snapshot()
    sandbox.restore(first)
    before = len(looks)
    assert (sandbox.snapshot(), len(looks)) == (first, before + 1)
    sandbox.restore(second)
    assert (sandbox.workdir / "a.txt").read_text() == "another\n"


def test_what_a_worker_writes_into_the_link_to_its_repository_changes_nothing(repo: Any) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    sandbox.snapshot()
    (sandbox.workdir / ".git").write_text("gitdir: /nowhere\n")
    (sandbox.workdir / "a.txt").write_text("another\n")
    tree = sandbox.snapshot()
    assert repo.read_blob(tree, "a.txt") == b"another\n"


def test_a_file_that_is_too_large_to_be_held_is_left_to_git(repo: Any, looks: list[str]) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    sandbox.snapshot()
    (sandbox.workdir / "a.txt").write_bytes(b"x" * ((8 << 20) + 1))
    tree = sandbox.snapshot()
    assert len(looks) == 2
    assert repo.read_blob(tree, "a.txt", 10) == b"x" * 10
