import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from loopctl import bootstrap
from loopctl.domain import RunOptions
from loopctl.errors import LandingRefusedError
from loopctl.given import LandedHere, Tool
from loopctl.manifest.toml import TomlManifest
from loopctl.report.files import to_json
from loopctl.report.summary import RunSummary

Loop = Callable[..., Result]
RUN_ID = "20261130T184500-3f2a"


def test_status_tells_tasks_run_and_decisions(loop: Loop) -> None:
    result = loop("status")
    assert result.exit_code == 0
    assert "Tasks: 1 todo, 1 needs-human, 1 backlog" in result.stdout
    assert f"Newest run: {RUN_ID}, decisions needed." in result.stdout
    assert "T447.1 [external] Which provider?" in result.stdout
    assert "loop answer T447.1 'use OAuth'" in result.stdout


def test_status_names_who_drives_the_repository(loop: Loop, project: Any) -> None:
    project.pid = (4711, RUN_ID)
    assert f"Process 4711 is driving run {RUN_ID}." in loop("status").stdout


@pytest.mark.parametrize("packed", [False, True])
def test_status_sees_that_something_landed(loop: Loop, checkout: Path, *, packed: bool) -> None:
    git = checkout / ".git"
    if packed:
        (git / "packed-refs").write_text(f"# pack-refs\n{'c' * 40} refs/heads/loop/integration\n")
    else:
        (git / "refs" / "heads" / "loop").mkdir()
        (git / "refs" / "heads" / "loop" / "integration").write_text("c" * 40)
    assert "loop/integration is at cccccccccc, another commit than main" in loop("status").stdout


def test_status_without_manifest_or_run_says_what_to_do(loop: Loop, project: Any) -> None:
    project.manifest.path.unlink()
    project.runs_so_far = ()
    stdout = loop("status").stdout
    assert "There is no manifest here; `loop init` writes an example." in stdout
    assert "No run yet" in stdout


def test_status_as_a_document(loop: Loop) -> None:
    document = json.loads(loop("status", "--json").stdout)
    assert document["tasks"] == {"todo": 1, "needs-human": 1, "backlog": 1}
    assert document["run"] == {"run_id": RUN_ID, "status": "needs_human"}
    assert document["branch"] == {
        "name": "loop/integration",
        "commit": None,
        "current": "main",
        "current_commit": "a" * 40,
    }


def test_show_tells_the_story_of_a_task(loop: Loop) -> None:
    result = loop("show", "T447")
    assert result.exit_code == 0
    for part in (
        "T447 Title of T447",
        "status: needs-human",
        f"Run {RUN_ID}",
        "18:45:00 T447 decision T447.1 (external): Which provider?",
        "loop answer T447.1 'use OAuth'",
        f"loop recover refs/loop/{RUN_ID}/T447/main --branch NAME",
    ):
        assert part in result.stdout


def test_show_as_a_document(loop: Loop) -> None:
    document = json.loads(loop("show", "T440", "--json").stdout)
    assert (document["id"], document["status"]) == ("T440", "todo")
    assert [run["run_id"] for run in document["runs"]] == [RUN_ID]
    assert document["decisions"][0]["answer"] == "all"


def test_show_of_an_unknown_task_names_the_nearest(loop: Loop) -> None:
    result = loop("show", "T44")
    assert result.exit_code == 2
    assert "'T44' is no task of the manifest; did you mean 'T44" in result.stderr


def test_runs_are_listed(loop: Loop, project: Any) -> None:
    assert f"- {RUN_ID} decisions needed" in loop("runs").stdout
    assert json.loads(loop("runs", "--json").stdout)["runs"][0]["status"] == "needs_human"
    project.runs_so_far = ()
    assert "No run yet" in loop("runs").stdout


@pytest.mark.parametrize(
    ("argv", "begins"),
    [
        (["report"], f"Run {RUN_ID}"),
        (["report", RUN_ID], f"Run {RUN_ID}"),
        (["report", "--format", "md"], f"# Run {RUN_ID}"),
        (["report", "--format", "html"], "<!doctype html>"),
        (["report", "--format", "json"], '{\n  "schema": 1'),
        (["report", "--json"], '{\n  "schema": 1'),
    ],
)
def test_report_has_four_formats(loop: Loop, argv: list[str], begins: str) -> None:
    result = loop(*argv)
    assert result.exit_code == 0
    assert result.stdout.startswith(begins)


def test_a_report_cannot_be_two_things_at_once(loop: Loop) -> None:
    result = loop("report", "--format", "md", "--json")
    assert result.exit_code == 2
    assert "--format md and --json ask for two things" in result.stderr
    assert loop("report", "--format", "json", "--json").exit_code == 0


def test_report_of_an_unknown_run_names_the_nearest(loop: Loop, project: Any) -> None:
    result = loop("report", RUN_ID[:-1])
    assert result.exit_code == 2
    assert f"did you mean '{RUN_ID}'?" in result.stderr
    project.runs_so_far = ()
    assert "there is no run yet" in loop("report").stderr


@pytest.mark.parametrize(("argv", "run"), [([], None), ([RUN_ID], RUN_ID)])
def test_resume_carries_on(loop: Loop, project: Any, argv: list[str], run: str | None) -> None:
    assert loop("resume", *argv).exit_code == 3
    assert project.calls == [("resume", run)]


def test_next_shows_the_frontier_alone(loop: Loop, project: Any) -> None:
    result = loop("next")
    assert result.stdout == "- T440 Parse the header (reversible, worker command)\n"
    assert project.calls == [("prospects", RunOptions())]
    assert [task["id"] for task in json.loads(loop("next", "--json").stdout)["tasks"]] == ["T440"]


def test_land_says_what_moved(loop: Loop) -> None:
    assert loop("land").stdout == "main: bbbbbbbbbb -> cccccccccc, 2 commits\n"
    assert json.loads(loop("land", "--json").stdout)["commits"] == 2


def test_land_of_uncommitted_work_says_where_it_is(loop: Loop, project: Any) -> None:
    project.landed = LandedHere("main", "b" * 40, "b" * 40, 0, files=3)
    assert loop("land").stdout == "The run's changes are in 3 files of the checkout.\n"


def test_a_refused_landing_says_why(loop: Loop, project: Any) -> None:
    project.fault = LandingRefusedError("main has commits of its own; merge loop/integration")
    result = loop("land")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "main has commits of its own" in result.stderr


def test_recover_lists_what_is_kept(loop: Loop, project: Any) -> None:
    assert f"- refs/loop/{RUN_ID}/T447/main eeeeeeeeee\n" in loop("recover").stdout
    assert json.loads(loop("recover", "--json").stdout)["kept"][0]["landed"] is False
    project.kept_trees = ()
    assert "Nothing is kept." in loop("recover").stdout


def test_recover_brings_a_tree_back(loop: Loop, project: Any) -> None:
    ref = f"refs/loop/{RUN_ID}/T447/main"
    result = loop("recover", ref, "--branch", "back")
    assert project.calls == [("recover", (ref, "back"))]
    assert result.stdout == "back is at dddddddddd: git switch back\n"


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["nope"], "'nope' is not kept"),
        ([f"refs/loop/{RUN_ID}/T447/main"], "loop recover REF --branch NAME"),
        (["--branch", "b"], "loop recover REF"),
        *(
            ([f"refs/loop/{RUN_ID}/T447/main", "--branch", name], f"--branch '{name}': git reads")
            for name in ("HEAD", "FETCH_HEAD", "@", "refs/heads/x", "heads/x", "a" * 40)
        ),
        (["refs/loop/r/T447/man", "--branch", "b"], "is not kept"),
    ],
)
def test_recover_refuses_what_it_cannot_do(
    loop: Loop, project: Any, argv: list[str], part: str
) -> None:
    result = loop("recover", *argv)
    assert result.exit_code == 2
    assert part in result.stderr
    assert project.calls == []


def test_init_writes_a_manifest_that_can_be_read(loop: Loop, project: Any, checkout: Path) -> None:
    path = project.manifest.path
    path.unlink()
    result = loop("init")
    assert result.exit_code == 0
    assert "loop --dry-run" in result.stdout
    assert [task.id for task in TomlManifest(path, "tasks/ACTIVE.toml").load().tasks] == [
        "T1",
        "T2",
    ]


def test_init_leaves_an_existing_manifest_alone(loop: Loop, project: Any) -> None:
    before = project.manifest.path.read_bytes()
    result = loop("init")
    assert result.exit_code == 2
    assert "exists already and was left as it is" in result.stderr
    assert project.manifest.path.read_bytes() == before


def tools(*, is_usable: bool) -> Callable[[], tuple[Tool, ...]]:
    return lambda: (Tool("git", "2.39.5" if is_usable else "missing", is_usable),)


def test_doctor_shows_each_setting_with_its_origin(
    loop: Loop, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "tools", tools(is_usable=True))
    monkeypatch.setenv("LOOP_SET_LOOP__JOBS", "3")
    (checkout / "loop.toml").write_text("[budget]\nloops = 7\n")
    result = loop("doctor")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "git: 2.39.5" in lines
    assert "budget.loops 7 (loop.toml:2)" in lines
    assert "loop.jobs 3 (LOOP_SET_LOOP__JOBS)" in lines
    assert "land.auto false (default)" in lines
    document = json.loads(loop("doctor", "--json").stdout)
    assert document["settings"]["budget.loops"] == {"value": 7, "origin": "loop.toml:2"}


def test_doctor_ends_with_2_where_a_tool_is_missing(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "tools", tools(is_usable=False))
    result = loop("doctor")
    assert result.exit_code == 2
    assert "! git: missing" in result.stdout


def test_doctor_says_which_models_are_asked_or_what_is_missing(
    loop: Loop, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "tools", tools(is_usable=True))
    text = '[models.standard]\nname = "openai/some"\napi_key_env = "SOME_KEY"\n'
    (checkout / "loop.toml").write_text(text)
    missing = loop("doctor")
    assert (missing.exit_code, "SOME_KEY is not set" in missing.stdout) == (0, True)
    assert "\n! models: " in missing.stdout
    monkeypatch.setenv("SOME_KEY", "k")
    assert "\n  models: cheap openai/some, standard openai/some" in loop("doctor").stdout


def test_doctor_warns_where_steps_of_the_newest_run_had_to_wait_for_summaries(
    loop: Loop, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "tools", tools(is_usable=True))
    folder = checkout / ".local" / "runs" / "r-1"
    folder.mkdir(parents=True)
    waited = RunSummary(run_id="r-1", compactions=8, compactions_in_line=1)
    (folder / "run.json").write_text(to_json(waited))
    assert "! compaction: in run r-1 steps had to wait for 1 of 8" in loop("doctor").stdout
    (remark,) = json.loads(loop("doctor", "--json").stdout)["remarks"][1:]
    assert (remark["about"], remark["warning"]) == ("compaction", True)
    (folder / "run.json").write_text(to_json(RunSummary(compactions=10, compactions_in_line=1)))
    assert "compaction:" not in loop("doctor").stdout


def test_demo_makes_a_project_and_drives_it(
    loop: Loop, project: Any, opened: Any, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path | None] = []

    def create_demo(folder: Path | None) -> Path:
        made.append(folder)
        return checkout

    monkeypatch.setattr(bootstrap, "create_demo", create_demo)
    result = loop("demo", "somewhere")
    assert made == [Path("somewhere")]
    assert opened[0].directory == checkout
    assert project.calls == [("run", RunOptions())]
    assert f"The demo project is in {checkout}" in result.stderr
    assert result.exit_code == 3


@pytest.mark.parametrize("argv", [["--version"], ["--version", "status"]])
def test_version(loop: Loop, argv: list[str]) -> None:
    assert loop(*argv).stdout == "loop 0.1.0\n"


def test_help_lists_every_command_and_the_options_of_a_run(loop: Loop) -> None:
    text = loop("--help").stdout
    for word in ("--jobs", "--area", "--json", "-C DIR", "answer", "recover", "todo-done"):
        assert word in text
    assert "--bg" in text
    assert "--evolve" in text
    assert "--test-debug-fix" in text
    assert "--area" in loop("run", "-h").stdout
