import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loopctl.demo.create import HISTORY, MANIFEST, create_project, project_files
from loopctl.errors import MachineError, UsageError, UserError

Git = Callable[[Sequence[str]], str]
ROOT = Path(__file__).parents[3]


def test_history_is_short_real_and_complete(tmp_path: Path, git_in: Callable[[Path], Git]) -> None:
    folder = tmp_path / "deep/er/tally"
    git = git_in(folder)
    create_project(folder, sys.executable, git)

    commits = git(["log", "--reverse", "--format=%an <%ae> %s"]).splitlines()
    assert commits == [f"Demo <demo@example.invalid> {message}" for message in HISTORY]
    assert len(commits) >= 3
    assert git(["branch", "--show-current"]) == "main\n"
    assert git(["status", "--porcelain", "--untracked-files=all"]) == ""
    assert git(["fsck", "--strict"]) == ""
    tracked = set(git(["ls-files"]).splitlines())
    assert tracked == {name for name, _ in project_files(sys.executable)}
    assert {"tally/amounts.py", "tests/test_dates.py", ".gitignore", MANIFEST} <= tracked


def test_planted_flaws_are_ones_that_ruff_sees(
    tmp_path: Path, git_in: Callable[[Path], Git]
) -> None:
    create_project(tmp_path, sys.executable, git_in(tmp_path))
    argv = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise", "."]
    said = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    ).stdout
    found = {line.split()[1] for line in said.splitlines() if ".py:" in line}
    assert found >= {"F401", "I001", "E401", "UP006", "UP032", "E711", "B006"}


def test_interpreter_of_any_name_survives_toml_and_the_shell(tmp_path: Path) -> None:
    python = tmp_path / 'it\'s "a" $HOME \\ place' / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    [text] = [content for name, content in project_files(str(python)) if name == MANIFEST]
    checks = tomllib.loads(text.decode())["goal"]["done_when"]
    command = checks[1]["check"].replace("-m pytest -q", "-c 'print(6 * 7)'")
    said = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert (said.returncode, said.stdout) == (0, "42\n")


def test_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not an empty folder"):
        create_project(tmp_path, sys.executable, no_git)
    with pytest.raises(UsageError, match=r"thesis\.txt is not an empty folder"):
        create_project(tmp_path / "thesis.txt", sys.executable, no_git)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_missing_tool_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ruff", None)
    with pytest.raises(MachineError) as caught:
        create_project(tmp_path / "new", sys.executable, no_git)
    assert isinstance(caught.value, UserError)
    assert "the demo needs ruff" in str(caught.value)
    assert "pip install 'loopctl-harness[demo]'" in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_wheel_holds_the_project(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    tracked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    tracked += ["src", "pyproject.toml", "README.md", "LICENSE"]
    names = subprocess.run(tracked, cwd=ROOT, capture_output=True, timeout=60, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=source,
        capture_output=True,
        timeout=120,
        check=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if "/demo/project/" in name}
    expected = {name.removeprefix(".") for name, _ in project_files(sys.executable)}
    assert packed == {f"loopctl/demo/project/{name}" for name in expected}


def no_git(words: Sequence[str]) -> str:
    raise AssertionError(f"git was called: {words}")
