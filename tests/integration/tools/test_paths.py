import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl.errors import SandboxError
from loopctl.sandbox.tools.tool import RefusalError
from loopctl.sandbox.tools.tree import Tree


def attempts(path: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": "mine\n"}),
        ("edit_file", {"path": path, "old": "secret", "new": "mine"}),
        ("search", {"pattern": "secret", "path": path}),
    ]


def plant_links(root: Path, outside: Path) -> None:
    (root / "direct").symlink_to(outside / "secret.txt")
    (root / "folder").symlink_to(outside)
    (root / "relative").symlink_to(Path("../../../../outside/secret.txt"))
    (root / "chain").symlink_to("src/next")
    (root / "src/next").symlink_to("../folder")
    (root / "dangling").symlink_to(outside / "new.txt")
    (root / "up").symlink_to("..")
    (root / "round").symlink_to("round")
    (root / "process").symlink_to("/proc/self/root")


HOSTILE = [
    "direct",
    "folder/secret.txt",
    "folder/new.txt",
    "relative",
    "chain/secret.txt",
    "dangling",
    "up/other",
    "round",
    "process/etc/hostname",
    "../outside/secret.txt",
    "src/../../t/src/app.py",
    "src/..",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    ".git",
    ".git/config",
    ".GIT/config",
    "src/.Git/hooks/pre-commit",
    ".g\u200cit/config",
    "git~1/config",
    ".git ./config",
    ".git::$INDEX_ALLOCATION/config",
    "",
    "src/app.py\0.txt",
    "a" * 300,
    "src/app.py/under",
]


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path)[:40])
def test_hostile_path_is_refused_by_every_tool_and_nothing_changes(bench: Any, path: str) -> None:
    plant_links(bench.root, bench.outside)
    for name, arguments in attempts(path):
        said = bench.refused(name, **arguments)
        assert "secret\n" not in said


CONTROLS = [
    "src/app.py",
    "./src//app.py",
    "inside",
    "through/app.py",
    "absolute",
    "back/src/app.py",
    "{root}/src/app.py",
]


@pytest.mark.parametrize("path", CONTROLS)
def test_path_that_stays_inside_is_read_written_edited_and_searched(bench: Any, path: str) -> None:
    (bench.root / "inside").symlink_to("src/app.py")
    (bench.root / "through").symlink_to("src")
    (bench.root / "absolute").symlink_to(bench.root / "src/app.py")
    (bench.root / "src/deep").mkdir()
    (bench.root / "back").symlink_to("src/deep/../..")
    path = path.format(root=bench.root)
    assert "1\tone" in bench.done("read_file", path=path)
    bench.done("write_file", path=path, content="secret\n")
    assert bench.done("search", pattern="sec", path=path) == "src/app.py:1:secret"
    bench.done("edit_file", path=path, old="secret", new="done")
    assert (bench.root / "src/app.py").read_text() == "done\n"
    assert not (bench.root / "src/app.py").is_symlink()


def test_worktree_reached_by_another_spelling_is_the_worktree(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(bench.root.parent)
    tree = Tree(tmp_path / "alias" / bench.root.name, "the worktree")
    assert tree.read(f"{bench.root}/src/app.py")[0] == b"one\ntwo\nthree\n"
    assert tree.read(f"{tmp_path}/alias/{bench.root.name}/src/app.py")[0]


def test_link_to_a_missing_file_inside_makes_that_file(bench: Any) -> None:
    (bench.root / "later").symlink_to("src/later.txt")
    bench.done("write_file", path="later", content="x\n")
    assert (bench.root / "src/later.txt").read_text() == "x\n"
    assert (bench.root / "later").is_symlink()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # The path of a socket is short; the worktree's may be long.
    descriptor = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{descriptor}/{path.name}")
    os.close(descriptor)


@pytest.mark.parametrize(
    ("make", "words"),
    [(make_pipe, "is a pipe"), (make_socket, "is a socket"), (Path.mkdir, "is a folder")],
)
def test_what_is_no_file_is_named_and_not_waited_for(
    bench: Any, make: Callable[[Path], None], words: str
) -> None:
    make(bench.root / "odd")
    for name, arguments in attempts("odd")[:3]:
        assert words in bench.refused(name, **arguments)
    # Neither does a search wait for it.
    assert bench.done("search", pattern="secret").startswith("no match")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_device_is_refused(bench: Any) -> None:
    os.mknod(bench.root / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    assert "is a device" in bench.refused("read_file", path="zero")


def test_pipe_that_takes_the_place_of_a_file_is_not_waited_for(bench: Any) -> None:
    target = bench.root / "src/app.py"
    tree = Tree(bench.root, "the worktree")
    with tree.walk("src/app.py") as place:
        target.unlink()
        os.mkfifo(target)
        assert place.found is not None
    with pytest.raises(RefusalError, match="is a pipe"):
        tree.read("src/app.py")


class Swapper(threading.Thread):
    """Lets a folder and a link to the outside change places under one name, all the time."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root
        self._stop_asked = threading.Event()
        self.is_at_it = threading.Event()

    def run(self) -> None:
        rounds = 0
        while not self._stop_asked.is_set():
            for source, target in (("spot", "aside"), ("link", "spot"), ("aside", "link")):
                self._move(source, target)
            rounds += 1
            if rounds > 20:
                self.is_at_it.set()

    def _move(self, source: str, target: str) -> None:
        while True:
            try:
                (self._root / source).rename(self._root / target)
            except OSError:
                # The writer has made the folder anew meanwhile.
                (self._root / target).rename(self._root / f"made-{secrets.token_hex(8)}")
            else:
                return

    def end(self) -> None:
        self._stop_asked.set()
        self.join(60)


def test_folder_swapped_for_a_link_never_leads_out(bench: Any) -> None:
    (bench.root / "spot").mkdir()
    (bench.root / "spot/secret.txt").write_text("mine\n")
    (bench.root / "link").symlink_to(bench.outside)
    tree = Tree(bench.root, "the worktree")
    read: set[bytes] = set()
    written = 0
    swapper = Swapper(bench.root)
    swapper.start()
    try:
        assert swapper.is_at_it.wait(60)
        for _ in range(3000):
            with contextlib.suppress(RefusalError, OSError):
                read.add(tree.read("spot/secret.txt")[0])
            with contextlib.suppress(RefusalError, OSError):
                tree.write("spot/secret.txt", b"new\n")
                written += 1
    finally:
        swapper.end()
    assert [path.name for path in bench.outside.iterdir()] == ["secret.txt"]
    assert (bench.outside / "secret.txt").read_text() == "secret\n"
    assert read
    assert read <= {b"mine\n", b"new\n"}
    assert written


def test_hard_link_to_a_file_outside_is_replaced_and_not_written_through(bench: Any) -> None:
    os.link(bench.outside / "secret.txt", bench.root / "hard.txt")
    bench.done("write_file", path="hard.txt", content="mine\n")
    bench.done("edit_file", path="hard.txt", old="mine", new="yours")
    assert (bench.outside / "secret.txt").read_text() == "secret\n"
    assert (bench.root / "hard.txt").read_text() == "yours\n"


def test_worktree_that_is_gone_or_a_link_is_an_error_of_the_sandbox(bench: Any) -> None:
    moved = bench.root.with_name("moved")
    bench.root.rename(moved)
    for swap in (lambda: None, lambda: bench.root.symlink_to(bench.outside)):
        swap()
        for name, arguments in attempts("secret.txt"):
            with pytest.raises(SandboxError, match="gone"):
                bench.tools[name].run(arguments, "k")
    bench.root.unlink()
    moved.rename(bench.root)


def test_temporary_folder_can_be_read_and_nothing_else_of_the_sandbox(bench: Any) -> None:
    bench.done("bash", command='echo hello > "$TMPDIR/note"; ln -s "$HOME" "$TMPDIR/home"')
    scratch = bench.sandbox.scratch
    assert "hello" in bench.done("read_file", path=f"{scratch}/note")
    for path in (f"{scratch}/../home/.gitconfig", f"{scratch}/home/.gitconfig", f"{scratch}x"):
        bench.refused("read_file", path=path)
    bench.refused("write_file", path=f"{scratch}/note", content="x")
    bench.refused("edit_file", path=f"{scratch}/note", old="hello", new="x")
    bench.refused("search", pattern="hello", path=str(scratch))
