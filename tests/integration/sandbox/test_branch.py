import threading
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Sha, TaskId
from loopctl.errors import LandingRefusedError, RepositoryError
from loopctl.records import Carried, Landed
from loopctl.sandbox.repository import OwnedRepository
from loopctl.trees import ChangeType

BRANCH = "loop/integration"


def made(repo: OwnedRepository, parent: Sha, key: str = "k", **files: str) -> Sha:
    """A commit of the harness on ``parent``."""
    sandbox = repo.open_sandbox(f"made-{key}", parent)
    for name, text in files.items():
        (sandbox.workdir / name).write_text(text)
    tree = sandbox.snapshot()
    sandbox.close()
    message = f"Task {key}\n\nLoop-Task: T1\nLoop-Run: run1\nLoop-Key: {key}\n"
    return repo.commit(tree, parent, message)


def refs(users: Any) -> str:
    return str(users.git("for-each-ref"))


def test_a_landing_moves_only_the_branch_and_runs_no_hook(users: Any, repo: Any) -> None:
    hooks = users.root / ".git" / "hooks"
    for name in ("reference-transaction", "post-update", "update", "pre-receive"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{users.root}/fired'\n")
        (hooks / name).chmod(0o755)
    users.git("branch", "control")
    assert (users.root / "fired").exists()
    (users.root / "fired").unlink()
    before = refs(users)
    commit = made(repo, repo.head(), c="3")
    repo.advance(commit, None)
    assert not (users.root / "fired").exists()
    assert repo.integration() == commit
    lines = set(refs(users).splitlines()) - set(before.splitlines())
    assert lines == {f"{commit} commit\trefs/heads/{BRANCH}"}


def test_a_landing_is_refused_when_the_branch_is_not_where_it_was(users: Any, repo: Any) -> None:
    first = made(repo, repo.head(), "k1", c="1")
    repo.advance(first, None)
    other = made(repo, repo.head(), "k2", c="2")
    before = refs(users)
    for old in (None, repo.head(), other):
        with pytest.raises(LandingRefusedError, match=r"is at .*, not"):
            repo.advance(made(repo, first, "k3", d="3"), old)
    with pytest.raises(LandingRefusedError, match="would lose commits"):
        repo.advance(other, first)
    assert refs(users) == before


def test_of_two_landings_at_once_one_wins_and_nothing_is_left(users: Any, repo: Any) -> None:
    start = made(repo, repo.head(), "k0", c="0")
    repo.advance(start, None)
    commits = [made(repo, start, f"r{number}", c=str(number)) for number in range(6)]
    results: list[str] = []
    barrier = threading.Barrier(len(commits))

    def land(commit: Sha) -> None:
        barrier.wait(timeout=30)
        try:
            repo.advance(commit, start)
            results.append("won")
        except LandingRefusedError:
            results.append("lost")

    threads = [threading.Thread(target=land, args=(commit,)) for commit in commits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == ["lost"] * 5 + ["won"]
    assert repo.integration() in commits
    assert "refs/loop" not in refs(users)
    assert list((users.root / ".git").rglob("*.lock")) == []


def test_a_landing_is_refused_when_the_branch_is_checked_out(
    users: Any, repo: Any, tmp_path: Path
) -> None:
    first = made(repo, repo.head(), "k1", c="1")
    repo.advance(first, None)
    second = made(repo, first, "k2", d="1")
    users.git("worktree", "add", "-q", str(tmp_path / "side"), BRANCH)
    with pytest.raises(LandingRefusedError, match="is checked out in"):
        repo.advance(second, first)
    users.git("worktree", "remove", str(tmp_path / "side"))
    users.git("checkout", "-q", BRANCH)
    with pytest.raises(LandingRefusedError, match="is checked out in"):
        repo.advance(second, first)
    assert repo.integration() == first


def test_a_landing_is_refused_while_a_rebase_will_end_on_the_branch(users: Any, repo: Any) -> None:
    first = made(repo, repo.head(), "k1", c="1")
    repo.advance(first, None)
    users.git("config", "sequence.editor", "sed -i 1ibreak")
    users.git("checkout", "-q", BRANCH)
    users.git("rebase", "-q", "-i", "HEAD~1")
    with pytest.raises(LandingRefusedError, match="is checked out in"):
        repo.advance(made(repo, first, "k2", d="1"), first)


def test_thrown_away_history_is_not_brought_back(users: Any, repo: Any) -> None:
    base = repo.head()
    work = made(repo, base, c="1")
    users.git("commit", "-q", "--amend", "-m", "rewritten")
    users.git("reflog", "expire", "--expire=now", "--all")
    users.git("gc", "-q", "--prune=now")
    with pytest.raises(LandingRefusedError, match="rewritten"):
        repo.advance(work, None)
    assert repo.integration() is None


def test_a_user_who_went_on_meanwhile_does_not_hinder(users: Any, repo: Any) -> None:
    work = made(repo, repo.head(), c="1")
    users.commit("further", d="2")
    repo.advance(work, None)
    assert repo.integration() == work


def test_a_branch_in_the_way_is_named(users: Any, repo: Any) -> None:
    users.git("branch", "loop")
    with pytest.raises(LandingRefusedError, match="another branch is in the way"):
        repo.advance(made(repo, repo.head(), c="1"), None)


def test_landings_are_read_from_the_trailers_newest_first(users: Any, repo: Any) -> None:
    assert repo.landings() == ()
    head = repo.head()
    first = made(repo, head, "k1", c="1")
    second = made(repo, first, "k2", c="2")
    plain = repo.commit(repo.tree_of(head), second, "Loop-Key: is not a trailer here\n\nbody\n")
    repo.advance(plain, None)
    task = TaskId("T1")
    expected = (Landed(second, task, "run1", "k2"), Landed(first, task, "run1", "k1"))
    assert repo.landings() == expected
    assert repo.landings(first) == expected[:1]
    users.git("checkout", "-q", BRANCH)
    users.commit("by hand", e="x")
    users.git("checkout", "-q", "main")
    assert repo.landings() == expected


def test_the_start_of_a_run_follows_the_branch_rule(users: Any, repo: Any) -> None:
    head = repo.head()
    assert repo.prepare_branch() == (head, "")
    first = made(repo, head, "k1", c="1")
    repo.advance(first, None)
    assert repo.prepare_branch() == (first, f"starting from {BRANCH}, 1 commit ahead of HEAD")
    users.git("merge", "-q", "--ff-only", BRANCH)
    repo.sync()
    assert repo.prepare_branch() == (first, "")
    further = users.commit("further", d="x")
    repo.sync()
    assert repo.prepare_branch() == (further, "")
    assert repo.integration() == further
    second = made(repo, Sha(further), "k2", c="2")
    repo.advance(second, Sha(further))
    users.commit("apart", e="x")
    repo.sync()
    with pytest.raises(RepositoryError, match=r"have diverged .*git merge"):
        repo.prepare_branch()


def test_a_bad_branch_name_is_told(users: Any) -> None:
    repo = users.owned(branch="no..name")
    repo.sync()
    with pytest.raises(RepositoryError, match="no branch name"):
        repo.prepare_branch()


def test_a_kept_tree_comes_back_as_a_new_branch(users: Any, repo: Any) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    (sandbox.workdir / "c").write_text("kept")
    commit = repo.keep("refs/loop/r/T1/main", sandbox.snapshot(), repo.head(), "kept")
    assert repo.recover("refs/loop/r/T1/main", "rescued/t1") == commit
    assert users.git("show", "rescued/t1:c") == "kept"
    with pytest.raises(RepositoryError, match="exists"):
        repo.recover("refs/loop/r/T1/main", "main")
    with pytest.raises(RepositoryError, match="no branch name"):
        repo.recover("refs/loop/r/T1/main", "-f")
    with pytest.raises(RepositoryError, match="nothing is kept"):
        repo.recover("refs/loop/r/T1", "x")
    repo.drop("refs/loop/r/T1/main")
    assert repo.kept() == {}


def test_changes_and_lines_between_trees(users: Any, repo: Any) -> None:
    sandbox = repo.open_sandbox("T1", repo.head())
    old = sandbox.snapshot()
    root = sandbox.workdir
    (root / "a").rename(root / "moved")
    (root / "b").unlink()
    (root / "b").symlink_to("moved")
    (root / "bin").write_bytes(b"\0\1")
    new = sandbox.snapshot()
    found = [(c.path, c.type, c.old_mode, c.new_mode) for c in repo.changes(old, new)]
    assert found == [
        ("a", ChangeType.DELETED, "100644", "000000"),
        ("b", ChangeType.TYPE, "100644", "120000"),
        ("bin", ChangeType.ADDED, "000000", "100644"),
        ("moved", ChangeType.ADDED, "000000", "100644"),
    ]
    assert repo.changed_lines(old, new) == 2 + 2 + 2 + 1
    assert repo.changes(old, old) == ()
    assert repo.changed_lines(old, old) == 0


def test_a_diff_is_carried_onto_another_head_or_not(users: Any, repo: Any) -> None:
    base = repo.head()
    work = made(repo, base, "w", a="one\nmore\nwork\n", **{"n w": "new"})
    tree = repo.tree_of(work)
    assert repo.carry(base, tree, base) == Carried(tree)
    assert repo.carry(base, tree, tree) == Carried(tree)
    aside = made(repo, base, "aside", b="other\n")
    carried = repo.carry(base, tree, aside)
    assert carried.tree is not None
    assert repo.read_blob(carried.tree, "a") == b"one\nmore\nwork\n"
    assert repo.read_blob(carried.tree, "b") == b"other\n"
    assert repo.read_blob(carried.tree, "n w") == b"new"
    assert repo.carry(base, repo.tree_of(base), aside) == Carried(repo.tree_of(aside))
    clash = made(repo, base, "clash", a="one\nmore\nelse\n")
    refused = repo.carry(base, tree, clash)
    assert refused.tree is None
    assert "a" in refused.detail
    assert list((users.root / ".local").glob("carry-*")) == []


def test_binary_modes_links_and_deletions_are_carried(users: Any, repo: Any) -> None:
    base = repo.head()
    sandbox = repo.open_sandbox("T1", base)
    root = sandbox.workdir
    (root / "bin").write_bytes(bytes(range(256)) * 100)
    (root / "a").chmod(0o755)
    (root / "b").unlink()
    (root / "l").symlink_to("a")
    (root / "new\nline \xfc").write_text("x\r\n")
    tree = sandbox.snapshot()
    aside = made(repo, base, "aside", z="z\n")
    carried = repo.carry(base, tree, aside)
    assert carried.tree is not None
    strip = [(c.path, c.new_mode, c.new_blob) for c in repo.changes(base, tree)]
    assert strip == [(c.path, c.new_mode, c.new_blob) for c in repo.changes(aside, carried.tree)]


def test_the_new_side_of_changes_is_put_over_a_tree(users: Any, repo: Any) -> None:
    base = repo.head()
    aside = made(repo, base, "aside", a="another\n", d="a file\n", z="z\n")
    sandbox = repo.open_sandbox("T1", base)
    (sandbox.workdir / "d").mkdir()
    (sandbox.workdir / "d" / "new\nline \xfc").write_bytes(b"\0\r\n")
    (sandbox.workdir / "a").chmod(0o755)
    (sandbox.workdir / "b").unlink()
    tree = sandbox.snapshot()
    changes = [one for one in repo.changes(base, tree) if one.new_blob.strip("0")]
    over = repo.overlaid(aside, changes)
    paths = {one.path for one in changes}
    assert len(paths) == 2
    wanted = {(one.path, one.blob) for one in repo.files(tree) if one.path in paths}
    gone = {*paths, "d"}
    wanted |= {
        (one.path, one.blob) for one in repo.files(repo.tree_of(aside)) if one.path not in gone
    }
    assert {(one.path, one.blob) for one in repo.files(over)} == wanted
    assert {one.new_mode for one in repo.changes(aside, over) if one.path == "a"} == {"100755"}
    assert repo.overlaid(aside, ()) == repo.tree_of(aside)
    assert list((users.root / ".local").glob("carry-*")) == []


def test_refs_outside_ours_are_not_written(repo: Any) -> None:
    with pytest.raises(ValueError, match="not below"):
        repo.keep("refs/heads/main", repo.tree_of(repo.head()), repo.head(), "x")
