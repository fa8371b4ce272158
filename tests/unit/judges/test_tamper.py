from dataclasses import replace

import pytest

from loopctl.domain import Blame, Check, CheckResult, Verdict
from loopctl.domain import TestCounts as Counts
from loopctl.judges.pytest_report import Account
from loopctl.judges.tamper import baseline_refusal, green_fault, lone_fault

FOUND = CheckResult(Check.VERIFY, Verdict.PASS, command="pytest -q", exit=0)
BASE = replace(FOUND, counts=Counts(5, 3, 0, 1, 1))


def _account(counts: Counts, failed: tuple[str, ...] = (), exit_code: int = 0) -> Account:
    return Account(1, (exit_code,), counts, failed)


@pytest.mark.parametrize(
    ("counts", "is_fine"),
    [
        (Counts(5, 3, 0, 1, 1), True),
        (Counts(6, 4, 0, 1, 1), True),
        (Counts(5, 5), True),
        (Counts(4, 2, 0, 1, 1), False),
        (Counts(5, 2, 0, 2, 1), False),
        (Counts(5, 2, 0, 1, 2), False),
        (Counts(5, 2, 0, 1, 1), False),
        (Counts(), False),
    ],
)
def test_counts_must_not_shrink(counts: Counts, *, is_fine: bool) -> None:
    assert (green_fault(FOUND, _account(counts), BASE) == "") is is_fine


def test_skips_of_a_base_without_counts_are_not_compared() -> None:
    assert green_fault(FOUND, _account(Counts(2, 1, 0, 1)), replace(BASE, counts=None)) == ""


def test_what_a_stopped_base_never_ran_may_have_been_skipped() -> None:
    stopped = replace(BASE, exit=1, counts=Counts(5, 1, 1))
    assert green_fault(FOUND, _account(Counts(5, 2, 0, 3)), stopped) == ""
    assert green_fault(FOUND, _account(Counts(5, 1, 0, 4)), stopped)


def test_failure_that_the_users_own_command_tolerates_at_the_base_passes() -> None:
    tolerant = replace(FOUND, command="pytest -q || true")
    base = replace(BASE, counts=Counts(2, 1, 1), findings=("a",))
    known, new = _account(Counts(2, 1, 1), ("a",), 1), _account(Counts(2, 1, 1), ("b",), 1)
    assert green_fault(tolerant, known, base) == ""
    assert "b failed" in green_fault(tolerant, new, base)
    assert "a failed" in green_fault(tolerant, known, replace(base, exit=1))


def test_report_is_asked_of_pytest_alone() -> None:
    assert lone_fault("pytest", Account())
    assert lone_fault("make test", Account()) == ""
    assert lone_fault("make test", Account(began=1))
    assert green_fault(replace(FOUND, command="make test"), Account(), BASE)
    bare = replace(BASE, counts=None)
    assert green_fault(replace(FOUND, command="make test"), Account(), bare) == ""


RED = replace(FOUND, verdict=Verdict.FAIL, blame=Blame.PRE_EXISTING, exit=1, findings=("a",))
RED_BASE = replace(RED, counts=Counts(2, 1, 1))
RED_ACCOUNT = _account(Counts(2, 1, 1), ("a",), 1)


@pytest.mark.parametrize(
    ("found", "account", "base", "why"),
    [
        (RED, RED_ACCOUNT, RED_BASE, ""),
        (replace(RED, command="make"), RED_ACCOUNT, RED_BASE, "more than run one pytest"),
        (RED, Account(), RED_BASE, "only pytest"),
        (RED, RED_ACCOUNT, replace(RED_BASE, counts=None), "only pytest"),
        (RED, RED_ACCOUNT, replace(RED_BASE, verdict=Verdict.UNKNOWN), "could not be judged"),
        (replace(RED, exit=2), RED_ACCOUNT, RED_BASE, "something else"),
        (RED, replace(RED_ACCOUNT, exits=(3,)), RED_BASE, "something else"),
        (RED, replace(RED_ACCOUNT, began=2), RED_BASE, "only pytest"),
        (RED, _account(Counts(3, 1, 1), ("a",), 1), RED_BASE, "not all collected"),
        (RED, RED_ACCOUNT, replace(RED_BASE, counts=Counts(3, 1, 1)), "not all collected"),
        (RED, RED_ACCOUNT, replace(RED_BASE, counts=Counts(3, 2, 1)), "tests were collected"),
    ],
)
def test_known_failures_pass_only_where_single_tests_are_reported(
    found: CheckResult, account: Account, base: CheckResult, why: str
) -> None:
    refusal = baseline_refusal(found, account, base)
    assert bool(refusal) is bool(why)
    assert why in refusal
