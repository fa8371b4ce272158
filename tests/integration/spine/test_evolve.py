"""``loop --evolve``: what recent history left undone becomes tasks that are red now."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl import bootstrap

TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n{}    def test_it(self):\n        self.assertTrue(True)\n"
SKIP = "    @unittest.skip('later')\n"


@pytest.fixture
def grown(make: Callable[..., Any]) -> Any:
    """A project whose history left some things undone, and settled others."""
    project = make()
    project.git("rm", "-rq", "tasks")
    project.write("a.py", 'x = 1  # TODO: it\'s "one" $HOME\n')
    project.write("gone.py", "y = 1  # FIXME gone\n")
    project.commit("first")
    project.git("rm", "-q", "gone.py")
    project.write("b.py", "import os  # noqa: F401\n")
    project.write("test_it.py", TEST.format(SKIP))
    project.commit("second")
    (project.root / "c").write_bytes(b"\0")
    project.commit("Add c")
    project.git("revert", "--no-edit", "HEAD")
    project.write("d.py", "def doubled(x):\n    return 2 * x\n")
    project.commit("Add d")
    project.git("revert", "--no-edit", "HEAD")
    project.write("settled.py", "z = 1\n")
    project.commit("Settled")
    return project


def test_a_dry_run_lists_the_tasks_and_what_became_none(grown: Any) -> None:
    done = grown.loop("--evolve", "--dry-run", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert sorted(
        (task["area"][0], task["title"].split(": ")[1]) for task in document["tasks"]
    ) == [
        ("marker", "a.py"),
        ("reverted", "Add d"),
        ("skipped", "test_it.py"),
        ("suppressed", "b.py"),
    ]
    assert [(one["trace"], one["text"]) for one in document["left_out"]] == [("reverted", "Add c")]
    assert "no line of text" in document["left_out"][0]["why"]
    assert grown.run_statuses() == []
    plain = grown.loop("--evolve", "--dry-run")
    assert "4 tasks in recent history" in plain.out
    assert "left out: reverted" in plain.err


def test_each_task_lands_what_its_command_proves(grown: Any) -> None:
    work = (
        'case "$LOOP_STEP_GOAL" in'
        " *a.py:*) sed -i 's/ *# TODO.*//' a.py ;;"
        " *b.py:*) sed -i 's/ *# noqa.*//' b.py ;;"
        " *test_it.py:*) sed -i '/unittest.skip/d' test_it.py ;;"
        " *) printf 'def doubled(x):\n    return x + x\n' > d.py ;; esac"
    )
    done = grown.loop("--evolve", "--command", work)
    assert done.code == 0, done.err
    assert len(grown.landed()) == 4
    assert grown.on_branch("a.py") == "x = 1"
    assert grown.on_branch("b.py") == "import os"
    assert grown.on_branch("test_it.py") == TEST.format("").rstrip("\n")
    assert grown.on_branch("d.py") == "def doubled(x):\n    return x + x"
    assert not (grown.root / "tasks").exists()


def test_a_marker_that_begins_a_longer_one_goes_alone_and_not_by_another_word(
    make: Callable[..., Any],
) -> None:
    project = make()
    project.git("rm", "-rq", "tasks")
    project.write("a.py", "# TODO\nx = 1\n# TODO later\ny = 1\n# TODOS\n")
    project.commit("first")
    reworded = project.loop("--evolve", "--command", "sed -i 's/^# TODO$/# TODO x/' a.py")
    assert reworded.code == 4, reworded.err
    assert project.landed() == []
    done = project.loop(
        *("--evolve", "--command"),
        "if grep -qx '# TODO' a.py; then sed -i '/^# TODO$/d' a.py; else sed -i '/later/d' a.py; fi",
    )
    assert done.code == 0, done.err
    assert project.on_branch("a.py") == "x = 1\ny = 1\n# TODOS"


def test_the_same_history_gives_the_same_tasks_wherever_it_stands(
    grown: Any, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    grown.git("clone", "-q", str(grown.root), str(copy))
    listed = []
    for root in (grown.root, grown.root, copy):
        done = grown.loop("--evolve", "--dry-run", "--json", cwd=root)
        assert done.code == 0, done.err
        document = json.loads(done.out)
        for task in document["tasks"]:
            task["id"] = task["id"].rpartition("-")[2]
        listed.append(document)
    assert [task["id"] for task in listed[0]["tasks"]] == ["1", "2", "3", "4"]
    assert listed[0]["tasks"] == listed[1]["tasks"] == listed[2]["tasks"]
    assert listed[0]["left_out"] == listed[1]["left_out"] == listed[2]["left_out"]


def test_history_that_left_nothing_is_said_and_begins_no_run(grown: Any) -> None:
    done = grown.loop("--evolve", "--commits", "1", "--command", "false")
    assert done.code == 0, done.err
    assert "0 tasks in recent history" in done.out
    assert bootstrap.open_project(grown.root).runs() == ()


def test_a_file_that_goes_with_its_marker_is_no_mending(grown: Any) -> None:
    done = grown.loop("--evolve", "--commits", "6", "--command", "rm -f b.py test_it.py")
    assert done.code == 4, done.err
    assert grown.landed() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--evolve", "--test-debug-fix"), "give one of them"),
        (("--evolve", "--area", "x"), "makes its own tasks"),
        (("--commits", "3"), "give both"),
        (("--command", "true"), "give one of them"),
        (("--evolve", "--worker", "command"), "say with --command"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    make: Callable[..., Any], options: tuple[str, ...], words: str
) -> None:
    done = make().loop(*options)
    assert done.code == 2
    assert words in done.err
