"""A worktree that a worker is done with becomes the next one's, and nothing of the work is left."""

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopctl.sandbox import spares
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.worktree import Worktree

REF = "refs/loop/kept/r1/rescued"


def listing(root: Path) -> dict[str, tuple[str, str, bytes]]:
    """Return kind, mode and content of all that is below a worktree, git's pointer left out."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            where = str(path.relative_to(root))
            if where == ".git":
                continue
            mode = path.lstat().st_mode
            kind = stat.filemode(mode)
            if path.is_symlink():
                found[where] = (kind, "", os.fsencode(path.readlink()))
            elif path.is_dir():
                found[where] = (kind, "", b"")
            else:
                found[where] = (kind, "", path.read_bytes())
    return found


def _nested(folder: Path) -> None:
    pointer = folder / ".git"
    pointer.unlink(missing_ok=True)
    pointer.mkdir()
    (pointer / "HEAD").write_text("ref: refs/heads/evil\n")


def opened(repo: OwnedRepository, name: str, tree: str | None = None) -> Worktree:
    return repo.open_sandbox(name, repo.head(), tree, rescue_ref=REF)


def number_of(sandbox: Worktree, name: str = "a") -> int:
    return (sandbox.workdir / name).lstat().st_ino


@pytest.fixture
def rich(users: Any) -> OwnedRepository:
    """A repository of files in folders, a program, a link, and a folder that is ignored."""
    for folder in ("src/deep", "docs"):
        (users.root / folder).mkdir(parents=True)
    users.write(
        **{"src/one": "1\n", "src/deep/two": "2\n", "docs/three": "3\n", ".gitignore": "built/\n"}
    )
    (users.root / "run").write_text("#!/bin/sh\n")
    (users.root / "run").chmod(0o755)
    (users.root / "link").symlink_to("src/one")
    users.commit("rich")
    owned: OwnedRepository = users.owned()
    owned.sync()
    return owned


def test_the_next_worker_gets_the_same_files_cleaned(rich: OwnedRepository) -> None:
    fresh = opened(rich, "T1")
    wanted, number = listing(fresh.workdir), number_of(fresh)
    fresh.run("echo new > new; echo more >> src/one; rm docs/three; chmod 700 run", timeout_s=20)
    fresh.run("mkdir built; echo object > built/o; mkdir empty", timeout_s=20)
    fresh.snapshot()
    fresh.close()
    assert not fresh.workdir.exists()
    second = opened(rich, "T2")
    assert number_of(second) == number
    assert listing(second.workdir) == wanted
    said = second.run(
        "git status --short --ignored; git rev-parse HEAD; git stash list", timeout_s=20
    )
    assert said.stdout.decode().split() == [rich.head()]


def test_it_is_brought_to_another_tree(rich: OwnedRepository) -> None:
    first = opened(rich, "T1")
    first.run(
        "echo 4 > docs/four; rm -r src; ln -sf docs link; echo 'x' > .gitignore", timeout_s=20
    )
    tree, wanted = first.snapshot(), listing(first.workdir)
    first.run("git checkout -q . ; rm -rf docs", timeout_s=20)
    number = number_of(first, "run")
    first.close()
    second = opened(rich, "T2", tree)
    assert number_of(second, "run") == number
    assert listing(second.workdir) == wanted
    assert second.snapshot() == tree


def test_a_file_that_is_another_file_too_is_written_anew(
    rich: OwnedRepository, tmp_path: Path
) -> None:
    first = opened(rich, "T1")
    outside = tmp_path / "outside"
    os.link(first.workdir / "a", outside)
    text = outside.read_bytes()
    first.close()
    second = opened(rich, "T2")
    (second.workdir / "a").write_text("overwritten\n")
    assert outside.read_bytes() == text


def test_contents_that_were_changed_behind_gits_back_are_found(rich: OwnedRepository) -> None:
    first = opened(rich, "T1")
    path = first.workdir / "src" / "one"
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(b"9\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    first.close()
    assert (opened(rich, "T2").workdir / "src" / "one").read_bytes() == content


def test_labels_that_a_worker_gave_files_go(rich: OwnedRepository) -> None:
    first = opened(rich, "T1")
    try:
        os.setxattr(first.workdir / "a", "user.note", b"mine")
    except OSError:
        pytest.skip("the file system keeps no labels")
    first.close()
    assert os.listxattr(opened(rich, "T2").workdir / "a") == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda root: _nested(root / "docs"), id="nested"),
        pytest.param(lambda root: (root / ".git").unlink(), id="no pointer"),
        pytest.param(_nested, id="other pointer"),
        pytest.param(lambda root: (root / "src").chmod(0), id="unreadable folder"),
        pytest.param(lambda root: root.chmod(0o500), id="read-only root"),
        pytest.param(lambda root: (root / ".git" / "..").rename(root.parent / "away"), id="gone"),
    ],
)
def test_whatever_was_done_to_it_the_next_one_is_whole(
    rich: OwnedRepository, spoil: Callable[[Path], object]
) -> None:
    first = opened(rich, "T1")
    wanted = listing(first.workdir)
    with contextlib.suppress(OSError):
        spoil(first.workdir)
    first.close()
    second = opened(rich, "T2")
    assert listing(second.workdir) == wanted
    assert second.run("git status --short", timeout_s=20).stdout == b""


def test_attributes_of_either_tree_are_heeded(users: Any, rich: OwnedRepository) -> None:
    users.commit("text", **{"b.txt": "b\n"})
    rich.sync()
    maker = rich.open_sandbox("maker", rich.head())
    (maker.workdir / ".gitattributes").write_text("*.txt eol=crlf\n")
    tree = maker.snapshot()
    opened(rich, "T1").close()
    second = opened(rich, "T2", tree)
    assert (second.workdir / "b.txt").read_bytes() == b"b\r\n"
    second.close()
    assert (opened(rich, "T3").workdir / "b.txt").read_bytes() == b"b\n"


def test_a_gate_never_gets_what_a_worker_had(rich: OwnedRepository) -> None:
    first = opened(rich, "T1")
    number = number_of(first)
    first.close()
    gate = rich.open_sandbox("gate-1", rich.head())
    assert number_of(gate) != number
    number = number_of(gate)
    gate.close()
    opened(rich, "T2").close()
    assert number_of(opened(rich, "T3")) != number


def test_files_that_were_rescued_are_nobodys_next_ones(users: Any, rich: OwnedRepository) -> None:
    first = opened(rich, "T1")
    (first.workdir / "new").write_text("new\n")
    assert first.rescue().ref
    first.close()
    assert list((users.root / ".local" / "trash").iterdir()) == []


def test_few_are_kept_and_none_after_the_last(users: Any, rich: OwnedRepository) -> None:
    several = [opened(rich, f"T{number}") for number in range(spares.MOST + 2)]
    for one in several:
        one.close()
    trash = users.root / ".local" / "trash"
    assert len(list(trash.iterdir())) == spares.MOST
    rich.drain()
    assert list(trash.iterdir()) == []
    opened(rich, "T9").close()
    assert list(trash.iterdir()) == []


CHILD = """
import os, sys
from pathlib import Path
from loopctl.sandbox.repository import OwnedRepository
root = Path(sys.argv[1])
repo = OwnedRepository(root, root / ".local", branch="loop/integration", env=dict(os.environ))
repo.sync()
repo.open_sandbox("T1", repo.head(), rescue_ref=sys.argv[2]).close()
os._exit(0)
"""


def test_what_a_dead_process_kept_is_removed(users: Any) -> None:
    users.commit("one", a="one\n")
    command = [sys.executable, "-c", CHILD, str(users.root), REF]
    subprocess.run(command, env=users.env, check=True, timeout=60)
    trash = users.root / ".local" / "trash"
    assert len(list(trash.iterdir())) == 1
    users.owned().sync()
    assert list(trash.iterdir()) == []


PATHS = st.sampled_from(
    [
        *("a", "new", "src/one", "src/new", "src/deep/two", "src/deep", "src", "docs"),
        *("docs/three", "link", "run", ".gitignore", "built", "built/x", ".git", "x/y/z"),
    ]
)
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "remove", "mkdir", "link", "hard", "mode", "swap", "stage", "save", "ignore"]
        ),
        PATHS,
        PATHS,
        st.integers(0, 0o7777),
    ),
    max_size=12,
)


def do(sandbox: Worktree, deed: str, path: Path, other: Path, number: int) -> None:
    root = sandbox.workdir
    if deed == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % number)
    elif deed == "remove":
        sandbox.run(["rm", "-rf", str(path.relative_to(root))], timeout_s=20)
    elif deed == "mkdir":
        path.mkdir(parents=True)
    elif deed == "link":
        path.symlink_to(other)
    elif deed == "hard":
        path.hardlink_to(other)
    elif deed == "mode":
        path.chmod(number)
    elif deed == "swap":
        path.rename(other)
    elif deed == "stage":
        sandbox.run(
            "git add -A; git commit -qm mine; git update-index --assume-unchanged a", timeout_s=20
        )
    elif deed == "save":
        sandbox.snapshot()
    else:
        (root / ".gitignore").write_text(f"{path.name}\n")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(DEEDS)
def test_no_deeds_of_one_worker_are_seen_by_the_next(
    rich: OwnedRepository, deeds: list[tuple[str, str, str, int]]
) -> None:
    gate = rich.open_sandbox("gate", rich.head())
    wanted = listing(gate.workdir)
    gate.close()
    first = opened(rich, "T1")
    for deed, path, other, number in deeds:
        with contextlib.suppress(Exception):
            do(first, deed, first.workdir / path, first.workdir / other, number)
    first.close()
    second = opened(rich, "T2")
    assert listing(second.workdir) == wanted
    assert second.snapshot() == rich.tree_of(rich.head())
    assert second.run("git status --short --ignored", timeout_s=20).stdout == b""
    second.close()
