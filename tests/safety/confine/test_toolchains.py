"""What of the user's machine is there inside: editable installs, shared folders, tools, settings."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loopctl.errors import MachineError
from loopctl.sandbox.confine import landlock
from loopctl.sandbox.confine.choice import choose
from loopctl.sandbox.confine.landlock import Landlock
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.owned import Layout
from loopctl.settings import SandboxSettings

from .conftest import KEYS, LIMIT_S, SECRET, Ground

FINDER = """\
import sys
from importlib.util import spec_from_file_location
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "found":
            return spec_from_file_location(name, {place!r})
sys.meta_path.insert(0, Finder)
"""


@pytest.fixture
def editable(ground: Ground) -> Path:
    """A virtual environment of the checkout in which its packages are installed as editable."""
    folder = ground.checkout / "own"
    site = folder / f"lib/python3.{sys.version_info[1]}/site-packages"
    base = Path(sys.base_prefix) / "bin"
    ground.put(folder / "pyvenv.cfg", f"home = {base}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir(exist_ok=True)
    if not (folder / "bin/python").is_symlink():
        (folder / "bin/python").symlink_to(Path(sys.executable).resolve())
    place = ground.checkout / "src/found.py"
    ground.put(site / "editable.pth", f"{ground.checkout / 'src'}\nimport finder_of_it\n")
    ground.put(site / "finder_of_it.py", FINDER.format(place=str(place)))
    for name in ("plain", "found"):
        ground.put(ground.checkout / f"src/{name}.py", "who = 'the user'\n")
    ground.git("add", "src")
    ground.git("commit", "-q", "--allow-empty", "-m", "packages")
    return folder


def test_editable_installs_lead_to_the_code_of_the_worktree(ground: Ground, editable: Path) -> None:
    box = ground.open("E1-main", share=["own"])
    for name in ("plain", "found"):
        (box.workdir / f"src/{name}.py").write_text("who = 'the worktree'\n")
    python = editable / "bin/python"
    done = box.run(
        f"{python} -c 'import plain, found; print(plain.who, found.who, found.__file__)'",
        timeout_s=LIMIT_S,
    )
    place = ground.checkout / "src/found.py"
    assert done.stdout.decode() == f"the worktree the worktree {place}\n"


def test_a_tool_that_only_the_machine_has_is_named_with_what_shows_it(ground: Ground) -> None:
    hidden = ground.home / "hidden/bin"
    path, before = f"{ground.env['PATH']}:{hidden}", ground.env["PATH"]
    ground.env["PATH"] = path
    try:
        # Its folder is on the PATH, so it is shown; what it leads to in a home folder is not.
        assert ground.open("M1-main").run("far-tool", timeout_s=LIMIT_S).returncode == 0
        tool = ground.put(ground.home / "apart", "#!/bin/sh\necho apart\n", 0o700)
        ground.put(hidden / "needy", f"#!/bin/sh\n{tool}\n", 0o700)
        lost = ground.open("M2-main").run("needy", timeout_s=LIMIT_S)
        assert lost.returncode == 127
        assert f'[sandbox] read = ["{ground.home}"]' in lost.stdout.decode()
        shown = ground.open("M3-main", read=["~/apart"]).run("needy", timeout_s=LIMIT_S)
        assert (shown.returncode, shown.stdout) == (0, b"apart\n")
    finally:
        ground.env["PATH"] = before


def test_what_is_named_can_be_read_or_written_and_keys_stay_unseen(ground: Ground) -> None:
    cache = ground.home / "cache"
    cache.mkdir(exist_ok=True)
    box = ground.open("R1-main", read=["../outside", "~"], write=["~/cache"])
    said = box.run(
        f"cat {ground.outside}/data; echo x > {ground.outside}/data; echo kept > {cache}/f",
        timeout_s=LIMIT_S,
    ).stdout.decode()
    assert "to be read" in said
    assert (ground.outside / "data").read_text() == "to be read\n"
    assert (cache / "f").read_text() == "kept\n"
    keys = " ".join(str(ground.home / key) for key in KEYS)
    assert SECRET not in box.run(f"cat {keys}", timeout_s=LIMIT_S).stdout.decode()


@pytest.mark.parametrize("tool", ["git", "node", "cargo", "go", "cc", "npm"])
def test_the_tools_of_this_machine_start(ground: Ground, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not on this machine")
    word = "version" if tool == "go" else "--version"
    if subprocess.run([tool, word], env=ground.env, capture_output=True, check=False).returncode:
        pytest.skip(f"{tool} does not run here outside either")
    done = ground.box.run([tool, word], timeout_s=LIMIT_S)
    assert done.returncode == 0, done.stdout


def test_the_network_of_the_machine_is_there_where_it_is_allowed(
    ground: Ground, listening: dict[str, str]
) -> None:
    box = ground.open("N1-main", network=True)
    call = f"socket.create_connection(('127.0.0.1', {listening['PORT']}), 5)"
    done = box.run([sys.executable, "-c", f"import socket; {call}"], timeout_s=LIMIT_S)
    assert done.returncode == 0, done.stdout


def test_a_folder_that_the_project_keeps_itself_is_not_shared_over(ground: Ground) -> None:
    ground.put(ground.checkout / "kept/f", "committed\n")
    ground.git("add", "-f", "kept")
    ground.git("commit", "-q", "-m", "kept")
    ground.put(ground.checkout / "kept/f", "not committed\n")
    done = ground.open("K1-main", share=["kept"]).run("cat kept/f", timeout_s=LIMIT_S)
    assert done.stdout == b"committed\n"


@pytest.fixture
def without_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)


@pytest.mark.usefixtures("without_landlock")
def test_what_does_not_hold_is_told_with_what_mends_it(ground: Ground, tmp_path: Path) -> None:
    broken = ground.put(tmp_path / "bwrap", "#!/bin/sh\necho it cannot >&2\nexit 1\n", 0o700)
    env = {"PATH": f"{tmp_path}:{ground.env['PATH']}"}
    layout = Layout(ground.checkout / ".local")
    with pytest.raises(MachineError, match="it cannot"):
        choose(SandboxSettings(confine="require"), ground.checkout, layout, env)
    found = choose(SandboxSettings(), ground.checkout, layout, env)
    assert (found.is_holding, str(broken) in found.describe()) == (False, True)


def _pretending(folder: Path, ground: Ground) -> dict[str, str]:
    """Return an environment whose bubblewrap keeps nobody inside."""
    text = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    ground.put(folder / "bwrap", text, 0o700)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.usefixtures("without_landlock")
def test_a_bubblewrap_that_only_pretends_is_found_out(ground: Ground, tmp_path: Path) -> None:
    layout = Layout(ground.checkout / ".local")
    found = choose(SandboxSettings(), ground.checkout, layout, _pretending(tmp_path, ground))
    assert isinstance(found, Unconfined)
    assert "does not hold" in found.describe()


def test_landlock_is_taken_where_bubblewrap_does_not_hold(ground: Ground, tmp_path: Path) -> None:
    if landlock.why_not(landlock.abi(), platform.machine()):
        pytest.skip("this machine has no Landlock that holds")
    layout = Layout(ground.checkout / ".local")
    found = choose(SandboxSettings(), ground.checkout, layout, _pretending(tmp_path, ground))
    assert isinstance(found, Landlock)
    assert "Landlock, no sockets at all" in found.describe()
