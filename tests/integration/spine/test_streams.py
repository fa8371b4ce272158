"""Streams that cannot be written end no run, and are no bug: full, closed, and of few letters."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


def loop(
    project: Any, redirection: str, *argv: str, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Run ``loop`` from a shell, its streams redirected."""
    command = f'"$0" -m loopctl "$@" {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *argv],
        cwd=project.root,
        env={**project.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    "redirection", [pytest.param("2>/dev/full", marks=needs_full), "2>&-", ">&- 2>&-", "<&- 2>&-"]
)
def test_a_run_goes_on_where_its_progress_cannot_be_written(project: Any, redirection: str) -> None:
    done = loop(project, redirection)
    assert (done.returncode, done.stderr) == (0, "")
    assert project.landed() == ["T1"]
    assert loop(project, "", "status").returncode == 0


@pytest.mark.parametrize("redirection", [pytest.param(">/dev/full", marks=needs_full), ">&-"])
@pytest.mark.parametrize(("command", "code"), [("echo made > made", 0), ("false", 4)])
def test_a_run_keeps_its_exit_code_where_the_report_cannot_be_written(
    project: Any, redirection: str, command: str, code: int
) -> None:
    project.manifest(project.task("T1", command))
    done = loop(project, redirection)
    assert done.returncode == code
    assert done.stderr.count("stdout cannot be written") == 1


@needs_full
@pytest.mark.parametrize(
    "argv",
    [
        *(["status"], ["status", "--json"], ["report"], ["next"], ["runs"], ["show", "T1"]),
        *(["--dry-run"], ["recover"], ["--version"], ["--help"], ["status", "--help"]),
    ],
    ids=" ".join,
)
def test_a_result_that_cannot_be_written_is_one_message_and_2(
    project: Any, argv: list[str]
) -> None:
    assert loop(project, "").returncode == 0
    done = loop(project, "> /dev/full", *argv)
    assert done.returncode == 2
    assert done.stderr == "loop: stdout cannot be written: No space left on device\n"


def test_a_closed_stdout_is_said(project: Any) -> None:
    done = loop(project, ">&-", "status")
    assert (done.returncode, done.stderr) == (2, "loop: stdout cannot be written: it is closed\n")


def test_letters_that_the_terminal_lacks_are_written_as_escapes(project: Any) -> None:
    project.manifest(project.task("T1", title="Größe 漢字"))
    assert loop(project, "").returncode == 0
    for argv in (["report"], ["show", "T1"], ["next"], ["--dry-run"], ["status"]):
        done = loop(project, "", *argv, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert "Traceback" not in done.stderr
    said = loop(project, "", "report", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0").stdout
    assert "Gr\\xf6\\xdfe" in said


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["nope", "--json"], "usage"),
        (["--json", "--bogus"], "usage"),
        (["show", "nope", "--json"], "usage"),
        (["answer", "nope", "x", "--json"], "answer"),
        (["resume", "--json"], "usage"),
        (["land", "--json"], "landing_refused"),
    ],
)
def test_what_ends_before_a_run_is_a_document_too(project: Any, argv: list[str], kind: str) -> None:
    done = project.loop(*argv)
    document = json.loads(done.out)
    assert (done.code, document["schema"], document["exit_code"]) == (2, 1, 2)
    assert document["error"]["kind"] == kind
    assert document["error"]["message"] in done.err


def test_a_broken_manifest_is_a_document_too(project: Any) -> None:
    project.write("tasks/ACTIVE.toml", "[[task]]\n")
    document = json.loads(project.loop("--json").out)
    assert document["error"]["kind"] == "manifest"
    assert "tasks/ACTIVE.toml:1" in document["error"]["message"]


def test_a_file_in_the_place_of_our_folder_is_one_message(project: Any) -> None:
    project.write(".local", "mine")
    for argv in ([], ["resume"], ["land"], ["answer", "T1", "x"], ["demo", "."]):
        done = loop(project, "", *argv)
        assert done.returncode == 2, (argv, done.stderr)
        assert len(done.stderr.splitlines()) == 1, (argv, done.stderr)
        assert "bug" not in done.stderr
    assert ".local is no folder" in loop(project, "").stderr
    assert project.read(".local") == "mine"
    for argv in (["status"], ["runs"], ["recover"], ["--dry-run"]):
        assert loop(project, "", *argv).returncode == 0


def test_a_manifest_without_tasks_is_said(project: Any) -> None:
    for text in ("", "# nothing yet\n"):
        project.write("tasks/ACTIVE.toml", text)
        for argv in ([], ["--dry-run"]):
            done = loop(project, "", *argv)
            assert done.returncode == 0, done.stderr
            assert "warning: the manifest lists no task" in done.stderr
