import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import Baseline
from loopctl.errors import CancelledError
from loopctl.verdict import Blame, Check, Verdict
from loopctl.verdict import TestCounts as Counts

GOOD = {"calc.py": "def total(numbers):\n    return sum(numbers)\n"}


def _last(result: Any) -> tuple[Check, Verdict, Blame | None]:
    last = result.checks[-1]
    return last.check, last.verdict, last.blame


PASSED = (Check.VERIFY, Verdict.PASS, None)
INTRODUCED = (Check.VERIFY, Verdict.FAIL, Blame.INTRODUCED)
PRE_EXISTING = (Check.VERIFY, Verdict.FAIL, Blame.PRE_EXISTING)
FLAKY = (Check.VERIFY, Verdict.FAIL, Blame.FLAKY)
ENVIRONMENT = (Check.VERIFY, Verdict.UNKNOWN, Blame.ENVIRONMENT)


def test_green_candidate_on_red_base_passes_with_the_counts_of_both(calc: Any) -> None:
    result = calc.judge(calc.tree(GOOD), calc.pytest)
    assert _last(result) == PASSED
    verify = result.checks[-1]
    assert verify.counts == Counts(collected=2, passed=2)
    assert verify.base_counts == Counts(collected=2, passed=1, failed=1)
    assert not verify.vacuous
    assert verify.tree == result.tree
    assert verify.command == calc.pytest
    assert verify.exit == 0
    assert "2 passed" in verify.tail
    assert result.is_passed
    assert [check.check for check in result.checks] == [Check.APPLY, Check.VERIFY]


def test_red_test_that_is_red_at_the_base_too_is_pre_existing(calc: Any) -> None:
    result = calc.judge(calc.tree({"other.py": ""}), calc.pytest)
    assert _last(result) == PRE_EXISTING
    assert result.checks[-1].findings == ("tests/test_calc.py::test_sum",)


def test_new_red_test_beside_an_old_one_is_introduced(calc: Any) -> None:
    tree = calc.tree({"tests/test_new.py": "def test_new():\n    assert 0\n"})
    result = calc.judge(tree, calc.pytest)
    assert _last(result) == INTRODUCED
    assert result.checks[-1].findings == ("tests/test_new.py::test_new",)
    assert "tests/test_new.py::test_new" in result.checks[-1].reason


def test_broken_green_command_is_introduced(bench: Any) -> None:
    bench.start({"word": "good\n"})
    result = bench.judge(bench.tree({"word": "bad\n"}), "grep -q good word")
    assert _last(result) == INTRODUCED


def test_command_that_passes_at_the_base_as_well_is_vacuous(bench: Any) -> None:
    bench.start({"word": "good\n"})
    result = bench.judge(bench.tree({"other": ""}), "grep good word")
    assert _last(result) == PASSED
    assert result.is_vacuous
    assert result.is_passed


def test_check_that_ends_otherwise_on_the_same_tree_is_flaky(bench: Any, tmp_path: Path) -> None:
    bench.start({"word": "good\n"})
    mark = tmp_path / "mark"
    toggles = f"test ! -f word2 || {{ test -f {mark} || {{ touch {mark}; exit 1; }}; }}"
    result = bench.judge(bench.tree({"word2": ""}), toggles)
    assert _last(result) == FLAKY
    assert all(kept.verdict is not Verdict.FAIL for kept in bench.cache.kept.values())


@pytest.mark.parametrize(
    "command",
    ["no-such-program-here", "./plain", f"{sys.executable} -m no_such_module_here", "kill -9 $$"],
)
def test_command_that_had_no_chance_is_the_environments_fault(bench: Any, command: str) -> None:
    bench.start({"plain": "text\n"})
    result = bench.judge(bench.tree({"other": ""}), command)
    assert _last(result) == ENVIRONMENT
    assert bench.cache.kept == {}


def test_time_limit_is_the_environments_fault(bench: Any) -> None:
    bench.start({"word": ""})
    result = bench.judge(bench.tree({"other": ""}), "sleep 60", gate=bench.gate(timeout_s=0.2))
    assert _last(result) == ENVIRONMENT
    assert "gate.timeout_s" in result.checks[-1].reason


def test_crash_of_the_program_itself_is_introduced(bench: Any) -> None:
    bench.start({"word": ""})
    result = bench.judge(bench.tree({"crash": ""}), "test ! -f crash || kill -SEGV $$")
    assert _last(result) == INTRODUCED


def test_removed_command_of_a_green_base_is_introduced(bench: Any) -> None:
    bench.start({"check.sh": "exit 0\n", "word": ""})
    command = "test -f check.sh && sh check.sh || exit 127"
    result = bench.judge(bench.tree(drop=["check.sh"]), command, may_edit=("check.sh",))
    assert _last(result) == INTRODUCED


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("echo 'No space left on device'; exit 1", ENVIRONMENT),
        ("test ! -f other || { echo 'No space left on device'; exit 1; }", INTRODUCED),
        ("echo 'Temporary failure in name resolution'; exit 1", ENVIRONMENT),
    ],
)
def test_starved_command_is_the_environments_only_where_the_base_is_alike(
    bench: Any, says: str, expected: object
) -> None:
    bench.start({"word": ""})
    assert _last(bench.judge(bench.tree({"other": ""}), says)) == expected


def test_base_is_judged_once_and_a_pass_is_the_next_base(bench: Any, tmp_path: Path) -> None:
    bench.start({"word": ""})
    log = tmp_path / "log"
    command = f"echo run >> {log}"
    first = bench.judge(bench.tree({"a": "1"}), command)
    assert log.read_text().count("run") == 2
    bench.judge(bench.tree({"b": "1"}), command)
    assert log.read_text().count("run") == 3
    head = bench.repository.commit(first.tree, bench.base, "landed")
    bench.judge(bench.tree({"c": "1"}), command, head=head)
    assert log.read_text().count("run") == 4


def test_another_setup_makes_another_base(bench: Any) -> None:
    bench.start({"word": ""})
    command = "test -f made"
    assert bench.judge(bench.tree({"a": ""}), command, gate=bench.gate()).blame is not None
    result = bench.judge(bench.tree({"a": ""}), command, gate=bench.gate(setup_cmd="touch made"))
    assert _last(result) == PASSED
    assert result.is_vacuous


def test_failing_setup_is_the_environments_fault(bench: Any) -> None:
    bench.start({"word": ""})
    result = bench.judge(
        bench.tree({"a": ""}), "true", gate=bench.gate(setup_cmd="echo no; exit 3")
    )
    assert _last(result) == ENVIRONMENT
    assert "setup_cmd ended with 3" in result.checks[-1].reason


def test_checkouts_are_fresh_and_none_is_left(bench: Any) -> None:
    bench.start({"word": ""})
    command = "test ! -e left && touch left"
    assert _last(bench.judge(bench.tree({"a": ""}), command)) == PASSED
    assert _last(bench.judge(bench.tree({"b": ""}), command)) == PASSED


def test_without_verify_and_typecheck_only_apply_is_judged(bench: Any) -> None:
    bench.start({"word": ""})
    result = bench.judge(bench.tree({"a": ""}), None, gate=bench.gate(typecheck="auto"))
    assert [check.check for check in result.checks] == [Check.APPLY]
    assert not result.is_passed
    assert not result.is_verified


def test_asked_to_stop_the_gate_leaves_no_checkout(bench: Any) -> None:
    bench.start({"word": ""})
    bench.cancel.set()
    with pytest.raises(CancelledError):
        bench.judge(bench.tree({"a": ""}), "sleep 60")
    assert bench.checkouts() == []


def test_command_that_removes_its_own_checkout_breaks_nothing(bench: Any) -> None:
    bench.start({"word": ""})
    gate = bench.gate(setup_cmd='rm -rf "$PWD"')
    assert _last(bench.judge(bench.tree({"a": ""}), "true", gate=gate)) == ENVIRONMENT
    result = bench.judge(bench.tree({"a": ""}), 'rm -rf "$PWD"; exit 1')
    assert _last(result) == PRE_EXISTING


def test_broken_git_is_unknown_and_no_exception(bench: Any) -> None:
    bench.start({"word": ""})
    result = bench.judge("f" * 40, "true")
    assert _last(result) == (Check.APPLY, Verdict.UNKNOWN, Blame.ENVIRONMENT)


def test_known_failures_pass_where_no_new_ones_are_asked_for(calc: Any) -> None:
    tree = calc.tree({"other.py": ""})
    result = calc.judge(tree, calc.pytest, baseline=Baseline.NO_NEW_FAILURES)
    assert _last(result) == PASSED
    assert "red at the base" in result.checks[-1].reason
    base = calc.cache.kept[result.tree, "verify", calc.pytest]
    assert base.verdict is Verdict.FAIL


def test_no_new_failures_needs_a_runner_that_reports_single_tests(bench: Any) -> None:
    bench.start({"word": ""})
    gate = bench.gate(baseline=Baseline.NO_NEW_FAILURES)
    result = bench.judge(bench.tree({"a": ""}), "false", gate=gate)
    assert _last(result) == PRE_EXISTING
    assert "only pytest" in result.checks[-1].reason


def test_no_new_failures_never_lets_a_new_one_pass(calc: Any) -> None:
    tree = calc.tree({"tests/test_new.py": "def test_new():\n    assert 0\n"})
    result = calc.judge(tree, calc.pytest, baseline=Baseline.NO_NEW_FAILURES)
    assert _last(result) == INTRODUCED


def test_done_criterion_runs_in_a_fresh_checkout(calc: Any) -> None:
    gate = calc.gate()
    red = gate.run_check(calc.pytest, calc.base)
    assert (red.verdict, red.exit) == (Verdict.FAIL, 1)
    assert gate.run_check("test -f calc.py", calc.base).verdict is Verdict.PASS
    gone = gate.run_check("no-such-program-here", calc.base)
    assert (gone.verdict, gone.blame) == (Verdict.UNKNOWN, Blame.ENVIRONMENT)
    assert gate.run_check("true", "f" * 40).verdict is Verdict.UNKNOWN
    assert calc.checkouts() == []
