import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Sha
from loopctl.errors import LandingRefusedError, RepositoryError
from loopctl.sandbox.repository import OwnedRepository

BRANCH = "loop/integration"


def state(users: Any) -> dict[str, str]:
    """Everything of the checkout that a run must leave alone, with checksums."""
    files = {}
    for path in sorted(users.root.rglob("*")):
        name = str(path.relative_to(users.root))
        if name.startswith((".local", ".git/objects", ".git/logs")) or not path.is_file():
            continue
        files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return files


def landed(repo: OwnedRepository, old: Sha | None = None, **files: str) -> Sha:
    sandbox = repo.open_sandbox("made", old or repo.head())
    for name, text in files.items():
        (sandbox.workdir / name).write_text(text)
    commit = repo.commit(sandbox.snapshot(), old or repo.head(), "T\n\nLoop-Task: T\nLoop-Key: k\n")
    repo.advance(commit, old)
    sandbox.close()
    return commit


def dirty(users: Any) -> None:
    users.write(a="mine\n", untracked="mine too\n")
    users.git("add", "a")
    users.write(a="mine, not staged\n")


def test_a_run_leaves_a_dirty_checkout_byte_for_byte_as_it_was(users: Any) -> None:
    dirty(users)
    (users.root / ".git" / "info" / "exclude").write_bytes(b"# mine\r\n*.swp")
    before = state(users)
    repo = users.owned()
    repo.sync()
    found = repo.uncommitted()
    assert (found.changed, found.untracked) == (1, 1)
    landed(repo, b="work\n")
    after = state(users)
    assert after.pop(".git/info/exclude") != before.pop(".git/info/exclude")
    assert after.pop(f".git/refs/heads/{BRANCH}")
    assert after == before
    exclude = (users.root / ".git" / "info" / "exclude").read_bytes()
    assert exclude == b"# mine\r\n*.swp\n/.local/\n"
    again = users.owned()
    again.sync()
    assert (users.root / ".git" / "info" / "exclude").read_bytes() == exclude
    assert ".local" not in users.git("status", "--porcelain", "--ignored=no")


def test_git_clean_passes_the_harness_folder_by(users: Any, repo: OwnedRepository) -> None:
    users.git("clean", "-fdxq")
    assert repo.tree_of(repo.head())
    assert (users.root / ".local").stat().st_mode & 0o777 == 0o700


def test_a_fast_forward_moves_branch_index_and_files(users: Any, repo: Any) -> None:
    commit = landed(repo, b="work\n", c="new\n")
    users.write(a="mine\n")
    old = users.git("rev-parse", "HEAD")
    done = repo.fast_forward()
    assert (done.branch, done.old, done.new, done.commits) == ("main", old, commit, 1)
    assert users.git("rev-parse", "main") == commit
    assert users.git("status", "--porcelain") == "M a" or users.git("diff", "--name-only") == "a"
    assert (users.root / "b").read_text() == "work\n"
    assert (users.root / "a").read_text() == "mine\n"
    with pytest.raises(LandingRefusedError, match="already contains"):
        repo.fast_forward()


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda users: users.write(b="mine\n"), "overwritten by merge"),
        (lambda users: users.write(c="mine\n"), "overwritten by merge"),
        (lambda users: users.write(**{".git/info/exclude": "c\n", "c": "mine\n"}), "overwritten"),
        (lambda users: users.git("checkout", "-q", "--detach"), "detached"),
        (lambda users: users.commit("apart", d="x"), "diverged"),
        (lambda users: users.write(**{".git/MERGE_HEAD": "x"}), "a merge is under way"),
        (lambda users: (users.root / ".git" / "rebase-merge").mkdir(), "a rebase is under way"),
        (lambda users: users.write(**{".git/index.lock": ""}), "index.lock"),
    ],
    ids=["edited", "untracked", "ignored", "detached", "diverged", "merge", "rebase", "locked"],
)
def test_a_fast_forward_that_cannot_be_is_refused_and_nothing_is_lost(
    users: Any, repo: Any, prepare: Any, said: str
) -> None:
    landed(repo, b="work\n", c="new\n")
    prepare(users)
    before = state(users)
    with pytest.raises(LandingRefusedError, match=said):
        repo.fast_forward()
    after = state(users)
    # git notes where a merge would have come from before it finds that there is none.
    after.pop(".git/ORIG_HEAD", None)
    assert after == before


def test_nothing_to_land(repo: Any) -> None:
    with pytest.raises(LandingRefusedError, match="no branch"):
        repo.fast_forward()


def test_a_fast_forward_runs_no_hook_and_no_filter(users: Any, repo: Any) -> None:
    for name in ("post-merge", "post-checkout", "reference-transaction", "post-index-change"):
        hook = users.root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch '{users.root}/fired'\n")
        hook.chmod(0o755)
    users.git("config", "core.fsmonitor", f"touch '{users.root}/fired'; false")
    landed(repo, b="work\n")
    repo.fast_forward()
    assert not (users.root / "fired").exists()
    users.git("config", "filter.x.smudge", f"touch '{users.root}/fired'; cat")
    users.git("config", "--unset", "core.fsmonitor")
    with_attribute = landed(repo, repo.integration(), **{".gitattributes": "late filter=x\n"})
    tree = repo.tree_of(with_attribute)
    sneaked = repo.commit(tree, with_attribute, "x\n\nLoop-Key: k\n")
    repo.advance(sneaked, with_attribute)
    (users.root / "fired").unlink(missing_ok=True)
    repo.fast_forward()
    assert not (users.root / "fired").exists()


def test_a_fast_forward_keeps_the_users_line_endings(users: Any, repo: Any) -> None:
    landed(repo, n="x\ny\n")
    users.git("config", "core.autocrlf", "true")
    repo.fast_forward()
    assert (users.root / "n").read_bytes() == b"x\r\ny\r\n"


def test_uncommitted_work_is_taken_without_touching_anything(users: Any, repo: Any) -> None:
    dirty(users)
    users.write(**{".gitignore": "ignored\n", "ignored": "x"})
    users.git("rm", "-q", "--cached", "b")
    users.write(**{"staged only": "here"})
    users.git("add", "staged only")
    (users.root / "nested").mkdir()
    users.git("init", "-q", cwd=users.root / "nested")
    users.git("commit", "-q", "--allow-empty", "-m", "x", cwd=users.root / "nested")
    before = state(users)
    commit = repo.snapshot_checkout()
    assert state(users) == before
    tree = repo.tree_of(commit)
    names = {change.path for change in repo.changes(repo.head(), tree)}
    assert names == {".gitignore", "a", "staged only", "untracked"}
    assert repo.read_blob(tree, "a") == b"mine, not staged\n"
    assert repo.read_blob(tree, "staged only") == b"here"
    sandbox = repo.open_sandbox("T1", commit)
    assert sandbox.snapshot() == tree
    assert users.git("fsck", "--strict") is not None


def test_a_clean_checkout_is_its_head(repo: Any) -> None:
    assert repo.snapshot_checkout() == repo.head()
    found = repo.uncommitted()
    assert (found.changed, found.untracked) == (0, 0)


def test_a_split_index_and_a_sparse_checkout_are_taken_as_they_are(users: Any) -> None:
    (users.root / "dir").mkdir()
    users.commit("dir", **{"dir/f": "x"})
    users.git("sparse-checkout", "set", "--cone", "nothing")
    assert not (users.root / "dir").exists()
    repo = users.owned()
    repo.sync()
    assert repo.snapshot_checkout() == repo.head()
    users.git("sparse-checkout", "disable")
    users.git("update-index", "--split-index")
    users.write(a="changed\n")
    tree = repo.tree_of(repo.snapshot_checkout())
    assert [change.path for change in repo.changes(repo.head(), tree)] == ["a"]


def test_an_unfinished_merge_is_no_snapshot(users: Any, repo: Any) -> None:
    users.git("checkout", "-q", "-b", "side", "HEAD~1")
    users.commit("side", a="side\n")
    users.git("checkout", "-q", "main")
    with pytest.raises(Exception, match="merge"):
        users.git("merge", "side")
    with pytest.raises(RepositoryError, match="unmerged"):
        repo.snapshot_checkout()


def test_the_diff_of_a_run_is_put_onto_uncommitted_files(users: Any, repo: Any) -> None:
    dirty(users)
    base = repo.snapshot_checkout()
    sandbox = repo.open_sandbox("T1", base)
    (sandbox.workdir / "untracked").write_text("worked on\n")
    (sandbox.workdir / "new").write_text("new\n")
    (sandbox.workdir / "b").unlink()
    tree, base_tree = sandbox.snapshot(), repo.tree_of(base)
    users.write(elsewhere="the user went on\n")
    index = (users.root / ".git" / "index").read_bytes()
    repo.apply_to_checkout(base_tree, tree, base_tree)
    assert (users.root / "untracked").read_text() == "worked on\n"
    assert (users.root / "new").read_text() == "new\n"
    assert not (users.root / "b").exists()
    assert (users.root / "a").read_text() == "mine, not staged\n"
    assert (users.root / "elsewhere").read_text() == "the user went on\n"
    assert (users.root / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize("touched", ["untracked", "b", "new", "ignored"])
def test_files_that_have_changed_since_are_left_alone(users: Any, repo: Any, touched: str) -> None:
    users.write(**{".gitignore": "ignored\n"})
    users.commit("ignore")
    dirty(users)
    base = repo.snapshot_checkout()
    sandbox = repo.open_sandbox("T1", base)
    for name in ("untracked", "new", "b"):
        (sandbox.workdir / name).write_text("worked on\n")
    (sandbox.workdir / ".gitignore").write_text("")
    (sandbox.workdir / "ignored").write_text("worked on\n")
    tree, base_tree = sandbox.snapshot(), repo.tree_of(base)
    users.write(**{touched: "the user's\n"})
    before = state(users)
    with pytest.raises(LandingRefusedError, match=touched):
        repo.apply_to_checkout(base_tree, tree, base_tree)
    assert state(users) == before


def test_what_the_user_ignores_everywhere_is_no_part_of_a_tree(users: Any, tmp_path: Path) -> None:
    config = Path(users.env["HOME"], ".config", "git")
    config.mkdir(parents=True)
    (config / "ignore").write_text(".idea/\n")
    (users.root / ".idea").mkdir()
    (users.root / ".idea" / "x").write_text("x")
    repo = users.owned()
    repo.sync()
    assert repo.snapshot_checkout() == repo.head()
    named = tmp_path / "elsewhere"
    named.write_text("*.swp\n")
    users.git("config", "--global", "core.excludesFile", os.fspath(named))
    (users.root / "x.swp").write_text("x")
    again = users.owned()
    again.sync()
    assert again.uncommitted().untracked == 1
