import os
import subprocess
import sys
from pathlib import Path

MANIFEST = """
[[task]]
id = "A"
title = "Größe — 大きさ"
worker = "command"
command = 'printf "%s" "$LOOP_STEP_GOAL" > größe.txt'
verify_cmd = "test -s größe.txt"
"""


def test_letters_beyond_ascii_are_no_matter_in_a_locale_without_them(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "ACTIVE.toml").write_text(MANIFEST, encoding="utf-8")
    git = ("git", "-c", "user.name=Spine", "-c", "user.email=spine@localhost", "-C", str(tmp_path))
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "begin")):
        subprocess.run([*git, *args], check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-m", "loopctl", "-C", str(tmp_path)],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "HOME": str(tmp_path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = subprocess.run(
        [*git, "show", "loop/integration:größe.txt".encode()],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.decode() == "Größe — 大きさ"
