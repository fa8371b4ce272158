"""Whether tests that ended well have tested what they should: their counts beside the base's.

A pytest or unittest that exits 0 must have left its own report; must have collected tests, and no fewer than
at the base; must have skipped and xfailed no more; must have run all that it collected; and must
not have counted a failure that the base has not, nor have put anything in the place of what pytest
and unittest consist of. Where a task may edit the tests that it changed, it is
for a person to judge that there are fewer (``shrink.py``).
"""

from collections.abc import Iterator

from loopctl.judges.pytest_report import Account
from loopctl.judges.shellwords import is_only_pytest, runs_pytest, runs_unittest
from loopctl.verdict import CheckResult, TestCounts, Verdict

_TAMPERING = "tampering"
_UNREPORTED = (
    "{} exits 0 without the report of loop's plugin; run it directly, {}with the environment that "
    "loop gives it"
)


def lone_fault(command: str, account: Account) -> str:
    """Return what is wrong with an exit 0 seen by itself, empty where nothing is."""
    if account.counts is None or not account.is_whole:
        if account.began:
            return "a session of tests began and never came to its end, yet the command exits 0"
        if runs_pytest(command):
            return _UNREPORTED.format("pytest", "")
        return _UNREPORTED.format("unittest", "without -I, -E and -S, ") * runs_unittest(command)
    if account.counts.collected == 0:
        return "it collected no test, yet the command exits 0"
    return ""


def green_fault(
    found: CheckResult, account: Account, base: CheckResult, *, may_shrink: bool = False
) -> str:
    """Return why an exit 0 is no pass, empty where it is one.

    With ``may_shrink`` it is for a person to judge that less is tested (:func:`fewer`).
    """
    if fault := lone_fault(found.command, account):
        return f"{_TAMPERING}: {fault}"
    if account.counts is None:
        if base.counts is not None and base.counts.collected:
            return f"{_TAMPERING}: the base's tests left a report of their counts, these left none"
        return ""
    if account.failed and (base.exit != 0 or not set(account.failed) <= set(base.findings)):
        return f"{_TAMPERING}: the command exits 0, yet {account.failed[0]} failed"
    if fault := _replaced(found, base):
        return fault
    return _shrunk(account.counts, None if may_shrink else base.counts, base.counts)


def _replaced(found: CheckResult, base: CheckResult) -> str:
    new = sorted(set(found.replaced) - set(base.replaced))
    if not new:
        return ""
    return f"{_TAMPERING}: the code replaces {new[0]}, by which it is judged; leave that as it is"


def _shrunk(now: TestCounts, compared: TestCounts | None, base: TestCounts | None) -> str:
    """Return how less was tested than at the base, empty where it was not.

    Args:
        now: Of the candidate.
        compared: Those of the base, where there must be as many; else ``None``.
        base: Those of the base.
    """
    what = next((words for _, words in fewer(now, compared)), "")
    if not what and _not_run(now) > _unrun(base):
        what = f"{_not_run(now)} collected tests were never run"
    return f"{_TAMPERING}: {what}; bring the tests back" if what else ""


def fewer(now: TestCounts, base: TestCounts | None) -> Iterator[tuple[str, str]]:
    """Yield in which way, and in words how, less is tested than at the base."""
    if base is None:
        return
    if (lost := base.collected - now.collected) > 0:
        words = f"{now.collected} tests were collected, {base.collected} at the base"
        yield f"collected-{lost}", words
    # What the base never came to run might have been skipped there as well.
    if (more := now.skipped - base.skipped - _unrun(base)) > 0:
        yield f"skipped-{more}", f"{now.skipped} tests were skipped, {base.skipped} at the base"
    if (more := now.xfailed - base.xfailed - _unrun(base)) > 0:
        words = f"{now.xfailed} tests were expected to fail, {base.xfailed} at the base"
        yield f"xfailed-{more}", words


def _unrun(base: TestCounts | None) -> int:
    return max(_not_run(base), 0) if base else 0


def baseline_refusal(found: CheckResult, account: Account, base: CheckResult) -> str:
    """Return why ``no-new-failures`` cannot let this result pass, empty where it can.

    The red tests are known to be red at the base.
    """
    rule = 'baseline = "no-new-failures" does not help'
    if base.verdict is not Verdict.FAIL:
        return f"{rule}: the base could not be judged"
    if account.counts is None or base.counts is None or not account.is_whole:
        return f"{rule}: only pytest reports single tests here"
    if not is_only_pytest(found.command):
        return f"{rule}: the command does more than run one pytest"
    if found.exit != 1 or account.exits != (1,) or base.exit != 1 or not found.findings:
        return f"{rule}: pytest ended with something else than failed tests"
    if _not_run(account.counts) > 0 or _not_run(base.counts) > 0:
        return f"{rule}: not all collected tests were run"
    if fault := _replaced(found, base) or _shrunk(account.counts, base.counts, base.counts):
        return f"{rule}: {fault}"
    return ""


def _not_run(counts: TestCounts) -> int:
    return counts.collected - counts.passed - counts.failed - counts.skipped - counts.xfailed
