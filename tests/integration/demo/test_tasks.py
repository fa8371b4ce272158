"""Each task of the demo is what its comment says: done by hand, without the engine."""

import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loopctl.demo.create import create_project

Git = Callable[[Sequence[str]], str]

# Stands in for `loop defer` alone: keeps the words it was called with.
LOOP = """#!/bin/sh
printf '%s\\n' "$@" > "$LOOP_OUTBOX/message"
"""


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    output: str


class Hand:
    """A checkout of the demo's project, and the hand that does its tasks."""

    def __init__(self, folder: Path, scratch: Path, git: Git) -> None:
        self.folder = folder
        self.git = git
        self.message = scratch / "outbox/message"
        self.observation = scratch / "observation"
        self._bin = scratch / "bin"
        self.message.parent.mkdir(parents=True)
        self._bin.mkdir()
        (self._bin / "loop").write_text(LOOP)
        (self._bin / "loop").chmod(0o755)
        self.observation.write_text("")
        manifest = tomllib.loads((folder / "tasks/ACTIVE.toml").read_text())
        self.tasks: dict[str, dict[str, Any]] = {task["id"]: task for task in manifest["task"]}

    def shell(self, command: str, env: Mapping[str, str]) -> Done:
        known = {
            "PATH": f"{self._bin}:/usr/bin:/bin",
            "HOME": str(self._bin),
            "LOOP_OUTBOX": str(self.message.parent),
            "LOOP_OBSERVATION": str(self.observation),
        }
        ended = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env={**known, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(ended.returncode, ended.stdout)

    def work(self, task: str, option: str | None = None, **env: str) -> Done:
        table = self.tasks[task]
        if option is not None:
            [table] = [way for way in table["options"] if way["name"] == option]
        return self.shell(table["command"], env)

    def verify(self, task: str) -> Done:
        return self.shell(self.tasks[task]["verify_cmd"], {})

    def is_green(self, task: str) -> bool:
        done = self.verify(task)
        assert done.returncode in {0, 1}, f"not a verdict but an accident:\n{done.output}"
        return done.returncode == 0

    def commit(self) -> None:
        self.git(["add", "--all"])
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
        self.git([*who, "commit", "--quiet", "--message", "by hand"])

    def changed(self) -> list[str]:
        return self.git(["status", "--porcelain", "--untracked-files=all"]).split()[1::2]

    def land(self, *tasks: str) -> None:
        """Do tasks whose life is tested elsewhere, so that what depends on them can begin."""
        for task in tasks:
            option = "last-mark" if task == "T4" else None
            assert self.work(task, option).returncode == 0
            if task == "T2":
                self.observation.write_text(self.verify(task).output)
                assert self.work(task, option).returncode == 0
            assert self.is_green(task)
            self.commit()
            self.observation.write_text("")

    def repeats(self, task: str, option: str | None = None, **env: str) -> bool:
        """Return whether doing the task once more changes a file."""
        self.git(["add", "--all"])
        assert self.work(task, option, **env).returncode == 0
        return self.git(["diff", "--name-only"]) != ""


@pytest.fixture
def hand(tmp_path: Path, git_in: Callable[[Path], Git]) -> Hand:
    folder = tmp_path / "tally"
    create_project(folder, sys.executable, git_in(folder))
    return Hand(folder, tmp_path / "scratch", git_in(folder))


def test_there_are_eight_to_ten_tasks_and_a_chain_of_four(hand: Hand) -> None:
    assert 8 <= len(hand.tasks) <= 10
    deps = {task: table.get("deps", []) for task, table in hand.tasks.items()}
    assert (deps["T2"], deps["T3"], deps["T4"]) == (["T1"], ["T2"], ["T3"])
    assert deps["T6"] == ["T5"]


@pytest.mark.parametrize("task", ["T1", "T8", "T9", "T10"])
def test_task_done_twice_changes_nothing_the_second_time(hand: Hand, task: str) -> None:
    assert hand.work(task).returncode == 0
    assert hand.changed() != []
    assert not hand.repeats(task)


def test_first_gate_fails_and_its_evidence_lets_the_second_step_pass(hand: Hand) -> None:
    hand.land("T1")
    assert hand.work("T2").returncode == 0
    evidence = hand.verify("T2")
    assert evidence.returncode == 1
    assert "E711" in evidence.output
    assert "B006" in evidence.output

    first = hand.git(["diff"])
    assert hand.work("T2").returncode == 0
    assert hand.git(["diff"]) == first, "without the evidence a second step changes nothing"

    hand.observation.write_text(f"verify failed\n\n{evidence.output}")
    assert hand.work("T2").returncode == 0
    assert hand.is_green("T2")


def test_amounts_are_exact_after_the_third_of_the_chain(hand: Hand) -> None:
    hand.land("T1", "T2")
    assert hand.work("T3").returncode == 0
    assert "float" not in (hand.folder / "tally/amounts.py").read_text()
    assert not hand.repeats("T3")


def test_smaller_of_two_options_is_the_one_that_breaks_a_test(hand: Hand) -> None:
    hand.land("T1", "T2", "T3")
    assert hand.work("T4", "drop-commas").returncode == 0
    lost, lost_size = hand.verify("T4"), len(hand.git(["diff"]).splitlines())
    assert not hand.repeats("T4", "drop-commas"), "so that its steps count as no progress"
    hand.git(["reset", "--quiet", "--hard"])
    assert hand.work("T4", "last-mark").returncode == 0
    won, won_size = hand.verify("T4"), len(hand.git(["diff"]).splitlines())

    assert not hand.repeats("T4", "last-mark")

    assert (lost.returncode, won.returncode) == (1, 0)
    assert "[12,50-12.50]" in lost.output
    assert "[1,234.56-1234.56]" not in lost.output, "it is plausible: its own example works"
    assert 0 < lost_size < won_size


def test_task_asks_a_person_and_changes_nothing(hand: Hand) -> None:
    assert hand.work("T5").returncode == 0
    assert hand.changed() == []
    words = hand.message.read_text().splitlines()
    assert words[0] == "defer"
    assert words[1::2] == ["--reason", "--decision-needed", "--best-guess"]
    assert words[-1] == "day first"


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ("day first", "day"),
        ("Month first.", "month"),
        ("the month", "month"),
        ("dd/mm: days first", "day"),
        ("the month comes first, then the day", "month"),
    ],
)
def test_answer_is_written_down(hand: Hand, answer: str, first: str) -> None:
    assert hand.work("T5", LOOP_ANSWER=answer).returncode == 0
    assert not hand.message.exists()
    assert hand.changed() == ["tally/dates.py"]
    assert not hand.repeats("T5", LOOP_ANSWER=answer)
    assert f'\nFIRST = "{first}"\n' in (hand.folder / "tally/dates.py").read_text()


def test_what_waited_for_the_answer_follows_it(hand: Hand) -> None:
    assert not hand.is_green("T5")
    assert hand.work("T5", LOOP_ANSWER="day first").returncode == 0
    assert hand.is_green("T5")
    hand.commit()
    assert not hand.is_green("T6")
    assert hand.work("T6").returncode == 0
    assert hand.is_green("T6")
    assert not hand.repeats("T6")
    assert "The day comes first" in (hand.folder / "README.md").read_text()


def test_answer_that_says_nothing_of_the_kind_is_asked_for_again(hand: Hand) -> None:
    assert hand.work("T5", LOOP_ANSWER="whatever; `touch x`").returncode == 0
    assert hand.changed() == []
    assert hand.message.read_text().startswith("defer\n")


def test_stuck_task_changes_nothing_however_often_it_runs(hand: Hand) -> None:
    said = {hand.work("T7") for _ in range(3)}
    assert len(said) == 1, "the same answer each time: no progress"
    assert said.pop().returncode == 0
    assert hand.changed() == []
    assert not hand.is_green("T7")


def test_word_that_the_manifest_names_mends_the_stuck_task(hand: Hand) -> None:
    hand.tasks["T7"]["command"] += " --broad"
    assert hand.work("T7").returncode == 0
    assert hand.changed() == ["tally/reader.py"]
    assert hand.is_green("T7")


def test_landing_in_parallel_meets_no_conflict(hand: Hand) -> None:
    """Tasks that may run at once change the same files at different places."""
    base = hand.git(["rev-parse", "HEAD"]).strip()
    patches = []
    for task in ("T1", "T8", "T9", "T10"):
        assert hand.work(task).returncode == 0
        patches.append(hand.git(["diff", "--binary"]))
        hand.git(["checkout", "--quiet", base, "--", "."])
    for number, patch in enumerate(patches):
        file = hand.folder.parent / f"{number}.patch"
        file.write_text(patch)
        hand.git(["apply", "--3way", str(file)])
    assert hand.is_green("T8")
