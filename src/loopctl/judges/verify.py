"""The ``verify`` check: the task's own command, its blame, and what its pytest counted.

======================  ==========================  =======================================
the candidate           the base                    result
======================  ==========================  =======================================
exit 0                  any                         pass; ``vacuous`` where the base passes
fails                   passes                      fail, ``introduced`` - or ``flaky`` when
                                                    it ends otherwise on the same tree again
fails                   fails in other tests        likewise
fails                   fails as well               fail, ``pre-existing``
not found, starved      passes, run again now       fail, ``introduced``
not found, starved      anything else               unknown, ``environment``
time limit, killed      any                         unknown, ``environment``
======================  ==========================  =======================================

A program that crashes (SIGSEGV, SIGABRT and their like) has ended by its own fault: it fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from loopctl.domain import Baseline, ExecResult
from loopctl.judges import additions, outcome, tamper
from loopctl.judges.additions import Ending
from loopctl.judges.bases import Bases
from loopctl.judges.case import Case
from loopctl.judges.evidence import shown
from loopctl.judges.outcome import End, classify
from loopctl.judges.paths import GONE
from loopctl.judges.protect import Surface
from loopctl.judges.pytest_report import Account, Report, is_unloaded, loading
from loopctl.judges.runs import runs
from loopctl.judges.shellwords import runs_pytest
from loopctl.judges.shrink import compared, edited_tests
from loopctl.ports import Repository, Sandbox
from loopctl.settings import GateSettings
from loopctl.verdict import Blame, Check, CheckResult, TestCounts, Verdict

_MOST_FINDINGS = 50


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a verify command.

    Attributes:
        result: Its evidence as it would stand for a base.
        why: What kept the command from its work, in words, where something did.
    """

    result: CheckResult
    end: End
    why: str
    account: Account


@dataclass(frozen=True, slots=True)
class VerifyJudge:
    """Runs ``verify_cmd`` on the candidate and, once for each base, on the base.

    Attributes:
        signature: Reads what is equal for the same failures from an output; ``None`` where equal
            failures are no sign of being stuck.
    """

    repository: Repository
    settings: GateSettings
    bases: Bases
    signature: Callable[[str], str] | None = None

    @property
    def check(self) -> Check:
        """It is ``verify``."""
        return Check.VERIFY

    def judge(self, case: Case) -> CheckResult | None:
        """Return the evidence; ``None`` where the task has no verify command."""
        command = case.candidate.task.verify_cmd or ""
        if not command.strip():
            return None
        result = self._judge(case, command)
        if self.signature is not None and result.verdict is Verdict.FAIL:
            result = replace(result, signature=self.signature(result.tail))
        return replace(result, findings=result.findings[:_MOST_FINDINGS])

    def _judge(self, case: Case, command: str) -> CheckResult:
        is_untouched = case.checkouts.is_untouched(case.tree)
        sandbox = case.checkouts.shared(case.candidate.head, case.tree)
        if not is_untouched and (fault := self._disturbed(case, sandbox, command)):
            nothing = CheckResult(Check.VERIFY, Verdict.FAIL, command=command, tree=case.tree)
            return outcome.failed(nothing, Blame.INTRODUCED, fault)
        run = run_verify(sandbox, command, case.tree, self.settings.timeout_s)
        if run.end is End.STOPPED:
            return outcome.unknown(run.result, f"verify had no chance: {run.why}")
        if run.end in {End.MISSING, End.STARVED}:
            # The machine may have changed since the base was judged: it is judged again.
            base = self._base_now(case, command)
        else:
            base = self._base(case, command)
        found = replace(run.result, base_counts=base.counts)
        if run.end is End.MISSING:
            return _judge_missing(run, found, base)
        if run.end is End.STARVED and base.verdict is Verdict.UNKNOWN:
            return outcome.unknown(found, f"verify had no chance: {run.why}")
        if run.end is End.GREEN:
            return self._judge_green(case, run, found, base)
        return self._judge_red(case, run, found, base)

    def _disturbed(self, case: Case, sandbox: Sandbox, command: str) -> str:
        """Return which protected file was rewritten before verify, empty where none was.

        The set-up and the type checker run code of the candidate (a ``setup.py``, a build
        script, a plugin), in the same checkout.
        """
        if not (changed := self._rewritten(case.tree, sandbox, command)):
            return ""
        base = case.checkouts.shared(case.candidate.head, case.head_tree)
        if changed <= self._rewritten(case.head_tree, base, command):
            return ""
        return (
            f"tampering: {shown(min(changed))} is protected and was rewritten by what ran before "
            "verify; leave it alone"
        )

    def _rewritten(self, tree: str, sandbox: Sandbox, command: str) -> set[str]:
        now = sandbox.snapshot()
        if now == tree:
            return set()
        surface = Surface(self.settings.protect)
        what_runs = runs(command)
        return {
            change.path
            for change in self.repository.changes(tree, now)
            if (change.old_mode != GONE and surface.protects(change))
            or what_runs.is_run(
                change.path, lambda path: self.repository.read_blob(tree, path, 1) is not None
            )
        }

    def _base(self, case: Case, command: str) -> CheckResult:
        return self.bases.verdict(
            case.head_tree, Check.VERIFY, command, lambda: self._base_now(case, command)
        )

    def _base_now(self, case: Case, command: str) -> CheckResult:
        sandbox = case.checkouts.shared(case.candidate.head, case.head_tree)
        return run_verify(sandbox, command, case.head_tree, self.settings.timeout_s).result

    def _judge_green(
        self, case: Case, run: Run, found: CheckResult, base: CheckResult
    ) -> CheckResult:
        edited = edited_tests(self.repository, case)
        if fault := tamper.green_fault(found, run.account, base, may_shrink=bool(edited)):
            if base.verdict is Verdict.UNKNOWN and base.exit == 0:
                return outcome.unknown(found, f"{base.reason}; the base is alike")
            return outcome.failed(found, Blame.INTRODUCED, fault)
        if (refused := self._carried(case, found, base)) is not None:
            return refused
        self.bases.remember(case.tree, Check.VERIFY, found.command, run.result)
        is_vacuous = base.verdict is Verdict.PASS
        reason = "passes at the base as well" if is_vacuous else "passes; the base does not"
        if base.verdict is Verdict.UNKNOWN:
            reason = f"passes; the base could not be judged ({base.reason})"
        hits, words = compared(self.repository, case, edited, found)
        reason = f"{reason}; {words}" if words else reason
        return replace(outcome.passed(found, reason, vacuous=is_vacuous), hits=hits)

    def _judge_red(
        self, case: Case, run: Run, found: CheckResult, base: CheckResult
    ) -> CheckResult:
        new = tuple(sorted(set(found.findings) - set(base.findings)))
        if base.verdict is Verdict.PASS or (new and base.counts):
            if again := self._again(case, found):
                return outcome.failed(found, Blame.FLAKY, again)
            reason = _red_reason(found, new, "the base does not have that")
            return outcome.failed(replace(found, findings=new), Blame.INTRODUCED, reason)
        refusal = ""
        baseline = case.candidate.task.baseline or self.settings.baseline
        if baseline is Baseline.NO_NEW_FAILURES:
            refusal = tamper.baseline_refusal(found, run.account, base)
            if not refusal:
                return self._accept_known_failures(case, run, found, base)
        reason = _red_reason(found, found.findings, "the base does not pass either")
        if refusal:
            reason = f"{reason}; {refusal}"
        return outcome.failed(found, Blame.PRE_EXISTING, reason)

    def _accept_known_failures(
        self, case: Case, run: Run, found: CheckResult, base: CheckResult
    ) -> CheckResult:
        if (refused := self._carried(case, found, base)) is not None:
            return refused
        self.bases.remember(case.tree, Check.VERIFY, found.command, run.result)
        return outcome.passed(
            found,
            f"no new failures: all {len(found.findings)} red tests are red at the base too",
            vacuous=found.findings == base.findings,
        )

    def _carried(self, case: Case, found: CheckResult, base: CheckResult) -> CheckResult | None:
        """Return the evidence against a result that new files among the tests carry, if they do."""
        command = found.command
        added = additions.added_tests(self.repository, case, command, self.settings.protect)
        if not added:
            return None
        tree = additions.without(self.repository, case.tree, added)

        def end() -> Ending:
            sandbox = case.checkouts.fresh(case.candidate.head, tree)
            run = run_verify(sandbox, command, tree, self.settings.timeout_s)
            is_empty = run.account.is_whole and run.account.counts == TestCounts()
            return Ending(run.end, run.result.exit, run.account.failed, run.why, is_empty)

        fault, why = additions.fault(found, base, added, end)
        if why:
            return outcome.unknown(found, f"without its new tests verify had no chance: {why}")
        return outcome.failed(found, Blame.INTRODUCED, fault) if fault else None

    def _again(self, case: Case, found: CheckResult) -> str:
        """Return how a second run on the same tree differed, empty where it did not."""
        sandbox = case.checkouts.fresh(case.candidate.head, case.tree)
        second = run_verify(sandbox, found.command, case.tree, self.settings.timeout_s)
        if second.end is End.GREEN:
            return f"flaky: exit {found.exit}, then exit 0 on the same files; make it steady"
        if second.end is End.RED and found.counts and second.result.findings != found.findings:
            return "flaky: other tests failed when run again on the same files; make them steady"
        return ""


def run_verify(sandbox: Sandbox, command: str, tree: str, timeout_s: float) -> Run:
    """Return how ``command`` ended in ``sandbox``, with what its pytest counted."""
    exchange = sandbox.exchange()
    exchange.offer("")
    report = Report(Path(exchange.env["LOOP_OUTBOX"]))
    ended = sandbox.run(loading(command), timeout_s=timeout_s, env=report.env())
    account = report.take()
    if ended.returncode != 0 and is_unloaded(ended.stdout) and not runs_pytest(command):
        # Something below the command sets PYTHONPATH itself: its exit code still counts.
        ended = sandbox.run(command, timeout_s=timeout_s)
    return _as_run(command, ended, account, tree, timeout_s)


def _as_run(command: str, ended: ExecResult, account: Account, tree: str, timeout_s: float) -> Run:
    end, why = classify(command, ended, timeout_s)
    result = replace(
        outcome.recorded(Check.VERIFY, command, ended, tree),
        counts=account.counts,
        findings=account.failed,
        replaced=account.replaced,
    )
    if end is End.RED and is_unloaded(ended.stdout) and runs_pytest(command):
        end = End.STOPPED
        why = "pytest cannot load loop's report plugin; do not run python with -I or -E"
    if end in {End.MISSING, End.STOPPED, End.STARVED}:
        result = outcome.unknown(result, why)
    elif end is End.GREEN and (fault := tamper.lone_fault(command, account)):
        result = outcome.unknown(result, fault)
    return Run(result, end, why, account)


def _judge_missing(run: Run, found: CheckResult, base: CheckResult) -> CheckResult:
    if base.verdict is Verdict.PASS:
        reason = f"{run.why}; on the base it passes, so undo what broke it"
        return outcome.failed(found, Blame.INTRODUCED, reason)
    return outcome.unknown(found, f"verify had no chance: {run.why}")


def _red_reason(found: CheckResult, findings: tuple[str, ...], base: str) -> str:
    if not findings:
        return f"the command ended with exit {found.exit}; {base}; make it exit 0"
    count = len(findings)
    tests = f"{count} test{'' if count == 1 else 's'}"
    return f"{tests} failed, first {shown(findings[0])}; {base}; make it pass"
