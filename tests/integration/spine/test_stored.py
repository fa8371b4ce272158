"""What lies in ``.local`` damaged, moved or written by others: one message, nothing written over."""

import contextlib
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from loopctl import assembly, launch
from loopctl.bootstrap import open_project
from loopctl.clock import SystemClock
from loopctl.domain import RunOptions
from loopctl.errors import LoopctlError

DEFERS = (
    'echo kept > kept; if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > answer; exit; fi; '
    'loop defer --reason external --decision-needed "What?"'
)
READERS = ((), ("--json",), ("resume",), ("status",), ("runs",), ("answer", "T1", "told"))


@pytest.fixture
def asking(project: Any) -> Any:
    """A project whose run waits for an answer."""
    project.manifest(project.task("T1", DEFERS, verify_cmd="test -f answer"))
    assert project.run().code == 3
    return project


def database_of(project: Any) -> Path:
    path: Path = project.root / ".local" / "loop.db"
    assert not path.with_name("loop.db-wal").exists()
    return path


def write(project: Any, sql: str, *args: object) -> None:
    with contextlib.closing(sqlite3.connect(database_of(project))) as connection, connection:
        connection.execute(sql, args)


def refused(project: Any, words: str) -> None:
    """Each command is refused in one message that says ``words``, and changes nothing."""
    before = database_of(project).read_bytes()
    manifest = project.read("tasks/ACTIVE.toml")
    for argv in READERS:
        done = project.loop(*argv)
        assert done.code == 2, (argv, done)
        assert words in done.err, (argv, done.err)
        assert len(done.err.strip().splitlines()) == 1, done.err
        assert database_of(project).read_bytes() == before
    assert project.read("tasks/ACTIVE.toml") == manifest


def test_a_database_of_a_newer_version_is_one_message_and_left_as_it_is(asking: Any) -> None:
    write(asking, "PRAGMA user_version = 99")
    refused(asking, "version 99")


@pytest.mark.parametrize("left", ["0", "100", "4096", "half", "-4096"])
def test_a_truncated_database_is_one_message_and_left_as_it_is(asking: Any, left: str) -> None:
    path = database_of(asking)
    content = path.read_bytes()
    size = len(content) // 2 if left == "half" else int(left)
    path.write_bytes(content[:size])
    refused(asking, "is empty" if size == 0 else "move it")
    # What can be saved by hand is still there.
    path.write_bytes(content)
    assert asking.answer("T1.1", "told").code == 0
    assert asking.landed() == ["T1"]


def test_a_database_with_a_damaged_page_is_refused_before_anything_is_begun(asking: Any) -> None:
    path = database_of(asking)
    content = bytearray(path.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'calls'"
        ).fetchall()
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    manifest = asking.read("tasks/ACTIVE.toml")
    for argv in ((), ("resume",), ("answer", "T1", "told")):
        done = asking.loop(*argv)
        assert (done.code, "move it" in done.err) == (2, True), done
        assert path.read_bytes() == bytes(content)
    assert asking.read("tasks/ACTIVE.toml") == manifest


def test_a_checkpoint_of_a_newer_version_is_an_error_of_its_task_and_stays(asking: Any) -> None:
    newer = b"\x00\x00\x00\x63newer"
    write(asking, "UPDATE checkpoints SET blob = ?", newer)
    outcome = asking.answer("T1.1", "told")
    assert outcome.code == 4
    assert "too new" in outcome.notices
    assert asking.status("T1") == "blocked"
    with contextlib.closing(sqlite3.connect(database_of(asking))) as connection:
        assert connection.execute("SELECT blob FROM checkpoints").fetchall() == [(newer,)]
    assert asking.kept_file("kept") == ["kept"]


class Backwards(SystemClock):
    """Every look at the wall clock shows an earlier day; durations go on."""

    looks = 0

    def now(self) -> datetime:
        Backwards.looks += 1
        return datetime(2026, 6, 1, tzinfo=UTC) - timedelta(days=Backwards.looks)


def test_a_clock_that_jumps_backwards_changes_no_result(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "SystemClock", Backwards)
    monkeypatch.setattr(launch, "SystemClock", Backwards)
    project.manifest(
        project.task("T1", DEFERS, verify_cmd="test -f answer"), project.task("T2", "echo 2 > two")
    )
    first = project.run()
    assert (first.code, project.landed()) == (3, ["T2"])
    second = project.answer("T1.1", "told")
    assert (second.code, project.landed()) == (0, ["T2", "T1"])
    assert Backwards.looks > 20
    events = [*first.events, *second.events]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(event.ms >= 0 for event in events if event.type == "step_finished")
    assert project.run_statuses() == ["complete"]
    for argv in (("report",), ("audit", "verify"), ("metrics",), ("runs",)):
        done = project.loop(*argv)
        assert done.code == 0, done
        assert not re.search(r"(?<![\w-])-\d", done.out), done.out
    # A run that begins at an earlier moment is still the newest one.
    project.manifest(project.task("T3", "echo 3 > three"))
    assert project.run().code == 0
    assert project.run_statuses() == ["complete", "complete"]


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_kept_ref_that_somebody_has_moved_does_not_lead_the_run_astray(
    asking: Any, how: str
) -> None:
    [(ref, commit)] = asking.kept().items()
    other = asking.own("rev-parse", f"{commit}^")
    asking.own(*(("update-ref", ref, other) if how == "moved" else ("update-ref", "-d", ref)))
    assert asking.answer("T1.1", "told").code == 0
    assert (asking.landed(), asking.on_branch("kept")) == (["T1"], "kept")
    assert asking.kept_file("answer") == ["told"]


def test_kept_objects_that_are_gone_are_an_error_of_their_task_that_says_what(asking: Any) -> None:
    [(ref, _)] = asking.kept().items()
    asking.own("update-ref", "-d", ref)
    asking.own("gc", "-q", "--prune=now")
    outcome = asking.answer("T1.1", "told")
    assert outcome.code == 4
    assert asking.status("T1") == "blocked"
    assert "could not be made" in outcome.notices
    # Named again, with its session's tree gone for good, it is begun anew by a new run.
    assert asking.run("T1").code in {0, 3, 4}


def test_a_worktree_that_somebody_deletes_between_two_steps_is_said_and_costs_nothing(
    project: Any,
) -> None:
    count = 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; test "$n" -ge 2'
    project.manifest(project.task("T1", count, verify_cmd="grep -qx 3 n"))

    def delete(event: Any) -> None:
        if event.type == "step_started" and event.iteration == 2:
            for worktree in (project.root / ".local" / "worktrees").iterdir():
                shutil.rmtree(worktree)

    outcome = project.run(listeners=[delete])
    assert (outcome.code, project.status("T1")) == (4, "blocked")
    assert "is gone" in outcome.notices
    assert project.run("T1").code == 0
    assert (project.landed(), project.on_branch("n")) == (["T1"], "3")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_full_when_a_checkpoint_is_written_loses_nothing(
    make: Callable[..., Any], small_disk: Path
) -> None:
    project = make(small_disk / "project")
    project.manifest(project.task("T1", "echo made > made"))
    filler = small_disk / "filler"

    def fill(event: Any) -> None:
        if event.type == "step_finished":
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                for size in (1 << 20, 4096, 64, 1):
                    with contextlib.suppress(OSError):
                        while file.write(b"x" * size) == size:
                            pass

    events: list[Any] = []
    said = ""
    try:
        open_project(project.root).run(RunOptions(), [fill, events.append])
    except LoopctlError as error:
        said = str(error)
    said += "".join(event.text for event in events if event.type == "noticed")
    assert "the disk is full" in said
    assert project.landed() == []
    filler.unlink()
    with contextlib.closing(sqlite3.connect(project.root / ".local" / "loop.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert project.run("T1").code == 0
    assert (project.landed(), project.on_branch("made")) == (["T1"], "made")


def test_a_database_that_is_gone_is_refused_while_there_are_runs(asking: Any) -> None:
    path = database_of(asking)
    content = path.read_bytes()
    path.unlink()
    for argv in READERS:
        done = asking.loop(*argv)
        assert done.code == 2, (argv, done)
        assert "loop.db is gone" in done.err
        assert not path.exists()
    path.write_bytes(content)
    assert asking.answer("T1.1", "told").code == 0


@pytest.mark.parametrize("at", [2, -1])
def test_a_line_that_is_no_event_is_named_and_nothing_is_begun(asking: Any, at: int) -> None:
    (log,) = (asking.root / ".local" / "runs").glob("*/events.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    broken = [*lines, "garbage\n"] if at < 0 else [*lines[:at], "garbage\n", *lines[at:]]
    log.write_text("".join(broken))
    manifest = asking.read("tasks/ACTIVE.toml")
    number = len(broken) if at < 0 else at + 1
    for argv in (("answer", "T1", "told"), ("report",), ("metrics", log.parent.name)):
        done = asking.loop(*argv)
        assert done.code == 2, (argv, done)
        assert f"{log}:{number} is no event" in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert asking.read("tasks/ACTIVE.toml") == manifest
    log.write_text("".join(lines))
    assert asking.answer("T1.1", "told").code == 0


def test_metrics_of_all_runs_leave_out_the_one_that_cannot_be_read(asking: Any) -> None:
    (log,) = (asking.root / ".local" / "runs").glob("*/events.jsonl")
    with log.open("a") as file:
        file.write("garbage\n")
    done = asking.loop("metrics")
    assert done.code == 0
    assert "is left out" in done.err
    assert "# TYPE" in done.out
