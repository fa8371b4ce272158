import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopctl.sandbox.environment import command_environment, write_home, write_shim


def built(caller: dict[str, str], tmp_path: Path, **extra: str) -> dict[str, str]:
    return command_environment(
        caller,
        extra,
        shim=tmp_path / "shim",
        home=tmp_path / "private",
        scratch=tmp_path / "tmp",
    )


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "LD_PRELOAD",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "GIT_DIR",
        "GIT_CONFIG_COUNT",
        "LC_API_KEY",
        "BASH_ENV",
        "SSH_AUTH_SOCK",
        "ANYTHING_ELSE",
    ],
)
def test_a_variable_that_is_not_allowed_does_not_reach_a_command(name: str, tmp_path: Path) -> None:
    assert name not in built({"PATH": "/bin", name: "hunter2"}, tmp_path)


def test_path_comes_with_the_shim_first_and_home_is_private(tmp_path: Path) -> None:
    env = built({"PATH": "/opt/tools:/bin", "HOME": "/home/someone", "LC_ALL": "C"}, tmp_path)
    assert env["PATH"] == f"{tmp_path / 'shim'}:/opt/tools:/bin"
    assert env["HOME"] == str(tmp_path / "private")
    assert env["TMPDIR"] == str(tmp_path / "tmp")
    assert (env["LC_ALL"], env["CI"], env["NO_COLOR"], env["TERM"]) == ("C", "1", "1", "dumb")


def test_toolchains_below_the_callers_home_are_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".pyenv").mkdir(parents=True)
    (home / ".cargo").mkdir()
    env = built({"PATH": "/bin", "HOME": str(home), "CARGO_HOME": "/opt/cargo"}, tmp_path)
    assert env["PYENV_ROOT"] == str(home / ".pyenv")
    assert env["CARGO_HOME"] == "/opt/cargo"
    assert "RUSTUP_HOME" not in env


def test_the_harness_own_variables_are_added(tmp_path: Path) -> None:
    assert built({}, tmp_path, LOOP_TASK="T1")["LOOP_TASK"] == "T1"


def test_the_shim_runs_this_installation_whatever_the_folder_holds(tmp_path: Path) -> None:
    shim = write_shim(tmp_path / "shim")
    (tmp_path / "loopctl").mkdir()
    (tmp_path / "loopctl" / "__main__.py").write_text("raise SystemExit(66)")
    (tmp_path / "loopctl" / "__init__.py").write_text("")
    script = (shim / "loop").read_text()
    assert sys.executable in script
    done = subprocess.run(
        [shim / "loop", "--version"], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert done.returncode != 66
    assert os.access(shim / "loop", os.X_OK)
    before = (shim / "loop").stat().st_ino
    write_shim(shim)
    assert (shim / "loop").stat().st_ino == before


def test_a_private_home_lets_tests_commit(tmp_path: Path) -> None:
    write_home(tmp_path / "home")
    (tmp_path / "r").mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    for args in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *args], cwd=tmp_path / "r", env=env, check=True, timeout=60)
