"""What only a process of its own can show: start-up, pipes, completion, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from loopctl.cli.reference import render

Shell = Callable[..., "CompletedProcess[str]"]
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

STATUS = """
import sys
from dataclasses import dataclass
from pathlib import Path
from loopctl import bootstrap, domain, settings

class Manifest:
    path = Path(sys.executable)
    def load(self):
        return domain.Manifest(domain.Goal("Ship it"), (domain.Task("T1", "One"),))

class Project:
    checkout = Path("/nowhere")
    manifest = Manifest()
    settings = settings.Settings()
    def load_manifest(self):
        return self.manifest.load()
    def decisions(self, *, open_only=True):
        ask = domain.DecisionKind.SCOPE
        return (domain.Decision("T1.1", "T1", "r", ask, "How far?", "all the way"),)
    def owner(self):
        return None
    def redactor(self):
        from loopctl.redaction import Redactor
        return Redactor({})
    def runs(self):
        return ()

bootstrap.open_project = lambda *args, **more: Project()
"""
RUN = """
import sys
{before}
from loopctl.cli.app import build
try:
    build({argv!r})({argv!r}, prog_name="loop")
except SystemExit as end:
    assert not end.code, end.code
print(" ".join(sorted(sys.modules)), file=sys.stderr)
"""


def modules(*argv: str, before: str = "") -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(before=before, argv=list(argv))],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("argv", "before"),
    [
        (("--help",), ""),
        (("status",), STATUS),
        (("status", "--json"), STATUS),
        (("--version",), ""),
    ],
    ids=["help", "status", "status --json", "version"],
)
def test_start_up_loads_nothing_heavy(argv: tuple[str, ...], before: str) -> None:
    loaded = modules(*argv, before=before)
    assert not loaded & {"litellm", "langgraph", "mcp", "git", "rich", "tomlkit"}


def test_help_and_version_load_no_model_of_ours() -> None:
    assert not modules("--help") & {"loopctl.events", "loopctl.settings", "loopctl.bootstrap"}


def test_reference_page_is_what_the_program_says() -> None:
    assert REFERENCE.read_text("utf-8") == render()


def test_reference_page_is_the_same_at_every_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = render()
    monkeypatch.setenv("COLUMNS", "40")
    assert render() == wide
    assert max(len(line) for line in wide.splitlines()) <= 100


@pytest.mark.parametrize(
    ("argv", "code", "where"),
    [
        (["--version"], 0, "stdout"),
        (["--help"], 0, "stdout"),
        (["status", "--help"], 0, "stdout"),
        (["--nonsense"], 2, "stderr"),
        (["status", "surplus"], 2, "stderr"),
        (["todo-done"], 2, "stderr"),
    ],
)
def test_result_goes_to_stdout_and_the_rest_to_stderr(
    shell: Shell, argv: list[str], code: int, where: str
) -> None:
    done = shell(*argv)
    assert done.returncode == code
    assert bool(done.stdout) == (where == "stdout")
    assert bool(done.stderr) == (where == "stderr")


def test_a_reader_that_goes_away_ends_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    script = RUN.format(before=STATUS, argv=["status"]).rpartition("print")[0]
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_letter_that_the_encoding_lacks_is_written_as_its_escape(tmp_path: Path) -> None:
    before = STATUS.replace("How far?", "Wie weit \\u6f22?")
    script = RUN.format(before=before, argv=["status"]).rpartition("print")[0]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={"PYTHONIOENCODING": "latin-1", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0
    assert b"\\u6f22" in done.stdout


def complete(checkout: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "loopctl"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=checkout,
        env={
            "PATH": "/usr/bin:/bin",
            "_LOOP_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    return done.stdout.split()


@pytest.fixture
def tasks(checkout: Path) -> Path:
    (checkout / "tasks" / "ACTIVE.toml").write_text(
        'schema = 1\n[[task]]\nid = "T440"\ntitle = "x"\narea = ["import"]\n'
        '[[task]]\nid = "T447"\ntitle = "y"\narea = ["auth", "import"]\n'
    )
    (checkout / ".local" / "runs" / "20261130T184500-3f2a").mkdir(parents=True)
    return checkout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("loop", "sta"), ["status"]),
        (("loop", "T44"), ["T440", "T447"]),
        (("loop", "T440", "T"), ["T440", "T447"]),
        (("loop", "--area", "a"), ["auth"]),
        (("loop", "show", "T"), ["T440", "T447"]),
        (("loop", "report", "2"), ["20261130T184500-3f2a"]),
        (("loop", "status", "--js"), ["--json"]),
        (("loop", "--max-u"), ["--max-usd"]),
    ],
)
def test_the_shell_completes(tasks: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(tasks, *words) == offered


def test_the_shell_is_offered_commands_and_ids(tasks: Path) -> None:
    assert {"status", "answer", "T440", "T447"} <= set(complete(tasks, "loop", ""))


@pytest.mark.parametrize("text", ["not toml [", "task = 3", 'task = [{ id = 3, area = "x" }]'])
def test_a_broken_manifest_offers_nothing(checkout: Path, text: str) -> None:
    (checkout / "tasks" / "ACTIVE.toml").write_text(text)
    assert complete(checkout, "loop", "T") == []


def test_status_document_is_ascii(tmp_path: Path) -> None:
    before = STATUS.replace("How far?", "\\u202e\\x1b[2J \\u6f22")
    script = RUN.format(before=before, argv=["status", "--json"]).rpartition("print")[0]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=60, check=True, cwd=tmp_path
    )
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert json.loads(done.stdout)["decisions"][0]["question"] == "\u202e\x1b[2J \u6f22"
