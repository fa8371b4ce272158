"""Files of a step that was cut short are kept under a ref before their worktree goes."""

import os
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.errors import SandboxError
from loopctl.records import Rescued
from loopctl.sandbox.repository import OwnedRepository

REF = "refs/loop/r/T1/main+interrupted"


@pytest.fixture
def sandbox(repo: OwnedRepository) -> Any:
    return repo.open_sandbox("T1", repo.head(), rescue_ref=REF)


def listed(users: Any, ref: str) -> set[str]:
    git_dir = users.root / ".local" / "git"
    return set(users.git(f"--git-dir={git_dir}", "ls-tree", "-r", "--name-only", ref).splitlines())


def test_files_are_kept_once_and_unchanged_ones_not_at_all(
    repo: OwnedRepository, sandbox: Any
) -> None:
    assert sandbox.rescue() == Rescued()
    (sandbox.workdir / "new").write_text("x")
    assert sandbox.rescue() == Rescued(REF)
    assert sandbox.rescue() == Rescued()
    (sandbox.workdir / "new").write_text("y")
    assert sandbox.rescue() == Rescued(f"{REF}-2")
    trees = {ref: tree for ref, (tree, _) in repo.kept_trees().items()}
    assert repo.read_blob(trees[REF], "new") == b"x"
    assert repo.read_blob(trees[f"{REF}-2"], "new") == b"y"


def test_what_a_snapshot_has_kept_needs_no_rescue(repo: OwnedRepository, sandbox: Any) -> None:
    (sandbox.workdir / "new").write_text("x")
    repo.keep("refs/loop/r/T1/main", sandbox.snapshot(), repo.head(), "kept")
    assert sandbox.rescue() == Rescued()


def test_a_sandbox_in_which_no_worker_works_has_nothing_to_rescue(repo: OwnedRepository) -> None:
    gate = repo.open_sandbox("gate", repo.head())
    (gate.workdir / "new").write_text("x")
    assert gate.rescue() == Rescued()
    assert repo.kept() == {}


def test_tracked_files_that_are_ignored_are_not_taken_for_deleted(users: Any) -> None:
    users.commit(**{".gitignore": "b\n"})
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head(), rescue_ref=REF)
    (sandbox.workdir / "new").write_text("x")
    assert sandbox.rescue() == Rescued(REF)
    assert listed(users, REF) == {".gitignore", "a", "b", "new"}


@pytest.mark.parametrize("name", [".git", ".GIT", ".git ", "git~1", ".g\u200cit"])
def test_what_git_would_not_take_is_kept_under_another_name(
    users: Any, sandbox: Any, name: str
) -> None:
    (sandbox.workdir / "sub" / name).mkdir(parents=True)
    (sandbox.workdir / "sub" / name / "config").write_text("x")
    (sandbox.workdir / "sub" / "beside").write_text("x")
    assert sandbox.rescue() == Rescued(REF)
    assert listed(users, REF) == {"a", "b", "sub/beside", "sub/git-set-aside/config"}


@pytest.mark.parametrize("name", [".GIT", ".git ", "git~1"])
def test_a_folder_beside_the_roots_own_git_is_kept_too(
    users: Any, repo: OwnedRepository, sandbox: Any, name: str
) -> None:
    (sandbox.workdir / name).mkdir()
    (sandbox.workdir / name / "config").write_text("x")
    (sandbox.workdir / "beside").write_text("x")
    with pytest.raises(SandboxError, match="could not be saved"):
        sandbox.snapshot()
    assert sandbox.rescue() == Rescued(REF)
    assert listed(users, REF) == {"a", "b", "beside", "git-set-aside/config"}


def test_a_link_that_git_does_not_take_is_kept_under_another_name(
    users: Any, repo: OwnedRepository, sandbox: Any
) -> None:
    (sandbox.workdir / "beside").write_text("x")
    (sandbox.workdir / ".gitmodules").symlink_to("beside")
    assert sandbox.rescue() == Rescued(REF)
    assert listed(users, REF) == {"a", "b", "beside", "git-set-aside"}


def test_a_file_behind_a_filter_is_kept_as_it_is(repo: OwnedRepository, sandbox: Any) -> None:
    (sandbox.workdir / ".gitattributes").write_text("*.bin filter=lfs diff=lfs -text\n")
    (sandbox.workdir / "big.bin").write_bytes(b"\0raw\r\n")
    (sandbox.workdir / "beside").write_text("x")
    with pytest.raises(SandboxError, match=r"big\.bin goes through the filter 'lfs'"):
        sandbox.snapshot()
    assert sandbox.rescue() == Rescued(REF)
    assert repo.read_blob(REF, "big.bin") == b"\0raw\r\n"
    assert repo.read_blob(REF, "beside") == b"x"


@pytest.mark.parametrize("before", ["", "git init -q sub;"])
def test_files_in_a_submodules_folder_are_kept(users: Any, make: Any, before: str) -> None:
    part = make("part")
    part.commit(p="1")
    users.git("submodule", "--quiet", "add", str(part.root), "sub")
    users.commit("with a submodule")
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head(), rescue_ref=REF)
    sandbox.run(f"{before} mkdir sub/deep; echo x > sub/deep/in; echo y > beside", timeout_s=20)
    assert sandbox.rescue() == Rescued(REF)
    assert {"sub/deep/in", "beside", "a", "b"} <= listed(users, REF)
    assert "sub" not in listed(users, REF)


def test_files_below_a_path_that_is_too_long_stay_in_their_place(
    users: Any, repo: OwnedRepository, sandbox: Any
) -> None:
    dig = "import os\nfor i in range(25):\n os.mkdir('n' * 200); os.chdir('n' * 200)\n"
    code = f"{dig}open('deep', 'w').write('x')"
    assert sandbox.run([sys.executable, "-c", code], timeout_s=20).returncode == 0
    (sandbox.workdir / "beside").write_text("x")
    with pytest.raises(SandboxError, match="File name too long") as caught:
        sandbox.snapshot()
    assert len(str(caught.value)) < 500
    found = sandbox.rescue()
    assert found.ref == REF
    assert not found.is_complete
    assert "File name too long" in found.why
    sandbox.close()
    assert (sandbox.workdir / "beside").exists()
    assert listed(users, REF) == {"a", "b", "beside"}


def test_what_a_snapshot_leaves_out_is_told(users: Any, make: Any) -> None:
    part = make("part")
    part.commit(p="1")
    users.git("submodule", "--quiet", "add", str(part.root), "sub")
    users.commit("with a submodule", **{".gitignore": "build/\n*.log\n"})
    (users.root / ".venv").mkdir()
    repo = users.owned(share=(".venv",))
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head(), rescue_ref=REF)
    sandbox.run("mkdir -p x/__pycache__; echo > x/__pycache__/y.pyc; echo new > new", timeout_s=20)
    sandbox.snapshot()
    assert sandbox.left_out() == ""
    sandbox.run("mkdir build; for n in 1 2 3 4; do echo > build/$n; done", timeout_s=20)
    sandbox.run("echo > sub/in; echo > new", timeout_s=20)
    sandbox.snapshot()
    assert sandbox.left_out() == (
        "4 ignored files that the ignore rules (.gitignore) leave out: "
        "build/1, build/2, build/3, ...; "
        "1 file in a submodule's folder, where nothing is kept: sub/in"
    )
    sandbox.run("rm -r build sub/in; echo > x.log", timeout_s=20)
    assert sandbox.left_out() == (
        "1 ignored file that the ignore rules (.gitignore) leave out: x.log"
    )


def test_after_a_rescue_the_worktree_comes_back_exactly(
    repo: OwnedRepository, sandbox: Any
) -> None:
    tree = sandbox.snapshot()
    assert sandbox.run("git init -q sub; echo x > sub/f", timeout_s=20).returncode == 0
    assert sandbox.rescue() == Rescued(REF)
    sandbox.restore(tree)
    assert sorted(path.name for path in sandbox.workdir.iterdir()) == [".git", "a", "b"]
    assert sandbox.rescue() == Rescued()


def test_a_worktree_replaced_by_a_link_is_not_read(sandbox: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / ".git").mkdir()
    (victim / "secret").write_text("x")
    sandbox.run(f'cd ..; rm -rf T1; ln -s "{victim}" T1', timeout_s=20)
    assert sandbox.rescue() == Rescued()
    assert sorted(path.name for path in victim.iterdir()) == [".git", "secret"]


def test_links_within_are_kept_as_links_and_not_entered(
    users: Any, repo: OwnedRepository, sandbox: Any, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    (victim / ".git").mkdir(parents=True)
    (sandbox.workdir / "out").symlink_to(victim)
    assert sandbox.rescue() == Rescued(REF)
    assert (victim / ".git").is_dir()
    assert repo.read_blob(REF, "out") == os.fsencode(victim)


def test_what_cannot_be_saved_stays_and_is_neither_removed_nor_written_over(
    users: Any, repo: OwnedRepository, sandbox: Any
) -> None:
    (sandbox.workdir / "big").write_bytes(os.urandom(3_000_000))
    (sandbox.workdir / "small").write_text("x")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        found = sandbox.rescue()
        sandbox.close()
        left = repo.rescue_leftovers()
        with pytest.raises(SandboxError, match="could not be saved"):
            repo.open_sandbox("T1", repo.head(), rescue_ref=REF)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not found.is_complete
    assert found.folder == str(sandbox.workdir)
    assert [one.is_complete for one in left] == [False]
    assert len((sandbox.workdir / "big").read_bytes()) == 3_000_000
    [rescued] = repo.rescue_leftovers()
    assert rescued.is_complete
    assert listed(users, rescued.ref) == {"a", "b", "big", "small"}
    assert not sandbox.workdir.exists()


def test_leftovers_of_every_kind_are_removed(users: Any, repo: OwnedRepository) -> None:
    for name in ("T1", "T2"):
        sandbox = repo.open_sandbox(name, repo.head(), rescue_ref=f"refs/loop/r/{name}/main+x")
        (sandbox.workdir / "new").write_text(name)
        sandbox.run("echo x > $HOME/x; echo x > $TMPDIR/y", timeout_s=20)
    repo.open_sandbox("gate-1", repo.head())
    local = users.root / ".local"
    (local / "exchange" / "alone").mkdir()
    (local / "indexes" / "alone-2.lock").touch()
    del repo
    again = users.owned()
    assert {one.ref for one in again.rescue_leftovers()} == {
        "refs/loop/r/T1/main+x",
        "refs/loop/r/T2/main+x",
    }
    places = ("worktrees", "indexes", "exchange", "origins", "trash", "git/worktrees")
    assert [path for place in places for path in (local / place).glob("*")] == []
    assert list(Path(users.env["TMPDIR"]).iterdir()) == []
    assert again.rescue_leftovers() == ()
