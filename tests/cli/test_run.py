import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from loopctl.domain import RunOptions, RunStatus, Scope, TaskId, Wait
from loopctl.errors import (
    CancelledError,
    Fault,
    LeaseHeldError,
    ManifestError,
    RepositoryError,
    SandboxError,
    SettingsError,
)
from loopctl.events import RunEnded

Loop = Callable[..., Result]


def asked_scope(project: Any) -> Scope:
    name, options = project.calls[-1]
    assert name in {"run", "prospects"}
    assert isinstance(options, RunOptions)
    return options.scope


@pytest.mark.parametrize(
    ("argv", "scope"),
    [
        ([], Scope()),
        (["run"], Scope()),
        (["T440"], Scope(ids=(TaskId("T440"),))),
        (["T440", "T447"], Scope(ids=(TaskId("T440"), TaskId("T447")))),
        (["run", "T447"], Scope(ids=(TaskId("T447"),))),
        (["run", "--", "T447"], Scope(ids=(TaskId("T447"),))),
        (["--", "T447"], Scope(ids=(TaskId("T447"),))),
        (["--area", "import"], Scope(areas=("import",))),
        (["--area=import", "--area", "auth"], Scope(areas=("import", "auth"))),
        (["T447", "--with-deps"], Scope(ids=(TaskId("T447"),), with_deps=True)),
        (["--with-deps", "T447"], Scope(ids=(TaskId("T447"),), with_deps=True)),
        (["-C", ".", "T440"], Scope(ids=(TaskId("T440"),))),
        (["T440", "-C", "."], Scope(ids=(TaskId("T440"),))),
    ],
)
def test_words_name_the_scope(loop: Loop, project: Any, argv: list[str], scope: Scope) -> None:
    assert loop(*argv).exit_code == 3
    assert asked_scope(project) == scope


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["T44O"], "'T44O' is no task of the manifest and no command; did you mean 'T44"),
        (["staus"], "did you mean 'status'?"),
        (["fix", "the", "login"], "'fix' is no task"),
        (["T440", "status"], "'status' is no task"),
        (["--jobs", "2", "status"], "'status' is a command"),
        (["run", "--", "fix the login"], "only ids may stand"),
        (["--", "status"], "for a goal: loop --goal=status"),
        (["--", "-x"], "for a goal: loop --goal=-x"),
        (["--jobs", "2", "status"], "for a goal: loop --goal status"),
        (["fix the login", "--area", "import"], "a goal drives the whole manifest"),
        (["x " * 50_000], "the goal has 100000 bytes"),
        (["--goal", "login", "--dry-run"], "--dry-run asks no model"),
        (["--goal=-x", "--with-deps"], "leave --area and --with-deps out"),
        (["--goal", ""], "the goal is empty"),
        (["  "], "the goal is empty"),
        ([""], "a word is empty"),
        (["--goal", "x", "T440"], "not both"),
        (["--area", "imprt"], "'imprt': no task has this tag; did you mean 'import'?"),
        (["--verify", " "], "an empty command verifies nothing"),
        (["--jobs", "0"], "--jobs"),
        (["--jobs", "many"], "--jobs"),
        (["--max-usd", "-1"], "--max-usd"),
        (["--aera", "x"], "--aera"),
        (["-C", "nowhere"], "'nowhere"),
        (["-C"], "-C"),
        (["--worker", "comand"], "'comand' is no worker; did you mean 'command'?"),
        (["--worker", "nope"], "'nope' is no worker: aider, claude, codex, command"),
        (["--bg", "--attended"], "--attended and --bg"),
    ],
)
def test_bad_words_run_nothing(loop: Loop, project: Any, argv: list[str], part: str) -> None:
    result = loop(*argv)
    assert result.exit_code == 2
    assert part.strip("'") in result.stderr
    assert result.stdout == ""
    assert project.calls == []


def test_options_become_settings_of_the_command_line(loop: Loop, opened: Any) -> None:
    loop(
        *("--jobs", "3", "--worker", "command", "--mode", "relay", "--max-usd", "1.5"),
        *("--max-tokens", "0", "--max-loops", "7", "--max-wall", "90", "--no-sandbox"),
    )
    assert opened[0].overrides == {
        "loop.jobs": 3,
        "loop.worker": "command",
        "loop.mode": "relay",
        "budget.run_usd": 1.5,
        "budget.task_tokens": 0,
        "budget.loops": 7,
        "budget.wall_s": 90.0,
        "sandbox.confine": "off",
    }


def test_what_is_not_given_overrides_nothing(loop: Loop, opened: Any, checkout: Path) -> None:
    loop()
    assert (opened[0].directory, opened[0].manifest, opened[0].overrides) == (checkout, None, {})


def test_the_rest_of_the_options_reaches_the_run(loop: Loop, project: Any, opened: Any) -> None:
    loop("--verify", "make check", "--attended", "--wip", "--land", "--manifest", "other.toml")
    assert project.calls == [
        ("run", RunOptions(verify_cmd="make check", attended=True, wip=True, land=True))
    ]
    assert opened[0].manifest == Path("other.toml")


def test_nobody_is_there_where_stdin_is_no_terminal(loop: Loop, project: Any) -> None:
    loop()
    assert project.calls[0][1].attended is False


@pytest.mark.parametrize("argv", [["-C", "sub"], ["-C", ".", "-C", "sub"], ["run", "-C", "sub"]])
def test_directory_stands_before_or_behind(
    loop: Loop, opened: Any, checkout: Path, argv: list[str]
) -> None:
    (checkout / "sub").mkdir()
    loop(*argv)
    assert opened[0].directory.resolve() == checkout / "sub"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (RunStatus.COMPLETE, 0),
        (RunStatus.NEEDS_HUMAN, 3),
        (RunStatus.STALLED, 4),
        (RunStatus.BUDGET_EXHAUSTED, 5),
        (RunStatus.INTERRUPTED, 130),
    ],
)
def test_exit_code_is_the_run_s(loop: Loop, project: Any, status: RunStatus, code: int) -> None:
    project.status, project.exit_code = status, code
    assert loop().exit_code == code


@pytest.mark.parametrize(
    ("fault", "code", "part"),
    [
        (LeaseHeldError(4711, "r1"), 2, "process 4711 is already driving this repository (run r1)"),
        (RepositoryError("this is a bare repository"), 2, "this is a bare repository"),
        (SettingsError(Fault("loop.toml", 3, "no such key")), 2, "loop.toml:3: no such key"),
        (CancelledError("stopped"), 130, "stopped"),
        (SandboxError("no worktree"), 2, "no worktree"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_one_message_and_its_exit_code(
    loop: Loop, project: Any, fault: BaseException, code: int, part: str
) -> None:
    project.fault = fault
    result = loop()
    assert result.exit_code == code
    assert part in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_broken_manifest_names_its_faults(loop: Loop, project: Any) -> None:
    project.manifest.fault = ManifestError(
        Fault("tasks/ACTIVE.toml", 3, "one"), Fault("tasks/ACTIVE.toml", 9, "two \x1b[2J")
    )
    result = loop("T440")
    assert result.exit_code == 2
    assert "tasks/ACTIVE.toml:3: one\ntasks/ACTIVE.toml:9: two \\x1b[2J\n" in result.stderr


def test_a_bug_leaves_its_trace_in_a_file_and_one_line(
    loop: Loop, project: Any, checkout: Path
) -> None:
    (checkout / ".local").mkdir()
    project.fault = ZeroDivisionError("a bug")
    result = loop()
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    (trace,) = (checkout / ".local" / "crash").iterdir()
    assert str(trace) in result.stderr
    assert "ZeroDivisionError: a bug" in trace.read_text()


def test_a_bug_outside_a_checkout_leaves_its_trace_with_the_temporary_files(
    loop: Loop, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    project.fault = ZeroDivisionError("a bug")
    assert str(tmp_path / "loop-crash-") in loop().stderr


def test_report_goes_to_stdout_and_progress_to_stderr(loop: Loop) -> None:
    result = loop()
    assert result.stdout.startswith("Run 20261130T184500-3f2a: decisions needed\n")
    assert "loop answer T447.1 'use OAuth'" in result.stdout
    assert "git log -p main..loop/integration" in result.stdout
    assert "18:45:00 T440 landed as cccccccccc" in result.stderr
    assert "\x1b" not in result.output


def test_json_is_one_document_and_nothing_else(loop: Loop, checkout: Path) -> None:
    result = loop("--json")
    document = json.loads(result.stdout)
    assert (document["run_id"], document["exit_code"]) == ("20261130T184500-3f2a", 3)
    assert [one["id"] for one in document["decisions"]] == ["T447.1"]
    written = checkout / ".local" / "runs" / "20261130T184500-3f2a" / "run.json"
    assert json.loads(written.read_text()) == document


def test_files_of_the_run_are_written(loop: Loop, checkout: Path) -> None:
    loop()
    folder = checkout / ".local" / "runs" / "20261130T184500-3f2a"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("report.html", "report.md", "run.json"),
    ]
    assert "loop answer T447.1" in (folder / "report.md").read_text()


def test_commands_carry_the_directory_where_the_shell_stands_elsewhere(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _name: None)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "my bin" / "loop")])
    (tmp_path / "my bin").mkdir()
    (tmp_path / "my bin" / "loop").touch()
    stdout = loop("-C", "check out").stdout
    assert f"'{tmp_path}/my bin/loop' -C '{tmp_path}/check out' land" in stdout


def test_dry_run_shows_order_and_policy_and_runs_nothing(loop: Loop, project: Any) -> None:
    result = loop("--dry-run")
    assert result.exit_code == 0
    assert [name for name, _ in project.calls] == ["prospects"]
    assert "- T440 Parse the header (reversible, worker command)" in result.stdout
    assert "- T447 Log in (needs-approval, worker command, after T440)" in result.stdout
    assert "- T501: backlog: set its status to todo" in result.stdout


def test_dry_run_as_a_document(loop: Loop) -> None:
    document = json.loads(loop("--dry-run", "--json").stdout)
    assert document["tasks"][1] == {
        "id": "T447",
        "title": "Log in",
        "worker": "command",
        "policy": "needs-approval",
        "waits": ["T440"],
    }
    assert document["waits"] == [{"task": "T501", "reason": "backlog: set its status to todo"}]


def test_dry_run_writes_how_to_answer_for_this_reader(
    loop: Loop, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = (Wait(TaskId("T447"), "needs an answer"),)
    monkeypatch.setattr(project, "prospects", lambda _options: ((), waits))
    monkeypatch.chdir(tmp_path)
    said = loop("--dry-run", "-C", "check out").stdout
    assert "- T447: needs an answer\n" in said
    assert f"-C '{tmp_path}/check out' answer T447.1 'use OAuth'\n" in said


@pytest.mark.parametrize("argv", [[], ["--dry-run"]])
def test_a_manifest_without_tasks_is_no_error_and_said(
    loop: Loop, project: Any, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    project.manifest.tasks = ()
    project.asked.clear()
    monkeypatch.setattr(project, "prospects", lambda _options: ((), ()))
    ended = RunEnded(status=RunStatus.COMPLETE, exit_code=0, head="b")
    monkeypatch.setattr(project, "run", lambda _options, _listeners, _person: ended)
    result = loop(*argv)
    assert result.exit_code == 0
    assert "warning: the manifest lists no task" in result.stderr
