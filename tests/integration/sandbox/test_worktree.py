import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Sha
from loopctl.errors import CancelledError, SandboxError
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.worktree import Worktree


@pytest.fixture
def sandbox(repo: OwnedRepository) -> Worktree:
    return repo.open_sandbox("T1", repo.head())


def listing(users: Any, tree: str) -> dict[bytes, str]:
    git_dir = users.root / ".local" / "git"
    said = subprocess.run(
        ["git", f"--git-dir={git_dir}", "ls-tree", "-r", "-z", tree],
        check=True,
        capture_output=True,
    ).stdout
    records = (record.split(b"\t", 1) for record in said.split(b"\0") if record)
    return {path: meta.split()[0].decode() for meta, path in records}


def test_the_worktree_has_the_files_and_git_works_in_it(sandbox: Worktree) -> None:
    script = "cat a; git status --short; git log --format=%s; git describe --always --dirty"
    lines = sandbox.run(script, timeout_s=20).stdout.decode().splitlines()
    assert lines[:4] == ["one", "more", "second", "first"]
    assert not lines[4].endswith("-dirty")


def test_a_command_sees_neither_keys_nor_the_callers_home(users: Any) -> None:
    env = {**users.env, "OPENAI_API_KEY": "hunter2", "GIT_DIR": "/nowhere"}
    repo = users.owned(env=env)
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    said = sandbox.run("env; command -v loop; ls -A $HOME $TMPDIR", timeout_s=20).stdout.decode()
    assert "hunter2" not in said
    assert "GIT_DIR" not in said
    assert f"HOME={users.env['HOME']}" not in said
    assert f"{users.root}/.local/shim/loop" in said


def test_odd_names_modes_and_contents_are_saved_byte_for_byte(
    users: Any, repo: OwnedRepository, sandbox: Worktree
) -> None:
    root = os.fsencode(sandbox.workdir)
    odd = [
        b"with space",
        b"new\nline",
        b'quo"te',
        b"\xc3\xbc\xe2\x82\xac",
        b"\xff\xfe",
        b"-x",
        b"*",
    ]
    for name in odd:
        Path(os.fsdecode(root + b"/" + name)).write_bytes(b"text " + name)
    (sandbox.workdir / "crlf").write_bytes(b"a\r\nb\r\n")
    (sandbox.workdir / "binary").write_bytes(bytes(range(256)) * 10)
    (sandbox.workdir / "empty").touch()
    (sandbox.workdir / "run").write_text("#!/bin/sh\n")
    (sandbox.workdir / "run").chmod(0o755)
    (sandbox.workdir / "link").symlink_to("/etc/passwd")
    (sandbox.workdir / "a").rename(sandbox.workdir / "renamed")
    tree = sandbox.snapshot()
    found = listing(users, tree)
    assert {name: found[name] for name in odd} == dict.fromkeys(odd, "100644")
    assert (found[b"run"], found[b"link"], found[b"empty"]) == ("100755", "120000", "100644")
    assert b"a" not in found
    for name in odd:
        assert repo.read_blob(tree, os.fsdecode(name)) == b"text " + name
    assert repo.read_blob(tree, "crlf") == b"a\r\nb\r\n"
    assert repo.read_blob(tree, "binary") == bytes(range(256)) * 10
    assert repo.read_blob(tree, "link") == b"/etc/passwd"
    assert repo.read_blob(tree, "renamed") == b"one\nmore\n"
    assert repo.read_blob(tree, "none") is None
    assert repo.read_blob(tree, "binary", 5) == bytes(range(5))
    again = repo.open_sandbox("T2", repo.head(), tree)
    assert again.snapshot() == tree
    assert (again.workdir / "crlf").read_bytes() == b"a\r\nb\r\n"
    assert os.access(again.workdir / "run", os.X_OK)
    assert (again.workdir / "link").readlink() == Path("/etc/passwd")


def test_the_projects_own_attributes_count(users: Any) -> None:
    users.write(**{".gitattributes": "*.txt text eol=crlf\n", "t.txt": "x\n"})
    users.commit()
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    assert (sandbox.workdir / "t.txt").read_bytes() == b"x\r\n"
    (sandbox.workdir / "t.txt").write_bytes(b"x\r\ny\r\n")
    assert repo.read_blob(sandbox.snapshot(), "t.txt") == b"x\ny\n"


def test_what_a_worker_does_to_git_changes_nothing_of_what_is_saved(
    users: Any, sandbox: Worktree
) -> None:
    script = """
    git update-index --skip-worktree a; git update-index --assume-unchanged b
    echo changed > a; echo changed > b; echo new > c
    git add -f c; git rm -q --cached a; git commit -qm mine; git checkout -q -b branch
    git config core.fileMode false; git config filter.x.clean 'touch /tmp/never'
    git config core.worktree /nowhere; git config core.bare false
    """
    assert sandbox.run(script, timeout_s=20).returncode == 0
    tree = sandbox.snapshot()
    assert set(listing(users, tree)) == {b"a", b"b", b"c"}
    (sandbox.workdir / "d").write_text("later")
    assert set(listing(users, sandbox.snapshot())) == {b"a", b"b", b"c", b"d"}


def test_a_swapped_git_pointer_is_not_followed(users: Any, sandbox: Worktree) -> None:
    script = """
    rm .git && git init -q . && git config core.fsmonitor "touch $PWD/../fired; false"
    git config filter.x.clean "touch $PWD/../fired; cat"
    mkdir -p .git/hooks; echo '* filter=none' > .git/info/attributes; echo new > c
    """
    assert sandbox.run(script, timeout_s=20).returncode == 0
    tree = sandbox.snapshot()
    assert set(listing(users, tree)) == {b"a", b"b", b"c"}
    assert not (sandbox.workdir.parent / "fired").exists()
    sandbox.restore(tree)
    assert (sandbox.workdir / ".git").is_file()
    assert sandbox.run("git status --short", timeout_s=20).stdout == b"?? c\n"


def test_a_nested_repository_is_refused_by_its_path_and_its_filters_do_not_run(
    sandbox: Worktree,
) -> None:
    script = """
    git init -q sub; cd sub; git config filter.x.clean "touch $PWD/../../fired; cat"
    echo '* filter=x' > .gitattributes; echo 1 > f; git -c user.name=x -c user.email=y add .
    git commit -qm x; rm -f $PWD/../../fired; echo 2 > f
    """
    sandbox.run(script, timeout_s=20)
    with pytest.raises(SandboxError, match=r"sub/\.git"):
        sandbox.snapshot()
    assert not (sandbox.workdir.parent / "fired").exists()


@pytest.mark.parametrize("path", [".GIT/config", "git~1", "\u200c.git/x", "new/.gi\u200dt"])
def test_a_path_that_could_be_taken_for_a_git_folder_is_refused_in_words(
    sandbox: Worktree, path: str
) -> None:
    script = f'mkdir -p "$(dirname "{path}")" && echo x > "{path}"'
    assert sandbox.run(script, timeout_s=20).returncode == 0
    with pytest.raises(
        SandboxError, match=r"git does not take the path '.*rename or remove"
    ) as found:
        sandbox.snapshot()
    assert str(found.value).isascii()


def test_a_nested_repository_in_an_ignored_folder_is_left_out(
    users: Any, sandbox: Worktree
) -> None:
    sandbox.run("echo build/ > .gitignore; git init -q build/dep; echo x > c", timeout_s=20)
    assert set(listing(users, sandbox.snapshot())) == {b".gitignore", b"a", b"b", b"c"}


@pytest.mark.parametrize("name", [".GIT", ".git ", "git~1"])
def test_a_path_that_git_refuses_is_the_tasks_error(sandbox: Worktree, name: str) -> None:
    (sandbox.workdir / "dir" / name).mkdir(parents=True)
    (sandbox.workdir / "dir" / name / "config").write_text("x")
    with pytest.raises(SandboxError, match="could not be saved"):
        sandbox.snapshot()


def test_pipes_and_sockets_are_skipped(users: Any, sandbox: Worktree) -> None:
    os.mkfifo(sandbox.workdir / "pipe")
    assert set(listing(users, sandbox.snapshot())) == {b"a", b"b"}


def test_caches_that_a_project_did_not_ignore_are_no_part_of_a_tree(
    users: Any, sandbox: Worktree
) -> None:
    for name in ("__pycache__/m.pyc", ".pytest_cache/x", "p/.mypy_cache/x", ".ruff_cache/x"):
        path = sandbox.workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert set(listing(users, sandbox.snapshot())) == {b"a", b"b"}


def test_an_unreadable_folder_is_not_taken_for_deleted(users: Any, sandbox: Worktree) -> None:
    (sandbox.workdir / "dir").mkdir()
    (sandbox.workdir / "dir" / "f").write_text("x")
    sandbox.snapshot()
    (sandbox.workdir / "dir").chmod(0)
    assert b"dir/f" in listing(users, sandbox.snapshot())


def test_a_changed_path_with_a_filter_is_refused_and_an_unchanged_one_is_not(users: Any) -> None:
    users.write(**{".gitattributes": "*.bin filter=lfs\n", "big.bin": "version pointer\n"})
    users.commit()
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    assert (sandbox.workdir / "big.bin").read_text() == "version pointer\n"
    (sandbox.workdir / "a").write_text("changed")
    sandbox.snapshot()
    (sandbox.workdir / "big.bin").write_text("real content")
    with pytest.raises(SandboxError, match=r"big\.bin goes through the filter 'lfs'"):
        sandbox.snapshot()


def test_a_worktree_that_is_gone_is_told_and_comes_back(sandbox: Worktree) -> None:
    tree = sandbox.snapshot()
    assert sandbox.run('rm -rf "$PWD"', timeout_s=20).returncode == 0
    with pytest.raises(SandboxError, match="is gone"):
        sandbox.snapshot()
    with pytest.raises(SandboxError, match="is gone"):
        sandbox.run("true", timeout_s=20)
    sandbox.restore(tree)
    assert (sandbox.workdir / "a").read_text() == "one\nmore\n"
    assert sandbox.snapshot() == tree
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""


def test_a_worktree_replaced_by_a_link_is_not_followed(sandbox: Worktree, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text("mine")
    tree = sandbox.snapshot()
    sandbox.run(f'cd ..; rm -rf T1; ln -s "{victim}" T1', timeout_s=20)
    with pytest.raises(SandboxError, match="is gone"):
        sandbox.snapshot()
    sandbox.restore(tree)
    assert sandbox.snapshot() == tree
    sandbox.close()
    assert (victim / "mine").read_text() == "mine"


def test_restore_is_exact_but_for_ignored_files(repo: OwnedRepository, users: Any) -> None:
    users.write(**{".gitignore": "ignored\n"})
    users.commit()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    tree = sandbox.snapshot()
    script = """
    echo changed > a; rm b; mkdir b; echo x > b/x; echo new > new; chmod +x .gitignore
    echo kept > ignored; echo '*.hidden' >> .gitignore; echo x > y.hidden; ln -s / link
    """
    assert sandbox.run(script, timeout_s=20).returncode == 0
    assert sandbox.snapshot() != tree
    sandbox.restore(tree)
    assert sandbox.snapshot() == tree
    names = sorted(path.name for path in sandbox.workdir.iterdir())
    assert names == [".git", ".gitignore", "a", "b", "ignored"]
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""


def test_restore_deals_with_what_cannot_be_saved(sandbox: Worktree) -> None:
    tree = sandbox.snapshot()
    sandbox.run("git init -q sub; mkdir -p d/.GIT; echo > d/.GIT/config", timeout_s=20)
    sandbox.restore(tree)
    assert sandbox.snapshot() == tree
    assert not (sandbox.workdir / "sub").exists()


def test_shared_folders_are_linked_and_no_part_of_the_diff(users: Any) -> None:
    (users.root / ".venv" / "bin").mkdir(parents=True)
    (users.root / ".venv" / "bin" / "tool").write_text("tool")
    (users.root / "node_modules").mkdir()
    (users.root / "tracked").mkdir()
    (users.root / "tracked" / "f").write_text("the commit's")
    users.git("add", "-f", "tracked")
    users.git("commit", "-qm", "tracked")
    (users.root / "tracked" / "f").write_text("the checkout's")
    repo = users.owned(share=(".venv", "node_modules", "tracked", "none"))
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    tree = sandbox.snapshot()
    assert tree == repo.tree_of(repo.head())
    assert (sandbox.workdir / ".venv" / "bin" / "tool").read_text() == "tool"
    assert (sandbox.workdir / "tracked" / "f").read_text() == "the commit's"
    assert sandbox.run("git status --short", timeout_s=20).stdout == b""
    sandbox.run("rm .venv; mkdir -p .venv/bin; echo x > .venv/bin/tool", timeout_s=20)
    assert sandbox.snapshot() == tree
    sandbox.restore(tree)
    sandbox.close()
    assert (users.root / ".venv" / "bin" / "tool").read_text() == "tool"


def test_a_worktree_of_that_name_is_discarded_and_made_anew(
    repo: OwnedRepository, sandbox: Worktree
) -> None:
    (sandbox.workdir / "left").write_text("x")
    (repo.checkout.root / ".local" / "git" / "worktrees" / "T1" / "index.lock").touch()
    (repo.checkout.root / ".local" / "indexes" / "T1.lock").touch()
    again = repo.open_sandbox("T1", repo.head())
    assert not (again.workdir / "left").exists()
    assert again.snapshot() == repo.tree_of(repo.head())


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "x.lock", "a..b", "x" * 200, "ü"])
def test_a_name_that_is_none_is_refused(repo: OwnedRepository, name: str) -> None:
    with pytest.raises(SandboxError, match="no name for a sandbox"):
        repo.open_sandbox(name, repo.head())


def test_a_base_that_is_missing_is_an_error_of_the_task(repo: OwnedRepository) -> None:
    with pytest.raises(SandboxError, match="could not be made"):
        repo.open_sandbox("T1", Sha("1" * 40))


def test_close_is_quiet_about_what_is_gone_and_keeps_the_refs(
    repo: OwnedRepository, sandbox: Worktree
) -> None:
    commit = repo.keep("refs/loop/r/T1/main", sandbox.snapshot(), repo.head(), "kept")
    sandbox.close()
    sandbox.close()
    assert repo.kept() == {"refs/loop/r/T1/main": commit}
    local = repo.checkout.root / ".local"
    for folder in ("worktrees", "indexes", "exchange", "trash", "git/worktrees"):
        assert not (local / folder).exists() or list((local / folder).iterdir()) == []


def test_sixteen_sandboxes_at_once(repo: OwnedRepository) -> None:
    errors: list[BaseException] = []
    trees: set[str] = set()

    def life(number: int) -> None:
        try:
            sandbox = repo.open_sandbox(f"T{number}", repo.head())
            assert sandbox.run(f"echo {number} > n", timeout_s=60).returncode == 0
            trees.add(sandbox.snapshot())
            sandbox.restore(repo.tree_of(repo.head()))
            sandbox.close()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=life, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert errors == []
    assert len(trees) == 16


def test_cancelling_ends_a_command_and_leaves_git_at_work(users: Any) -> None:
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    sandbox.run("echo x > c", timeout_s=20)
    users.cancel.set()
    with pytest.raises(CancelledError):
        sandbox.run("sleep 1000", timeout_s=60)
    tree = sandbox.snapshot()
    assert repo.read_blob(tree, "c") == b"x\n"


def test_the_exchange_is_outside_the_worktree(sandbox: Worktree) -> None:
    exchange = sandbox.exchange()
    exchange.offer("look")
    script = """
    cat "$LOOP_OBSERVATION"; echo '{"type": "todo_done"}' > "$LOOP_OUTBOX/1.json"
    """
    assert sandbox.run(script, timeout_s=20, env=exchange.env).stdout == b"look"
    assert len(list(exchange.messages())) == 1
    assert not Path(exchange.env["LOOP_OUTBOX"]).is_relative_to(sandbox.workdir)
