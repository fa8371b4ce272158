"""``loop --test-debug-fix``: red becomes green by a right mending alone; all else is one message."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from loopctl import bootstrap
from loopctl.testing.tinybugs import BUGS, RUNNER, TinyBug

VERIFY = f"{shlex.quote(sys.executable)} -m pytest -q -p no:cacheprovider"

RED = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.{}\n"

Begin = Callable[..., Any]


@pytest.fixture
def begin(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Make a committed project of some files and no manifest."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)

    def made(files: dict[str, str]) -> Any:
        project = make()
        project.git("rm", "-rq", "tasks", "src")
        for name, text in files.items():
            project.write(name, text)
        project.commit()
        return project

    return made


def script(folder: Path, moves: Sequence[str]) -> str:
    """Return a command that makes one move a step, each on the files as they were at first."""
    cases = [f"{number}) {move} ;;" for number, move in enumerate(moves, 1)]
    text = [
        f"cd {folder} && printf x >> steps && cd - > /dev/null",
        f'cp "$LOOP_OBSERVATION" {folder}/seen-$(wc -c < {folder}/steps)',
        "git checkout -q HEAD -- . && git clean -fdq",
        f"case $(($(wc -c < {folder}/steps))) in",
        *cases,
        "*) exit 9 ;;",
        "esac",
    ]
    path = folder / "worker.sh"
    path.write_text("\n".join(text))
    return f"sh {path}"


def put(path: str, text: str) -> str:
    return f"printf %s {shlex.quote(text)} > {path}"


def shams(bug: TinyBug) -> list[str]:
    """Return moves that would make the tests of a bug green, or seem so, without mending it."""
    tests = f"tests/test_{bug.name}.py"
    return [
        f"rm {tests}",
        put(tests, f"def test_{bug.name}_1():\n    pass\n"),
        put("conftest.py", "collect_ignore_glob = ['tests/*']\n"),
        put("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n"),
        put("tests/test_a.py", f"import {bug.name}\n{bug.name}.{bug.name} = None\n"),
    ]


def deep_shams(bug: TinyBug) -> list[str]:
    """Return moves in the module itself that end the run of the tests, or leave tests out."""
    return [
        put(f"{bug.name}.py", f"{start}\n{bug.broken}")
        for start in (
            "import atexit, os; atexit.register(os._exit, 0)",
            "import pytest; pytest.skip(allow_module_level=True)",
        )
    ]


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_no_wrong_mending_lands_and_the_right_one_does(
    begin: Begin, tmp_path: Path, bug: TinyBug
) -> None:
    is_plain = bug is not BUGS[0]
    project = begin({**bug.files, **({"tests/run.py": RUNNER} if is_plain else {})})
    verify = f"{shlex.quote(sys.executable)} -SB tests/run.py" if is_plain else VERIFY
    wrong = [put(f"{bug.name}.py", bug.miss), *shams(bug)]
    if is_plain:
        wrong.append(put("tests/run.py", ""))
    else:
        wrong += deep_shams(bug)
    command = script(tmp_path, [*wrong, put(f"{bug.name}.py", bug.right)])
    done = project.loop("--test-debug-fix", "--verify", verify, "--command", command)
    assert done.code == 0, done.err
    assert done.err.count("] gate: ") == len(wrong) + 1
    assert done.err.count(" fail (") == len(wrong), done.err
    assert len(project.landed()) == 1
    changed = project.git("diff", "--name-only", "main", "loop/integration")
    assert changed == f"{bug.name}.py"
    assert project.on_branch(f"{bug.name}.py") == bug.right.rstrip("\n")
    assert not (project.root / "tasks").exists()


CLIP_TESTS = (
    "import unittest\nfrom clip import clip\n\n\nclass T(unittest.TestCase):\n"
    "    def test_high(self):\n        self.assertEqual(clip(5, 0, 3), 3)\n\n"
    "    def test_low(self):\n        self.assertEqual(clip(-1, 0, 3), 0)\n"
)


@pytest.mark.parametrize("packages", [(), ("tests/__init__.py", "tests/deep/__init__.py")])
def test_a_unittest_is_found_in_folders_that_are_packages_and_in_those_that_are_not(
    begin: Begin, packages: tuple[str, ...]
) -> None:
    bug = BUGS[0]
    files = {"clip.py": bug.broken, "tests/deep/test_clip.py": CLIP_TESTS}
    project = begin({**files, **dict.fromkeys(packages, "")})
    done = project.loop("--test-debug-fix", "--command", put("clip.py", bug.right))
    assert done.code == 0, done.err
    assert "tests.deep.test_clip" in done.err or "test_clip.T" in done.err
    assert project.on_branch("clip.py") == bug.right.rstrip("\n")


EARLY_ENDS = (
    "import os; os._exit(0)",
    "import atexit, os; atexit.register(os._exit, 0)",
    "import sys; sys.exit(0)",
    "import os; print('Ran 2 tests in 0.001s\\n\\nOK', flush=True); os._exit(0)",
    "import unittest; unittest.TestResult.wasSuccessful = lambda self: True",
    "import unittest; raise unittest.SkipTest('later')",
)
"""Lines at the top of the code under test, after which a unittest of it exits with 0."""


def test_a_unittest_that_is_ended_early_or_lies_is_not_green(begin: Begin, tmp_path: Path) -> None:
    bug = BUGS[0]
    project = begin(
        {"clip.py": bug.broken, "tests/test_clip.py": CLIP_TESTS, "tests/__init__.py": ""}
    )
    verify = f"{shlex.quote(sys.executable)} -B -m unittest tests.test_clip"
    wrong = [put("clip.py", f"{line}\n{bug.broken}") for line in EARLY_ENDS]
    command = script(tmp_path, [*wrong, put("clip.py", bug.right)])
    done = project.loop(
        *("--test-debug-fix", "--verify", verify, "--command", command),
        *("--max-loops", "20"),
    )
    assert done.code == 0, done.err
    assert done.err.count(" fail (") == len(wrong), done.err
    assert project.on_branch("clip.py") == bug.right.rstrip("\n")
    assert "Begin with: tests.test_clip.T.test_" in done.err


def test_tests_that_are_ended_early_before_any_work_are_red_and_mended(begin: Begin) -> None:
    bug = BUGS[0]
    early = f"import os; os._exit(0)\n{bug.right}"
    project = begin({"clip.py": early, "test_clip.py": CLIP_TESTS})
    done = project.loop("--test-debug-fix", "--command", put("clip.py", bug.right))
    assert done.code == 0, done.err
    assert "is red (a session of tests began and never came to its end" in done.err
    assert project.on_branch("clip.py") == bug.right.rstrip("\n")


def test_a_broken_manifest_is_shown_where_no_command_is_given(begin: Begin) -> None:
    project = begin({"test_clip.py": CLIP_TESTS})
    project.write("tasks/ACTIVE.toml", "schema = 1\ntask = 3\n")
    refused(project.loop("--test-debug-fix", "--command", "true"), "ACTIVE.toml:2")
    done = project.loop("--test-debug-fix", "--verify", "true", "--command", "true")
    assert done.code == 0, done.err


def test_the_worker_is_shown_one_failing_test_first_with_its_error(
    begin: Begin, tmp_path: Path
) -> None:
    bug = BUGS[0]
    project = begin({**bug.files, "tests/run.py": RUNNER})
    verify = f"{shlex.quote(sys.executable)} -SB tests/run.py"
    moves = [f'printf %s "$LOOP_STEP_GOAL" > {tmp_path}/goal', put("clip.py", bug.miss)]
    command = script(tmp_path, [" && ".join(moves), put("clip.py", bug.right)])
    done = project.loop("--test-debug-fix", "--verify", verify, "--command", command)
    assert done.code == 0, done.err
    goal = (tmp_path / "goal").read_text()
    assert "Begin with: tests/test_clip.py::test_clip_1" in goal
    assert "Also red:\n  tests/test_clip.py::test_clip_3" in goal
    seen = (tmp_path / "seen-2").read_text().splitlines()
    assert seen[0] == "Begin with: tests/test_clip.py::test_clip_1"
    assert seen[1] == "It says: AssertionError()"


def test_the_same_failure_again_and_again_is_the_end(begin: Begin, tmp_path: Path) -> None:
    project = begin({"check.sh": "cat value; echo 'AssertionError: it is '$(cat kind); false\n"})
    project.write("kind", "odd\n")
    project.commit()
    moves = [put("value", f"{number}\n") for number in range(20)]
    command = script(tmp_path, moves)
    done = project.loop("--test-debug-fix", "--verify", "sh check.sh", "--command", command)
    assert done.code == 4, done.err
    assert "same_type_error" in done.err
    assert (tmp_path / "steps").read_text() == "x" * 6
    assert project.landed() == []


def test_already_green_is_exit_0_and_changes_nothing(begin: Begin) -> None:
    project = begin({"test_it.py": RED.format("assertTrue(True)")})
    branches = project.git("branch", "--list")
    done = project.loop("--test-debug-fix", "--command", "echo bad > bad")
    assert done.code == 0, done.err
    assert "Already green" in done.out
    assert "`python -m unittest discover" in done.err
    assert "(test_it.py) is green" in done.err
    assert project.run_statuses() == []
    assert project.git("branch", "--list") == branches
    as_json = project.loop("--test-debug-fix", "--command", "false", "--json")
    assert json.loads(as_json.out)["status"] == "green"


def refused(done: Any, *words: str) -> None:
    assert done.code == 2, done
    assert len(done.err.strip().splitlines()) == 1, done.err
    for word in words:
        assert word in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ("nothing in the repository tells", "--verify")),
        (("--verify", "no-such-program"), ("no-such-program", "cannot tell red from green")),
        (("--verify", " "), ("empty command",)),
        (("--verify", "exit 5"), ("finds no test",)),
        (("--verify", "true", "--dry-run"), ("--dry-run runs nothing", "leave it out")),
        (("--verify", f"{sys.executable} -m unittest"), ("finds no test",)),
        (("--verify", "true", "--area", "x"), ("makes its own tasks",)),
        (("--verify", "true", "--worker", "graph"), ("--command",)),
        (("a goal in words",), ("makes its own tasks",)),
    ],
)
def test_what_cannot_be_mended_is_one_message_and_no_run(
    begin: Begin, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    project = begin({})
    refused(project.loop("--test-debug-fix", "--command", "false", *options), *words)
    assert project.run_statuses() == []


def test_a_command_that_hangs_is_one_message(begin: Begin) -> None:
    project = begin({"loop.toml": "[gate]\ntimeout_s = 0.2\n"})
    done = project.loop(
        "--test-debug-fix", "--verify", "cat /dev/zero > /dev/null", "--command", "false"
    )
    refused(done, "cat /dev/zero", "cannot tell red from green")


def test_a_repository_without_a_commit_is_one_message(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    elsewhere = make(tmp_path / "aside")
    elsewhere.git("init", "-q", cwd=folder)
    done = elsewhere.loop("--test-debug-fix", "--verify", "false", "--command", "false", cwd=folder)
    refused(done, "no commit yet")


@pytest.mark.parametrize(
    ("text", "command", "because"),
    [
        ('[goal]\ntext = "g"\ndone_when = [{ check = "test -e a" }]\n', "test -e a", "done_when"),
        ('[[task]]\nid = "A"\ntitle = "a"\nverify_cmd = "test -e a"\n', "test -e a", "verify_cmd"),
        ("", "test -e b", "gate.verify_cmd of the settings"),
    ],
)
def test_the_command_comes_from_the_manifest_then_from_the_settings(
    begin: Begin, text: str, command: str, because: str
) -> None:
    project = begin({"loop.toml": '[gate]\nverify_cmd = "test -e b"\n'})
    if text:
        project.write("tasks/ACTIVE.toml", f"schema = 1\n{text}")
        project.commit()
    done = project.loop("--test-debug-fix", "--command", "echo > a; echo > b")
    assert done.code == 0, done.err
    assert f"`{command}`" in done.err
    assert because in done.err


def test_uncommitted_work_is_taken_along_and_landed_on_the_files(begin: Begin) -> None:
    project = begin({})
    project.write("mine", "mine\n")
    done = project.loop(
        "--test-debug-fix", "--verify", "test -e mine -a -e b", "--command", "cat mine > b"
    )
    assert done.code == 0, done.err
    assert "1 uncommitted file of the checkout taken along" in done.err
    landed = project.loop("land", untouched=False)
    assert landed.code == 0, landed.err
    assert (project.read("b"), project.read("mine")) == ("mine\n", "mine\n")
    assert project.git("status", "--porcelain").split() == ["??", "b", "??", "mine"]


def test_a_question_is_listed_and_answered_without_any_manifest(begin: Begin) -> None:
    project = begin({})
    work = 'if [ -n "$LOOP_ANSWER" ]; then echo "$LOOP_ANSWER" > b; else loop defer --reason external --decision-needed "Which?"; fi'
    done = project.loop("--test-debug-fix", "--verify", "test -e b", "--command", work)
    assert done.code == 3, done.err
    assert "Which?" in project.loop("status").out
    task = bootstrap.open_project(project.root).decisions()[0].task
    answered = project.loop("answer", task, "this one")
    assert answered.code == 0, answered.err
    assert project.on_branch("b") == "this one"


def test_a_run_that_got_stuck_is_resumed_over_its_own_task(begin: Begin, tmp_path: Path) -> None:
    project = begin({})
    flag = tmp_path / "flag"
    work = f"test -e {flag} && echo > b"
    argv = ("--test-debug-fix", "--verify", "test -e b", "--command", work)
    assert project.loop(*argv).code == 4
    flag.touch()
    run = bootstrap.open_project(project.root).runs()[0].id
    resumed = project.loop("resume", run)
    assert resumed.code in {0, 4}, resumed.err
    assert "no such file" not in resumed.err


def test_the_next_plain_loop_drives_the_manifest_and_not_the_mending(
    begin: Begin, tmp_path: Path
) -> None:
    project = begin({})
    project.manifest(project.task("T1"))
    project.commit()
    done = project.loop("--test-debug-fix", "--verify", "test -e b", "--command", "echo > b")
    assert done.code == 0, done.err
    assert project.loop(untouched=False).code == 0
    assert project.status("T1") == "done"
    del tmp_path
