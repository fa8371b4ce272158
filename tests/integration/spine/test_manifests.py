"""Manifests that are missing, broken, or edited while a run works through them."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

import pytest


def assert_nothing_happened(project: Any, text: bytes | None = None) -> None:
    assert not (project.root / ".local").exists()
    if text is not None:
        assert (project.root / "tasks" / "ACTIVE.toml").read_bytes() == text


def test_a_missing_manifest_is_one_message_that_names_the_remedy(project: Any) -> None:
    (project.root / "tasks" / "ACTIVE.toml").unlink()
    done = project.loop()
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == "loop: tasks/ACTIVE.toml: there is no such file; `loop init` writes an example\n"
    )
    assert_nothing_happened(project)


@pytest.mark.parametrize("argv", [(), ("--json",), ("T1",), ("--dry-run",), ("status",), ("next",)])
def test_a_broken_manifest_names_all_its_faults_and_nothing_is_run_or_written(
    project: Any, argv: tuple[str, ...]
) -> None:
    project.manifest(
        project.task("T1", "touch ran", deps=["T9"], staus="todo"),
        project.task("T1", "touch ran"),
        project.task("T3", "touch ran", priority="high", status="finished"),
        project.task("T4", "touch ran", deps=["T5"]),
        project.task("T5", "touch ran", deps=["T4"]),
    )
    text = (project.root / "tasks" / "ACTIVE.toml").read_bytes()
    done = project.loop(*argv)
    assert (done.code, bool(done.out)) == (2, "--json" in argv)
    assert "Traceback" not in done.err
    for words in ("'staus'", "T9", "T1", "'high'", "'finished'", "T4"):
        assert words.strip("'") in done.err
    lines = done.err.strip().splitlines()
    assert len(lines) >= 6
    assert all("tasks/ACTIVE.toml:" in line for line in lines)
    assert_nothing_happened(project, text)


@pytest.mark.parametrize(
    "content",
    [
        b"schema = 1\n[[task]\n",
        b"\xff\xfe\x00s",
        b"",
        b"schema = 99\n",
        b"[[task]]\nid = 'T1'\n",
        b"a = [" * 5000,
        b"\x00" * 100,
    ],
    ids=["syntax", "utf-16", "empty", "schema", "no title", "deep", "zeros"],
)
def test_a_file_that_is_no_manifest_is_refused_without_a_traceback(
    project: Any, content: bytes
) -> None:
    project.write("tasks/ACTIVE.toml", content)
    done = project.loop()
    assert "Traceback" not in done.err
    assert "internal fault" not in done.err
    if content:
        assert (done.code, done.out) == (2, "")
        assert_nothing_happened(project, content)
    else:
        assert done.code in {0, 2}


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_a_manifest_that_is_no_file_is_refused(project: Any, kind: str) -> None:
    place = project.root / "tasks" / "ACTIVE.toml"
    place.unlink()
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        run(["mkfifo", place], check=True)
    else:
        place.symlink_to("nowhere")
    done = project.loop()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("loop: tasks/")
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("T440x",), "T440"),
        (("t440",), "T440"),
        (("T440", "T4477"), "T447"),
        (("statsu",), "status"),
    ],
)
def test_unknown_words_name_the_nearest_and_run_nothing(
    project: Any, words: tuple[str, ...], near: str
) -> None:
    project.manifest(project.task("T440"), project.task("T447"))
    done = project.loop(*words)
    assert (done.code, done.out) == (2, "")
    assert f"{near!r}" in done.err or near in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert_nothing_happened(project)


def test_settings_that_are_broken_name_all_their_faults(project: Any) -> None:
    project.settings("[loop]\njobs = 0\nmode = 'wild'\n[gate]\ntimeuot_s = 1\n")
    done = project.loop()
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 3
    assert "timeout_s" in done.err
    assert_nothing_happened(project)


# --- edited while a run is under way


def once(kind: str, act: Callable[[], None]) -> Callable[[Any], None]:
    """Return a listener that acts at the first event of a kind."""
    seen: list[str] = []

    def listener(event: Any) -> None:
        if event.type == kind and not seen:
            seen.append(kind)
            act()

    return listener


def test_an_edit_during_a_run_is_kept_and_a_new_task_is_taken_up(project: Any) -> None:
    def edit() -> None:
        text = project.read("tasks/ACTIVE.toml").replace("Title of T1", "A better title")
        project.write("tasks/ACTIVE.toml", f"# mine\n{text}\n{project.task('T2', 'echo 2 > two')}")

    outcome = project.run(untouched=False, listeners=[once("step_started", edit)])
    assert outcome.code == 0
    text = project.read("tasks/ACTIVE.toml")
    assert text.startswith("# mine\n")
    assert "A better title" in text
    assert (project.status("T1"), project.status("T2")) == ("done", "done")
    assert project.landed() == ["T1", "T2"]


def test_a_manifest_broken_during_a_run_does_not_end_it_and_is_not_written(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    broken = b"schema = 1\n[[task\nid = half an edit"

    def edit() -> None:
        project.write("tasks/ACTIVE.toml", broken)

    outcome = project.run(untouched=False, listeners=[once("step_started", edit)])
    assert outcome.code == 0
    assert project.landed() == ["T1", "T2"]
    assert (project.root / "tasks" / "ACTIVE.toml").read_bytes() == broken
    assert "status done was not written" in outcome.notices


@pytest.mark.parametrize("read", ["as it was last", "as it was first"])
def test_a_manifest_mended_after_a_run_gets_its_statuses_and_nothing_is_done_again(
    project: Any, read: str
) -> None:
    project.manifest(
        project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"), project.task("T3")
    )
    first = project.read("tasks/ACTIVE.toml")
    seen: list[str] = []

    def edit() -> None:
        seen.append(project.read("tasks/ACTIVE.toml"))
        project.write("tasks/ACTIVE.toml", "no [ manifest")

    assert (
        project.run("T1", "T2", untouched=False, listeners=[once("step_started", edit)]).code == 0
    )
    project.write("tasks/ACTIVE.toml", seen[0] if read == "as it was last" else first)
    planned = json.loads(project.loop("--dry-run", "--json").out)
    assert [task["id"] for task in planned["tasks"]] == ["T3"]
    told = json.loads(project.loop("status", "--json").out)
    assert told["tasks"]["done"] == 2
    outcome = project.run()
    assert outcome.code == 0
    assert {event.task for event in outcome.of("task_claimed")} == {"T3"}
    assert [project.status(one) for one in ("T1", "T2", "T3")] == ["done", "done", "done"]
    assert not (project.root / ".local" / "unwritten.json").exists()


def test_a_status_that_a_person_gives_a_mended_manifest_counts(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))

    def edit() -> None:
        project.write("tasks/ACTIVE.toml", "no [ manifest")

    assert project.run(untouched=False, listeners=[once("step_started", edit)]).code == 0
    project.manifest(
        project.task("T1", "echo 1 > one", status="abandoned"),
        project.task("T2", "echo 2 > two", status="abandoned"),
    )
    assert project.run().code == 0
    assert [project.status(one) for one in ("T1", "T2")] == ["abandoned", "abandoned"]


def test_a_manifest_mended_during_a_run_gets_the_statuses_that_were_held_back(
    project: Any,
) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    good = project.read("tasks/ACTIVE.toml")

    def act(event: Any) -> None:
        if event.type == "step_started" and event.task == "T1":
            project.write("tasks/ACTIVE.toml", "no [ manifest")
        elif event.type == "step_started" and event.task == "T2":
            project.write("tasks/ACTIVE.toml", good)

    assert project.run(untouched=False, listeners=[act]).code == 0
    assert (project.status("T1"), project.status("T2")) == ("done", "done")


@pytest.mark.parametrize("change", ["renamed", "removed", "file removed"])
def test_a_task_that_goes_while_it_is_worked_on_lands_and_that_is_said(
    project: Any, change: str
) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    second = project.task("T2", "echo 2 > two")

    def edit() -> None:
        if change == "renamed":
            project.manifest(project.task("T9", "echo 9 > nine"), second)
        elif change == "removed":
            project.manifest(second)
        else:
            (project.root / "tasks" / "ACTIVE.toml").unlink()

    outcome = project.run(untouched=False, listeners=[once("step_started", edit)])
    assert outcome.code == 0, outcome
    assert {"T1", "T2"} <= set(project.landed())
    assert "status done was not written" in outcome.notices
    if change == "renamed":
        assert project.status("T9") == "done"
    if change == "file removed":
        assert not (project.root / "tasks" / "ACTIVE.toml").exists()


def test_a_named_task_that_goes_during_the_run_does_not_end_it(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    edit = once("step_started", lambda: project.manifest(project.task("T2", "echo 2 > two")))
    outcome = project.run("T1", untouched=False, listeners=[edit])
    assert outcome.code == 0
    assert project.landed() == ["T1"]
    assert project.status("T2") == "todo"


def test_a_task_that_is_abandoned_before_its_turn_is_left_alone(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))

    def edit() -> None:
        text = project.read("tasks/ACTIVE.toml")
        project.write(
            "tasks/ACTIVE.toml", text.replace('id = "T2"', 'id = "T2"\nstatus = "abandoned"')
        )

    outcome = project.run(untouched=False, listeners=[once("step_started", edit)])
    assert outcome.code == 0
    assert project.landed() == ["T1"]
    assert project.status("T2") == "abandoned"


def test_a_manifest_that_cannot_be_written_does_not_stop_the_run_and_is_said(
    project: Any, tmp_path: Path
) -> None:
    # Root writes everywhere but into a file system that is mounted read-only.
    mounted = run(
        ["mount", "--bind", "-o", "ro", str(project.root / "tasks"), str(project.root / "tasks")],
        check=False,
        capture_output=True,
    )
    if mounted.returncode == 0:
        run(["mount", "-o", "remount,ro,bind", str(project.root / "tasks")], check=False)
    else:
        (project.root / "tasks").chmod(0o500)
        (project.root / "tasks" / "ACTIVE.toml").chmod(0o400)
    try:
        outcome = project.run()
    finally:
        if mounted.returncode == 0:
            run(["umount", str(project.root / "tasks")], check=True)
        else:
            (project.root / "tasks").chmod(0o700)
    assert outcome.code == 0
    assert project.landed() == ["T1"]
    assert "status done was not written" in outcome.notices
    assert project.status("T1") == "todo"


def test_what_had_landed_without_its_status_is_not_done_again_but_judged(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"))
    broken = once("step_started", lambda: project.write("tasks/ACTIVE.toml", "broken ["))
    assert project.run(untouched=False, listeners=[broken]).code == 0
    project.manifest(project.task("T1", "echo 1 > one", status="in-progress"))
    outcome = project.run()
    assert project.landed() == ["T1"]
    assert outcome.code in {0, 4}
