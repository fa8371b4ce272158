import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Sha
from loopctl.errors import MachineError, RepositoryError
from loopctl.sandbox import git as git_module
from loopctl.sandbox.checkout import inspect

Make = Callable[..., Any]


def lands(users: Any, root: Path | None = None) -> None:
    """A whole life of a task works on this repository."""
    repo = users.owned(root)
    repo.sync()
    head = repo.head()
    assert head == users.git("rev-parse", "HEAD", cwd=root)
    sandbox = repo.open_sandbox("T1", head)
    assert sandbox.snapshot() == repo.tree_of(head)
    assert sandbox.run("git log -p > /dev/null && echo new > new", timeout_s=20).returncode == 0
    commit = repo.commit(sandbox.snapshot(), head, "T1\n\nLoop-Task: T1\nLoop-Key: k\n")
    repo.advance(commit, None)
    sandbox.close()
    assert users.git("show", "loop/integration:new", cwd=root) == "new"
    assert users.git("fsck", "--strict", cwd=root) is not None
    assert users.git("status", "--porcelain", cwd=root) == ""
    assert len(repo.landings()) == 1


@pytest.mark.parametrize("name", ["with space", "ünï/cödé", "quo'te\"s", "semi;$(x)", "-dash"])
def test_odd_paths(make: Make, name: str) -> None:
    users = make(name)
    users.commit(a="1")
    lands(users)


def test_a_path_through_a_link(make: Make, tmp_path: Path) -> None:
    users = make("real")
    users.commit(a="1")
    (tmp_path / "link").symlink_to(users.root)
    lands(users, tmp_path / "link")


def test_a_detached_head(users: Any) -> None:
    users.git("checkout", "-q", "--detach", "HEAD~1")
    users.commit("on no branch", d="x")
    lands(users)


def test_a_linked_worktree(users: Any, tmp_path: Path) -> None:
    users.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    users.git("commit", "-q", "--allow-empty", "-m", "side", cwd=tmp_path / "side")
    lands(users, tmp_path / "side")
    assert not (users.root / ".local").exists()


def test_a_shallow_clone_also_when_it_gets_deeper(users: Any, tmp_path: Path) -> None:
    for number in range(5):
        users.commit(f"{number}", a=str(number))
    clone = tmp_path / "shallow"
    users.git("clone", "-q", "--depth=2", f"file://{users.root}", str(clone))
    lands(users, clone)
    users.git("fetch", "-q", "--deepen=2", cwd=clone)
    users.git("commit", "-q", "--allow-empty", "-m", "more", cwd=clone)
    repo = users.owned(clone)
    repo.sync()
    assert repo.head() == users.git("rev-parse", "HEAD", cwd=clone)


def test_borrowed_objects_are_copied(users: Any, tmp_path: Path) -> None:
    clone = tmp_path / "borrower"
    users.git("clone", "-q", "--shared", str(users.root), str(clone))
    lands(users, clone)
    repo = users.owned(clone)
    shutil.rmtree(users.root)
    assert repo.open_sandbox("T2", repo.head()).snapshot() == repo.tree_of(repo.head())


def test_sha256(make: Make) -> None:
    users = make("long", "--object-format=sha256")
    users.commit(a="1")
    lands(users)


def test_a_submodule_is_an_empty_folder_and_stays_what_it_is(users: Any, make: Make) -> None:
    part = make("part")
    part.commit(p="1")
    users.git("submodule", "--quiet", "add", str(part.root), "sub")
    users.commit("with a submodule")
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    assert list((sandbox.workdir / "sub").iterdir()) == []
    assert sandbox.snapshot() == repo.tree_of(repo.head())
    lands(users)


def test_another_accounts_repository(users: Any) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    for path in (users.root, *users.root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    tree = sandbox.run("echo new > new", timeout_s=20) and sandbox.snapshot()
    repo.advance(repo.commit(tree, repo.head(), "T1"), None)


def test_odd_branch_and_tag_names_and_a_branch_that_became_a_folder(users: Any) -> None:
    users.git("branch", "topic")
    users.git("tag", "ünï")
    users.git("tag", "-a", "-m", "x", "v1")
    repo = users.owned()
    repo.sync()
    users.git("branch", "-m", "topic", "topic/deeper")
    repo.sync()
    lands(users)


def test_a_rewritten_branch_is_followed(users: Any) -> None:
    repo = users.owned()
    repo.sync()
    users.git("commit", "-q", "--amend", "-m", "rewritten")
    repo.sync()
    assert repo.head() == users.git("rev-parse", "HEAD")


def test_a_worktree_on_a_branch_does_not_stop_the_fetch(users: Any) -> None:
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    assert sandbox.run("git checkout -q main", timeout_s=20).returncode == 0
    new = users.commit("third", a="3")
    repo.sync()
    assert repo.head() == new


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda _: None, "no commit yet"),
        (lambda root: (root / ".git" / "HEAD").unlink(), "cannot be read as a git repository"),
    ],
)
def test_a_repository_without_a_commit_or_broken_is_refused(
    make: Make, prepare: Callable[[Path], None], said: str
) -> None:
    users = make("empty")
    prepare(users.root)
    with pytest.raises(RepositoryError, match=said):
        users.owned()
    assert not (users.root / ".local").exists()


def test_a_bare_repository_is_refused(users: Any, tmp_path: Path) -> None:
    users.git("config", "core.bare", "true")
    with pytest.raises(RepositoryError, match="bare"):
        users.owned()


def test_a_partial_clone_is_refused(users: Any, tmp_path: Path) -> None:
    users.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    users.git("clone", "-q", "--filter=blob:none", f"file://{users.root}", str(clone))
    with pytest.raises(RepositoryError, match="partial clone"):
        users.owned(clone)


def test_linked_objects_are_refused(users: Any, tmp_path: Path) -> None:
    objects = users.root / ".git" / "objects"
    objects.rename(tmp_path / "elsewhere")
    objects.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepositoryError, match="symbolic link"):
        users.owned()


def test_an_unknown_format_is_refused(users: Any) -> None:
    users.git("config", "core.repositoryformatversion", "1")
    users.git("config", "extensions.fromthefuture", "true")
    with pytest.raises(RepositoryError, match="fromthefuture"):
        users.owned()


def test_no_git_and_an_old_git_are_told(
    users: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_module, "_versions", {})
    with pytest.raises(MachineError, match="git is missing"):
        inspect(users.root, str(tmp_path / "nothing"))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "git").write_text("#!/bin/sh\necho git version 2.20.1\n")
    (tmp_path / "old" / "git").chmod(0o755)
    with pytest.raises(MachineError, match=r"2\.20\.1 is too old"):
        inspect(users.root, f"{tmp_path / 'old'}:/bin:/usr/bin")


def test_a_moved_checkout_goes_on(users: Any, tmp_path: Path) -> None:
    repo = users.owned()
    repo.sync()
    tree = repo.open_sandbox("T1", repo.head()).snapshot()
    repo.keep("refs/loop/r/T1/main", tree, repo.head(), "kept")
    moved = tmp_path / "moved"
    users.root.rename(moved)
    users.root = moved
    again = users.owned()
    again.sync()
    sandbox = again.open_sandbox("T1", again.head(), tree)
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""
    assert set(again.kept()) == {"refs/loop/r/T1/main"}
    lands(users)


def test_the_harness_repository_outlives_a_rewrite_and_gc_of_the_users(users: Any) -> None:
    repo = users.owned()
    repo.sync()
    old = repo.head()
    users.git("commit", "-q", "--amend", "-m", "rewritten")
    users.git("reflog", "expire", "--expire=now", "--all")
    users.git("gc", "-q", "--prune=now")
    sandbox = repo.open_sandbox("T1", old)
    assert sandbox.snapshot() == repo.tree_of(Sha(old))
