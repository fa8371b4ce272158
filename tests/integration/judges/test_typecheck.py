import os
import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Blame, Check, Verdict

PASSED = (Check.TYPECHECK, Verdict.PASS, None)
FAILED = (Check.TYPECHECK, Verdict.FAIL, Blame.INTRODUCED)
UNKNOWN = (Check.TYPECHECK, Verdict.UNKNOWN, Blame.ENVIRONMENT)
# Prints one mypy-like error for each line with the word bad, and says how many lines there are.
CHECKER = """\
    import pathlib, sys
    found = 0
    for path in sorted(pathlib.Path().glob("*.src")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "bad" in line:
                found += 1
                print(f"{path}:{number}: error: Bad thing {line}  [bad-thing]")
    sys.exit(found > 0)
    """
COMMAND = f"{sys.executable} check.py"


@pytest.fixture
def project(bench: Any) -> Any:
    return bench.start({"check.py": CHECKER, "a.src": "fine\nbad x\n"})


def _judge(bench: Any, files: dict[str, str], command: str = COMMAND, **kwargs: Any) -> Any:
    tree = bench.tree(files, **kwargs)
    return bench.judge(tree, gate=bench.gate(typecheck=command)).checks[-1]


def _word(result: Any) -> tuple[Check, Verdict, Blame | None]:
    return result.check, result.verdict, result.blame


def test_error_that_the_base_has_passes_wherever_it_moved(project: Any) -> None:
    result = _judge(project, {"a.src": "more\nlines\nbad x\n"})
    assert _word(result) == PASSED
    assert "the base has 1 of its own" in result.reason
    assert result.exit == 1


def test_new_error_fails_and_is_named(project: Any) -> None:
    result = _judge(project, {"b.src": "bad y\n"})
    assert _word(result) == FAILED
    assert result.findings == ("b.src: bad-thing: Bad thing bad y",)
    assert "1 new type error" in result.reason
    assert result.signature
    assert "a.src:2" in result.tail


def test_second_one_of_a_known_error_is_new(project: Any) -> None:
    assert _word(_judge(project, {"a.src": "bad x\nbad x\n"})) == FAILED


def test_same_errors_have_the_same_signature_wherever_they_stand(project: Any) -> None:
    first = _judge(project, {"b.src": "bad y\n"})
    second = _judge(project, {"b.src": "\n\nbad y\n"})
    third = _judge(project, {"b.src": "bad z\n"})
    assert first.signature == second.signature != third.signature


def test_mended_errors_pass(project: Any) -> None:
    result = _judge(project, {"a.src": "fine\n"})
    assert _word(result) == PASSED
    assert result.reason == "no type errors"


def test_base_is_checked_once(project: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"echo run >> {log}; {COMMAND}"
    _judge(project, {"b.src": "bad y\n"}, command)
    _judge(project, {"b.src": "bad z\n"}, command)
    assert log.read_text().count("run") == 3


def test_base_is_not_asked_where_the_candidate_is_clean(project: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    _judge(project, {"a.src": "fine\n"}, f"echo run >> {log}; {COMMAND}")
    assert log.read_text().count("run") == 1


def test_missing_checker_is_the_environments_fault(project: Any) -> None:
    assert _word(_judge(project, {"b.src": ""}, "no-such-checker")) == UNKNOWN


def test_checker_that_the_change_removed_is_introduced(bench: Any) -> None:
    bench.start({"check.sh": "exit 0\n"})
    command = "test -f check.sh || exit 127"
    assert _word(_judge(bench, {}, command, drop=["check.sh"])) == FAILED


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Took 4.1 s: it is broken", PASSED), ("Took 3 s: it is broken, otherwise", FAILED)],
)
def test_output_without_an_error_is_compared_as_a_whole(
    bench: Any, text: str, expected: object
) -> None:
    bench.start({"says": "Took 3.2 s: it is broken"})
    assert _word(_judge(bench, {"says": text}, "cat says; exit 3")) == expected


def test_checker_that_breaks_down_fails_though_its_errors_are_known(bench: Any) -> None:
    bench.start({"says": "a.py:1: error: Bad  [x]", "code": "1"})
    result = _judge(bench, {"code": "2"}, 'cat says; exit "$(cat code)"')
    assert _word(result) == FAILED
    assert "ends with 2, at the base with 1" in result.reason


def test_failing_typecheck_ends_the_gate(project: Any) -> None:
    result = project.judge(
        project.tree({"b.src": "bad y\n"}), "true", gate=project.gate(typecheck=COMMAND)
    )
    assert [check.check for check in result.checks] == [Check.APPLY, Check.TYPECHECK]


def test_automatic_check_runs_mypy_and_reads_its_settings_from_the_base(bench: Any) -> None:
    bench.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{bench.env['PATH']}"
    bench.start(
        {
            "mypy.ini": "[mypy]\npretty = true\nshow_column_numbers = true\n",
            "a.py": "x: int = 'one'\n",
        }
    )
    old = _judge(bench, {"a.py": "\n\nx: int = 'one'\n"}, "auto")
    assert _word(old) == PASSED
    assert "the base has 1" in old.reason
    new = _judge(bench, {"b.py": "y: int = 'two'\n"}, "auto")
    assert _word(new) == FAILED
    [finding] = new.findings
    assert finding.startswith("b.py: assignment: Incompatible types in assignment (expression")


def test_checker_that_only_the_candidate_configures_is_not_run(bench: Any) -> None:
    bench.start({"a.py": ""})
    gate = bench.gate(typecheck="auto")
    result = bench.judge(bench.tree({"go.mod": "module x\n"}), "true", gate=gate)
    assert [check.check for check in result.checks] == [Check.APPLY, Check.VERIFY]


def test_checker_that_rewrites_a_test_is_caught_before_verify(bench: Any) -> None:
    bench.start({"check.sh": "true\n", "tests/test_a.py": "assert 0\n"})
    tree = bench.tree({"check.sh": "echo > tests/test_a.py\n"})
    gate = bench.gate(typecheck="sh check.sh")
    result = bench.judge(tree, f"{sys.executable} tests/test_a.py", gate=gate)
    assert result.checks[-1].check is Check.VERIFY
    assert result.checks[-1].verdict is Verdict.FAIL
    assert "rewritten" in result.checks[-1].reason
