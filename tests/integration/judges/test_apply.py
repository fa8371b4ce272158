from typing import Any

import pytest

from loopctl.domain import Sha
from loopctl.judges.evidence import observation
from loopctl.verdict import Blame, Check, Verdict

FAILED = (Check.APPLY, Verdict.FAIL, Blame.INTRODUCED)
LOST = (Check.APPLY, Verdict.FAIL, Blame.PRE_EXISTING)
PASSED = (Check.APPLY, Verdict.PASS, None)
FILES = {
    "src/app.py": "one\ntwo\nthree\n",
    "tests/test_app.py": "def test_app():\n    pass\n",
    "link": "",
    "pyproject.toml": """\
        [project]
        name = "app"
        version = "1"
        [tool.pytest.ini_options]
        addopts = "-q"
        [tool.mypy]
        strict = true
        """,
    "setup.cfg": "[metadata]\nname = app\n[tool:pytest]\naddopts = -q\n",
    "package.json": '{"name": "app", "scripts": {"test": "jest", "build": "tsc"}}\n',
    "loop.toml": "[gate]\ntimeout_s = 5\n",
    "tasks/ACTIVE.toml": "schema = 1\n",
}
PYPROJECT = FILES["pyproject.toml"]


@pytest.fixture(scope="module")
def app(shared_bench: Any) -> Any:
    return shared_bench.start(FILES)


def _last(result: Any) -> tuple[Check, Verdict, Blame | None]:
    last = result.checks[-1]
    return last.check, last.verdict, last.blame


# What an ordinary index takes: files written, paths dropped, mode, part of the reason or "" = pass.
CHANGES = {
    "changed file": ({"src/app.py": "four\n"}, [], "100644", ""),
    "new file": ({"src/new.py": ""}, [], "100644", ""),
    "deleted file": ({}, ["src/app.py"], "100644", ""),
    "renamed file": ({"src/renamed.py": "one\ntwo\nthree\n"}, ["src/app.py"], "100644", ""),
    "executable bit": ({"src/app.py": "one\ntwo\nthree\n"}, [], "100755", ""),
    "no newline at the end": ({"src/app.py": "one"}, [], "100644", ""),
    "carriage returns": ({"src/app.py": "one\r\ntwo\r\n"}, [], "100644", ""),
    "binary": ({"src/pic.bin": "\0\x01\udcff\udcfe"}, [], "100644", ""),
    "empty file": ({"src/empty": ""}, [], "100644", ""),
    "spaces and quotes in a name": ({"src/a 'b' \"c\".txt": ""}, [], "100644", ""),
    "letters beyond ASCII": ({"src/naïve-日本.txt": ""}, [], "100644", ""),
    "name that is no UTF-8": ({"src/caf\udce9.txt": ""}, [], "100644", ""),
    "leading dash": ({"-rf": ""}, [], "100644", ""),
    "pathspec magic": ({":(top)x": ""}, [], "100644", ""),
    "gitignore": ({".gitignore": "*.log\n"}, [], "100644", ""),
    "gitlike name": ({"src/.github.md": "", "src/my.git": ""}, [], "100644", ""),
    "file becomes a folder": ({"link/inside": "x"}, ["link"], "100644", ""),
    "newline in a name": ({"src/a\nb": ""}, [], "100644", "control character"),
    "tab in a name": ({"src/a\tb": ""}, [], "100644", "control character"),
    "escape in a name": ({"src/\x1b[31mred": ""}, [], "100644", "control character"),
    "turned text in a name": ({"src/\u202egpj.py": ""}, [], "100644", "control character"),
    "link inside": ({"src/near": "app.py"}, [], "120000", ""),
    "link to a sibling folder": ({"src/near": "../tests/test_app.py"}, [], "120000", ""),
    "absolute link": ({"src/far": "/etc/passwd"}, [], "120000", "outside the tree"),
    "climbing link": ({"src/far": "../../secret"}, [], "120000", "outside the tree"),
    "climbing in the middle": ({"src/far": "a/../../.."}, [], "120000", "climbs in its middle"),
    "file becomes a link out": ({"link": "../x"}, [], "120000", "outside the tree"),
    "link into .git": ({"src/far": "../.git/hooks"}, [], "120000", ".git folder"),
    "link into .GIT": ({"far": ".GIT/config"}, [], "120000", ".git folder"),
    "home link": ({"src/far": "C:\\Users"}, [], "120000", "outside the tree"),
    "empty link": ({"src/far": ""}, [], "120000", "no system can follow"),
    "git~1": ({"src/git~1/config": ""}, [], "100644", ".git folder"),
    "gitmodules": ({".gitmodules": "[submodule]"}, [], "100644", "submodules"),
    "dots at the end": ({"src/.git. ./config": ""}, [], "100644", ".git folder"),
    "stream": ({"src/.git::$INDEX_ALLOCATION": ""}, [], "100644", ".git folder"),
    "backslash git": ({"src\\.git\\config": ""}, [], "100644", ".git folder"),
    "long name": ({"src/" + "n" * 256: ""}, [], "100644", "longer than 255"),
    "changed test": ({"tests/test_app.py": ""}, [], "100644", "gate.protect (tests/**)"),
    "deleted test": ({}, ["tests/test_app.py"], "100644", "gate.protect (tests/**)"),
    "executable test": ({"tests/test_app.py": FILES["tests/test_app.py"]}, [], "100755", "protect"),
    "new test": ({"tests/deep/test_new.py": ""}, [], "100644", ""),
    "new conftest": ({"tests/conftest.py": ""}, [], "100644", "protected anywhere"),
    "conftest elsewhere": ({"src/conftest.py": ""}, [], "100644", "protected anywhere"),
    "link below a protected folder": ({"tests/a": "test_app.py"}, [], "120000", "gate.protect"),
    "pytest.ini": ({"pytest.ini": ""}, [], "100644", "protected anywhere"),
    "sitecustomize": ({"src/sitecustomize.py": ""}, [], "100644", "protected anywhere"),
    "sitecustomize package": ({"sitecustomize/__init__.py": ""}, [], "100644", "anywhere"),
    "pth": ({"lib/x.pth": "import os"}, [], "100644", "protected anywhere"),
    "coverage": ({".coveragerc": ""}, [], "100644", "protected anywhere"),
    "plugin of a distribution": ({"x.egg-info/entry_points.txt": ""}, [], "100644", "anywhere"),
    "tool in .venv": ({".venv/bin/mypy": ""}, [], "100755", "protected anywhere"),
    "own plugin shadowed": (
        {"loopctl_pytest_report.py": ""},
        [],
        "100644",
        "in the place of pytest",
    ),
    "pytest shadowed": ({"src/_pytest/runner.py": ""}, [], "100644", "in the place of pytest"),
    "workflow": ({".github/workflows/x.yml": ""}, [], "100644", ""),
    "tsconfig": ({"tsconfig.json": "{}"}, [], "100644", "protected anywhere"),
    "loop.toml": ({"loop.toml": ""}, [], "100644", "loop's own settings"),
    "manifest": ({"tasks/ACTIVE.toml": ""}, [], "100644", "manifest"),
    "own table": ({"pyproject.toml": PYPROJECT + "[tool.loopctl]\n"}, [], "100644", "loop's own"),
    "other section": (
        {"pyproject.toml": PYPROJECT.replace('version = "1"', 'version = "2"')},
        [],
        "100644",
        "",
    ),
    "pytest section": (
        {"pyproject.toml": PYPROJECT.replace('"-q"', '"-p no:x"')},
        [],
        "100644",
        "protected sections (tool.pytest)",
    ),
    "mypy section": (
        {"pyproject.toml": PYPROJECT.replace("true", "false")},
        [],
        "100644",
        "protected sections (tool.mypy)",
    ),
    "new ruff section": (
        {"pyproject.toml": PYPROJECT + "[tool.ruff]\n"},
        [],
        "100644",
        "protected sections (tool.ruff)",
    ),
    "deleted pyproject": ({}, ["pyproject.toml"], "100644", "protected sections"),
    "broken pyproject": ({"pyproject.toml": "[tool"}, [], "100644", "cannot be read"),
    "hidden behind padding": (
        {"pyproject.toml": PYPROJECT + "#" * (1 << 20) + "\n[tool.ruff]\n"},
        [],
        "100644",
        "cannot be read",
    ),
    "pytest section of setup.cfg": (
        {"setup.cfg": "[metadata]\nname = app\n[tool:pytest]\naddopts = -x\n"},
        [],
        "100644",
        "protected sections (tool:pytest)",
    ),
    "metadata of setup.cfg": (
        {"setup.cfg": "[metadata]\nname = other\n[tool:pytest]\naddopts = -q\n"},
        [],
        "100644",
        "",
    ),
    "CI of GitLab": ({".gitlab-ci.yml": "x: 1\n"}, [], "100644", "or CI"),
    "CI of Jenkins": ({"ops/Jenkinsfile": "x\n"}, [], "100644", "or CI"),
    "CI of CircleCI": ({".circleci/config.yml": "x: 1\n"}, [], "100644", "tools that judge"),
    "CI of Azure": ({"azure-pipelines.yml": "x: 1\n"}, [], "100644", "or CI"),
    "test script of package.json": (
        {"package.json": '{"scripts": {"test": "true", "build": "tsc"}}\n'},
        [],
        "100644",
        "protected sections (scripts.test)",
    ),
    "build script of package.json": (
        {"package.json": '{"scripts": {"test": "jest", "build": "tsc -b"}}\n'},
        [],
        "100644",
        "",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_judged_as_the_rules_say(app: Any, name: str) -> None:
    files, drop, mode, reason = CHANGES[name]
    result = app.judge(app.tree(files, drop=drop, mode=mode))
    last = result.checks[-1]
    assert (_last(result), last.reason) == (FAILED if reason else PASSED, last.reason)
    assert reason in last.reason
    assert last.reason.isprintable()


def _blob(app: Any) -> str:
    return str(app.blob("x"))


def _sub(app: Any, name: str) -> str:
    entry = f"100644 blob {_blob(app)}\t{name}\0".encode(errors="surrogateescape")
    return str(app.own_git("mktree", "-z", "--missing", stdin=entry))


# What only a tree made by hand can hold: mode, name, what is in it ("" a file), reason.
TREES = {
    "git folder": ("040000", ".git", "config", ".git folder"),
    "git folder in capitals": ("040000", ".GiT", "config", ".git folder"),
    "git folder below": ("040000", "sub", ".git", ".git folder"),
    "ignorable letter in .git": ("040000", ".g\u200cit", "config", ".git folder"),
    "ignorable letter at the end": ("040000", ".git\u200d", "config", ".git folder"),
    "byte order mark in .git": ("040000", "\ufeff.git", "config", ".git folder"),
    "parent": ("040000", "..", "escaped", "'..' component"),
    "parent as a file": ("100644", "..", "", "'..' component"),
    "here": ("040000", ".", "file", "'..' component"),
    "submodule": ("160000", "vendor", "", "submodule"),
    "deep parent": ("040000", "sub", "..", "'..' component"),
    "deep git file": ("100644", ".GIT", "", ".git folder"),
}


@pytest.mark.parametrize("name", TREES)
def test_tree_made_by_hand_is_judged_as_the_rules_say(app: Any, name: str) -> None:
    mode, entry, inside, reason = TREES[name]
    held = _sub(app, inside) if inside else app.base if mode == "160000" else _blob(app)
    result = app.judge(app.mktree([(mode, held, entry)]))
    assert _last(result) == FAILED
    assert reason in result.checks[-1].reason
    assert result.tree == ""


def test_path_below_a_link_is_refused(app: Any) -> None:
    link = app.blob("tests")
    tree = app.mktree([("120000", link, "twin"), ("040000", _sub(app, "file"), "twin")])
    result = app.judge(tree)
    assert _last(result) == FAILED
    assert "lies below twin" in result.checks[-1].reason


def test_name_that_stands_twice_is_refused(app: Any) -> None:
    tree = app.mktree([("100644", app.blob("a"), "twin"), ("100644", app.blob("b"), "twin")])
    assert _last(app.judge(tree)) == FAILED


def test_diff_that_changes_nothing_is_refused(app: Any) -> None:
    result = app.judge(app.tree())
    assert _last(result) == FAILED
    assert "empty" in result.checks[-1].reason


@pytest.mark.parametrize("path", ["tests/test_app.py", "tests/conftest.py", "pyproject.toml"])
def test_may_edit_lifts_protection(app: Any, path: str) -> None:
    text = PYPROJECT.replace("true", "false") if path == "pyproject.toml" else "x = 1\n"
    tree = app.tree({path: text})
    assert _last(app.judge(tree)) == FAILED
    assert _last(app.judge(tree, may_edit=(path,))) == PASSED


@pytest.mark.parametrize("path", ["loop.toml", "tasks/ACTIVE.toml"])
def test_may_edit_never_lifts_loops_own_files(app: Any, path: str) -> None:
    result = app.judge(app.tree({path: "x = 1\n"}), may_edit=("**", path))
    assert _last(result) == FAILED


# The tool, files of the base, verify, what the task writes over it.
JUDGED_BY = {
    "sh": ({"check.sh": "exit 1\n"}, "sh check.sh", {"check.sh": "exit 0\n"}),
    "inner words": ({"check.sh": "exit 1\n"}, "bash -c 'sh check.sh'", {"check.sh": "exit 0\n"}),
    "python": ({"check.py": "raise SystemExit(1)\n"}, "python3 check.py", {"check.py": ""}),
    "python -m": ({"ok/run.py": "exit(1)\n"}, "python3 -m ok.run", {"ok/run.py": ""}),
    "python -m, package first": (
        {"ok/run.py": "exit(1)\n"},
        "python3 -m ok.run",
        {"ok/run/__main__.py": "", "ok/run/__init__.py": ""},
    ),
    "make": ({"Makefile": "test:\n\tfalse\n"}, "make test", {"Makefile": "test:\n\ttrue\n"}),
    "make, another first": (
        {"Makefile": "test:\n\tfalse\n"},
        "make test",
        {"GNUmakefile": "test:\n\ttrue\n"},
    ),
    "just": ({"justfile": "test:\n  false\n"}, "just test", {"justfile": "test:\n  true\n"}),
    "tox": ({"tox.ini": "[tox]\n"}, "tox", {"tox.ini": "[testenv]\n"}),
    "npm": (
        {"package.json": '{"scripts": {"verify": "false"}}'},
        "npm run verify",
        {"package.json": '{"scripts": {"verify": "true"}}'},
    ),
    "npm, a script before": (
        {"package.json": '{"scripts": {"verify": "node ."}}'},
        "npm run verify",
        {"package.json": '{"scripts": {"verify": "node .", "preverify": "x"}}'},
    ),
}


@pytest.mark.parametrize("name", JUDGED_BY)
def test_a_task_cannot_rewrite_what_its_verify_runs(bench: Any, name: str) -> None:
    base, verify, written = JUDGED_BY[name]
    bench.start({"src/app.py": "one\n", **base})
    tree = bench.tree({"src/app.py": "two\n", **written})
    last = bench.judge(tree, verify).checks[-1]
    assert (last.check, last.verdict, last.blame) == FAILED
    assert last.reason.startswith(next(iter(written)))
    assert "may_edit" in last.reason
    allowed = bench.judge(tree, verify, may_edit=tuple(written))
    assert _last(allowed)[0] is not Check.APPLY
    other = bench.judge(tree, "test -e src/app.py")
    assert other.is_passed or name == "tox"


@pytest.mark.parametrize("verify", ["sh check.sh", "./check.sh", "make -f check.sh"])
def test_a_script_that_the_base_has_not_may_be_the_work(bench: Any, verify: str) -> None:
    bench.start({"src/app.py": "one\n"})
    result = bench.judge(bench.tree({"check.sh": "#!/bin/sh\nexit 0\n"}, mode="100755"), verify)
    assert result.checks[0].verdict is Verdict.PASS


def test_what_verify_only_reads_may_be_the_work(bench: Any) -> None:
    bench.start({"README.md": "nothing\n"})
    assert bench.judge(bench.tree({"README.md": "import\n"}), "grep import README.md").is_passed


def test_a_script_rewritten_by_what_runs_before_verify_is_tampering(bench: Any) -> None:
    bench.start({"src/app.py": "one\n", "check.sh": "exit 1\n", "up.sh": "true\n"})
    tree = bench.tree({"up.sh": "echo exit 0 > check.sh\n"})
    gate = bench.gate(setup_cmd="sh up.sh")
    last = bench.judge(tree, "sh check.sh", gate=gate).checks[-1]
    assert (last.check, last.verdict) == (Check.VERIFY, Verdict.FAIL)
    assert last.reason.startswith("tampering: check.sh")


def test_every_path_at_fault_is_named(app: Any) -> None:
    tree = app.tree({"tests/conftest.py": "", "pytest.ini": "", "tests/test_app.py": ""})
    last = app.judge(tree).checks[-1]
    assert "and 2 more" in last.reason
    assert {"pytest.ini", "tests/conftest.py", "tests/test_app.py"} <= set(last.tail.split())


def _moved(app: Any, files: dict[str, str]) -> Sha:
    return Sha(app.repository.commit(app.tree(files), app.base, "another task"))


def test_diff_is_carried_onto_a_moved_head_and_judged_there(app: Any) -> None:
    head = _moved(app, {"other.py": "other\n"})
    result = app.judge(app.tree({"src/app.py": "one\ntwo\nfour\n"}), "cat other.py", head=head)
    assert result.is_passed
    assert result.head == head
    both = app.tree({"src/app.py": "one\ntwo\nfour\n", "other.py": "other\n"})
    assert result.tree == both


def test_diff_that_conflicts_with_a_moved_head_is_refused(app: Any) -> None:
    head = _moved(app, {"src/app.py": "one\nTWO\nthree\n"})
    result = app.judge(app.tree({"src/app.py": "one\n2\nthree\n"}), "true", head=head)
    assert _last(result) == LOST
    last = result.checks[-1]
    assert "does not apply" in last.reason
    assert "conflicts with what has landed since, in src/app.py; " in last.reason
    assert "src/app.py" in last.tail
    assert result.tree == ""
    assert "the head has moved since this change was begun" in observation(result)


def test_only_the_paths_that_conflict_are_named(app: Any) -> None:
    head = _moved(app, {"src/app.py": "one\nTWO\nthree\n", "landed.py": "x\n"})
    tree = app.tree({"src/app.py": "one\n2\nthree\n", "mine.py": "x\n"})
    reason = app.judge(tree, "true", head=head).checks[-1].reason
    assert "in src/app.py; " in reason


def test_a_file_in_the_place_of_a_folder_that_has_landed_conflicts(app: Any) -> None:
    head = _moved(app, {"place/inside": "x\n"})
    result = app.judge(app.tree({"place": "x\n"}), "true", head=head)
    assert _last(result) == LOST


def test_diff_that_the_head_has_already_is_empty(app: Any) -> None:
    changed = {"src/app.py": "one\ntwo\nfour\n"}
    result = app.judge(app.tree(changed), "true", head=_moved(app, changed))
    assert _last(result) == LOST
    assert "already" in result.checks[-1].reason


def test_huge_diff_is_judged(app: Any) -> None:
    files = {f"src/gen/{number}.py": f"{number}\n" for number in range(300)}
    result = app.judge(app.tree(files))
    assert _last(result) == PASSED
    assert result.checks[-1].reason == "300 paths changed"
