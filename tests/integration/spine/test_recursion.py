import subprocess
import sys
from pathlib import Path

MANIFEST = '[[task]]\nid = "A"\ntitle = "a"\nworker = "command"\ncommand = "true"\n'


def test_a_run_inside_a_sandbox_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    inside = tmp_path / ".local" / "worktrees" / "one"
    (inside / "tasks").mkdir(parents=True)
    (inside / "tasks" / "ACTIVE.toml").write_text(MANIFEST)
    git = ("git", "-c", "user.name=Spine", "-c", "user.email=spine@localhost", "-C", str(inside))
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "begin")):
        subprocess.run([*git, *args], check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-m", "loopctl", "-C", str(inside)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "is a sandbox of loop" in done.stderr
    assert not (inside / ".local").exists()
    assert (inside / "tasks" / "ACTIVE.toml").read_text() == MANIFEST
