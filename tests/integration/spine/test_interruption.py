"""What ends a run from outside: signals, kills, a second ``loop``. The next one carries on."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

Started = Callable[..., "Popen[bytes]"]

ENDLESS = "echo half > half; echo $$ > {mark}; if [ -e {go} ]; then exit 0; fi; exec sleep 1000"


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Where a task says its pid, and what lets it come to an end."""
    return {"mark": tmp_path / "pid", "go": tmp_path / "go"}


def pid_at(project: Any, place: Path) -> int:
    project.wait_for(lambda: place.exists() and place.read_text().strip())
    return int(place.read_text())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_children_saves_and_the_next_loop_carries_on(
    project: Any, started: Started, places: dict[str, Path], number: signal.Signals
) -> None:
    project.manifest(
        project.task("T0", "echo 0 > zero"),
        project.task("T1", ENDLESS.format(**places), deps=["T0"], verify_cmd="test -e half"),
        project.task("T2", "echo 2 > two"),
    )
    before = project.picture()
    process = started("--json")
    child = pid_at(project, places["mark"])
    process.send_signal(number)
    done = project.finish(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert json.loads(done.out)["status"] == "interrupted"
    assert not project.is_alive(child)
    project.check(before)
    assert [project.status(task) for task in ("T0", "T1", "T2")] == ["done", "todo", "todo"]
    assert project.run_statuses() == ["interrupted"]
    assert project.kept_file("half", among="T1") == ["half"]
    places["go"].touch()
    done = project.loop("--json", real=True)
    assert done.code == 0, done.err
    assert json.loads(done.out)["status"] == "complete"
    assert project.landed() == ["T0", "T1", "T2"]
    assert project.run_statuses() == ["complete"]


STUBBORN = (
    "trap 'echo > {mark}-asked' INT TERM; echo half > half; if [ -e {go} ]; then exit 0; fi; "
    "setsid sh -c 'echo $$ > {mark}-far; exec sleep 1000' & "
    "env -i setsid sh -c 'echo $$ > {mark}-bare; exec /bin/sleep 1000' & "
    "until [ -s {mark}-far ] && [ -s {mark}-bare ]; do sleep 0.01; done; "
    "echo $$ > {mark}; while :; do sleep 1000; done"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_all_at_once_and_the_next_loop_carries_on(
    project: Any, started: Started, places: dict[str, Path], number: signal.Signals
) -> None:
    script = STUBBORN.format(**places)
    project.manifest(project.task("T1", script, verify_cmd="test -e half"))
    process = started()
    pids = [pid_at(project, places["mark"])]
    pids += [pid_at(project, Path(f"{places['mark']}-{kind}")) for kind in ("far", "bare")]
    process.send_signal(number)
    project.wait_for(Path(f"{places['mark']}-asked").exists)
    process.send_signal(number)
    assert project.finish(process).code == -number
    assert [pid for pid in pids if project.is_alive(pid)] == []
    assert processes_of(project) == []
    assert project.status("T1") == "in-progress"
    places["go"].touch()
    done = project.loop("--json")
    assert done.code == 0, done.err
    assert project.landed() == ["T1"]
    assert project.kept_file("half", among="T1") != []


def processes_of(project: Any) -> list[str]:
    return [left for left in project.leftovers() if left.startswith("process ")]


def test_a_signal_while_the_goal_is_judged_interrupts_the_run(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    check = ENDLESS.format(**places)
    goal = f'[goal]\ntext = "Ship it"\ndone_when = [{{ check = "{check}" }}]'
    project.manifest(project.task("T1"), head=goal)
    process = started("--json")
    pid_at(project, places["mark"])
    process.send_signal(signal.SIGINT)
    done = project.finish(process)
    assert done.code == 130
    assert json.loads(done.out)["status"] == "interrupted"
    project.check(None)
    assert project.run_statuses() == ["interrupted"]
    places["go"].touch()
    assert project.loop().code == 0
    assert project.landed() == ["T1"]


def test_a_kill_in_the_middle_of_a_step_loses_nothing_and_does_nothing_twice(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    project.manifest(
        project.task("T0", "echo 0 > zero"),
        project.task("T1", ENDLESS.format(**places), deps=["T0"], verify_cmd="test -e half"),
    )
    before = project.picture()
    process = started()
    child = pid_at(project, places["mark"])
    process.kill()
    process.communicate()
    assert project.is_alive(child)
    assert (project.status("T0"), project.status("T1")) == ("done", "in-progress")
    assert [str(one) for one in project.leftovers()] != []
    places["go"].touch()
    done = project.loop("--json", real=True)
    assert done.code == 0, done.err
    assert json.loads(done.out)["status"] == "complete"
    project.wait_for(lambda: not project.is_alive(child))
    assert project.landed() == ["T0", "T1"]
    assert project.kept_file("half", among="+interrupted") == ["half"]
    assert "kept as refs/loop/" in done.err
    project.check(before)


def test_what_repeated_kills_leave_is_kept_each_time(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    project.manifest(
        project.task("T1", f"cp {places['go']}.text f; echo $$ > {places['mark']}; exec sleep 1000")
    )
    for text in ("first", "second", "second"):
        Path(f"{places['go']}.text").write_text(text)
        places["mark"].unlink(missing_ok=True)
        process = started()
        pid_at(project, places["mark"])
        process.kill()
        process.communicate()
    Path(f"{places['go']}.text").write_text("")
    project.manifest(project.task("T1", "echo made > made"))
    assert project.run().code == 0
    assert sorted(project.kept_file("f")) == ["first", "second"]
    assert project.landed() == ["T1"]


def test_what_a_kill_leaves_is_kept_whatever_state_it_is_in(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    script = (
        "git init -q sub; echo in > sub/in; (cd sub; git add .; git commit -qm x; rm in); "
        "mkdir -p odd/.GIT; echo odd > odd/.GIT/config; rm -f .git; mkdir closed; echo c > closed/c;"
        f" chmod 0 closed; echo new > 'a new.txt'; rm README.md; echo $$ > {places['mark']}; "
        "exec sleep 1000"
    )
    project.manifest(project.task("T1", script))
    process = started()
    pid_at(project, places["mark"])
    process.kill()
    process.communicate()
    name = next((project.root / ".local" / "worktrees").iterdir()).name
    for lock in (f"git/worktrees/{name}/index.lock", f"git/worktrees/{name}/HEAD.lock"):
        (project.root / ".local" / lock).touch()
    (project.root / ".local" / "indexes" / name / "index").write_bytes(b"no index at all")
    project.manifest(project.task("T1"))
    outcome = project.run()
    assert outcome.code == 0, outcome
    kept = project.kept()
    [ref] = [ref for ref in kept if ref.endswith("+interrupted")]
    commit = kept[ref]
    listed = set(project.own("ls-tree", "-r", "--name-only", commit).splitlines())
    assert {"a new.txt", "closed/c", "odd/git-set-aside/config", "src/app.txt"} <= listed
    assert "sub/git-set-aside/HEAD" in listed
    assert "README.md" not in listed
    assert project.loop("recover", ref, "--branch", "back", untouched=False).code == 0
    assert project.git("show", "back:a new.txt") == "new"


def test_a_worktree_left_half_made_is_nobodys_work(project: Any) -> None:
    assert project.run().code == 0
    local = project.root / ".local"
    for place in ("worktrees/r-T9", "git/worktrees/r-T9", "exchange/r-T9"):
        (local / place).mkdir(parents=True)
    (local / "worktrees" / "r-T9" / "half").write_text("checked out by us")
    (local / "worktrees" / "gate-1").mkdir()
    project.write(
        "tasks/ACTIVE.toml", project.read("tasks/ACTIVE.toml") + project.task("T2", "echo 2 > 2")
    )
    outcome = project.run()
    assert outcome.code == 0
    assert "cut short" not in outcome.notices
    assert not [ref for ref in project.kept() if "+interrupted" in ref]


def test_a_second_loop_is_refused_with_the_pid_of_the_first(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    project.manifest(project.task("T1", ENDLESS.format(**places)))
    first = started()
    pid_at(project, places["mark"])
    second = project.finish(project.start("--json"))
    assert second.code == 2
    assert json.loads(second.out)["error"]["kind"] == "lease_held"
    assert f"process {first.pid} is already driving" in second.err
    assert len(second.err.splitlines()) == 1
    land = project.finish(project.start("land"))
    assert land.code == 2
    assert f"{first.pid}" in land.err
    # What only looks is allowed meanwhile, and disturbs nothing.
    assert project.finish(project.start("status")).code == 0
    assert project.finish(project.start("recover")).code == 0
    places["go"].touch()
    first.send_signal(signal.SIGINT)
    assert project.finish(first).code == 130


def test_an_interrupted_run_with_uncommitted_work_goes_on_from_that_work(
    project: Any, started: Started, places: dict[str, Path]
) -> None:
    command = f"cat src/app.txt > copy; {ENDLESS.format(**places)}"
    project.manifest(project.task("T1", command, verify_cmd="grep -q mine copy"))
    project.commit()
    project.write("src/app.txt", "mine\n")
    before = project.picture()
    process = started("--wip")
    pid_at(project, places["mark"])
    process.send_signal(signal.SIGINT)
    assert project.finish(process).code == 130
    places["go"].touch()
    done = project.loop()
    assert done.code == 0, done.err
    assert project.on_branch("copy") == "mine"
    project.check(before)
