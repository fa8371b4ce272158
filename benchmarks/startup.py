"""Start-up of ``loop --help`` and ``loop status`` beside a bare Typer application's.

The bare application has one command; its help is compared with ours, its command with
``loop status`` in a small checkout. Starting is work for the processor alone, so its time is what
is compared, which other processes disturb least; the runs alternate and the least of each counts.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "start of `loop --help` and `loop status` / a bare Typer app"
LIMIT = 1.5
ROUNDS = 12

_BARE = """
import typer
app = typer.Typer(add_completion=False)
@app.command()
def status() -> None:
    print("all is well")
app()
"""
_MANIFEST = 'schema = 1\n[[task]]\nid = "T1"\ntitle = "One"\n'


def run() -> dict[str, float]:
    """Return the worse of the two ratios and the least processor time of each, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder)
        _make_checkout(checkout)
        bare = checkout / "bare.py"
        bare.write_text(_BARE)
        commands = {
            "bare --help": [sys.executable, str(bare), "--help"],
            "loop --help": [sys.executable, "-m", "loopctl", "--help"],
            "bare command": [sys.executable, str(bare)],
            "loop status": [sys.executable, "-m", "loopctl", "status"],
        }
        fastest = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for name, argv in commands.items():
                fastest[name] = min(fastest[name], _seconds(argv, checkout))
    ratios = (
        fastest["loop --help"] / fastest["bare --help"],
        fastest["loop status"] / fastest["bare command"],
    )
    return {"ratio": max(ratios), **fastest}


def _make_checkout(folder: Path) -> None:
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-C", str(folder)]
    for argv in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run([*git, *argv], check=True, timeout=60)
    (folder / "tasks").mkdir()
    (folder / "tasks" / "ACTIVE.toml").write_text(_MANIFEST)


def _seconds(argv: list[str], cwd: Path) -> float:
    before = _spent()
    subprocess.run(argv, check=True, timeout=60, cwd=cwd, stdout=subprocess.DEVNULL)
    return _spent() - before


def _spent() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime
