"""The gate: the judges that block, in order, each on fresh checkouts of exactly that tree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from loopctl.clock import Clock
from loopctl.domain import Goal, Sha
from loopctl.errors import GitError, SandboxError
from loopctl.judges import outcome
from loopctl.judges.approval import ApprovalJudge
from loopctl.judges.bases import Bases
from loopctl.judges.case import Case, Checkouts, Judge
from loopctl.judges.diff import ApplyJudge
from loopctl.judges.evidence import shown
from loopctl.judges.jury import Jury
from loopctl.judges.outcome import End
from loopctl.judges.output import OutputJudge
from loopctl.judges.prose import AlignmentJudge, CritiqueJudge
from loopctl.judges.typecheck import TypecheckJudge
from loopctl.judges.verify import VerifyJudge, run_verify
from loopctl.ports import Repository
from loopctl.records import Candidate
from loopctl.redaction import Redactor
from loopctl.settings import BudgetSettings, GateSettings
from loopctl.storeports import VerdictCache
from loopctl.verdict import Blame, Check, CheckResult, GateResult, Verdict


@dataclass(frozen=True, slots=True)
class CodeGate:
    """Implements :class:`loopctl.ports.Gate`; keeps nothing between two calls but the cache.

    Attributes:
        judges: In their order; ``apply`` is the first, and its result names the tree that the
            later ones judge.
        setup_cmd: Run in each checkout before anything else; empty for none.
    """

    repository: Repository
    judges: Sequence[Judge]
    settings: GateSettings
    clock: Clock
    setup_cmd: str = ""

    def judge(self, candidate: Candidate) -> GateResult:
        """Return the evidence; machinery that breaks is ``unknown``, the environment's fault.

        Raises:
            CancelledError: The run was asked to stop; the checkouts are gone.
        """
        try:
            head_tree = self.repository.tree_of(candidate.head)
        except (SandboxError, GitError) as exc:
            nothing = _broken(Check.APPLY, exc)
            return GateResult(head=candidate.head, tree="", checks=(nothing,))
        results: list[CheckResult] = []
        with self._checkouts() as checkouts:
            case = Case(candidate, "", head_tree, checkouts)
            for judge in self.judges:
                result = self._judge_one(judge, case)
                if result is None:
                    continue
                results.append(result)
                hits = (*case.hits, *result.hits)
                case = replace(case, tree=result.tree or case.tree, hits=hits)
                if result.verdict is not Verdict.PASS:
                    break
        return GateResult(head=candidate.head, tree=case.tree, checks=tuple(results))

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        """Return how ``command`` ends on a fresh checkout of ``commit``, as a verify does.

        Raises:
            CancelledError: The run was asked to stop; the checkout is gone.
        """
        try:
            tree = self.repository.tree_of(commit)
            with self._checkouts() as checkouts:
                sandbox = checkouts.fresh(commit, tree)
                run = run_verify(sandbox, command, tree, self.settings.timeout_s)
        except (SandboxError, GitError, OSError) as exc:
            return replace(_broken(Check.VERIFY, exc), command=command)
        if run.end is End.GREEN and run.result.verdict is Verdict.UNKNOWN:
            return outcome.failed(run.result, Blame.PRE_EXISTING, run.result.reason)
        if run.end is End.RED:
            reason = f"the command ended with exit {run.result.exit}"
            return outcome.failed(run.result, Blame.PRE_EXISTING, reason)
        return run.result

    def _checkouts(self) -> Checkouts:
        timeout_s = self.settings.timeout_s
        return Checkouts(self.repository, setup_cmd=self.setup_cmd, timeout_s=timeout_s)

    def _judge_one(self, judge: Judge, case: Case) -> CheckResult | None:
        started = self.clock.monotonic()
        try:
            result = judge.judge(case)
        except (SandboxError, GitError, OSError) as exc:
            result = replace(_broken(judge.check, exc), tree=case.tree)
        if result is None or result.exit is not None:
            return result
        return replace(result, ms=round((self.clock.monotonic() - started) * 1000))


def _broken(check: Check, error: Exception) -> CheckResult:
    """Return the verdict of a check whose machinery broke."""
    reason = f"{check.value} could not be made: {shown(str(error))}"
    return CheckResult(check, Verdict.UNKNOWN, Blame.ENVIRONMENT, reason)


def code_gate(
    repository: Repository,
    cache: VerdictCache,
    settings: GateSettings,
    *,
    clock: Clock,
    setup_cmd: str = "",
    manifest: str = "tasks/ACTIVE.toml",
    redact: Redactor | None = None,
    signature: Callable[[str], str] | None = None,
    jury: Jury | None = None,
) -> CodeGate:
    """Return the gate: apply, typecheck, verify, approval; with three more for tasks of prose.

    Args:
        repository: The trees, and where checkouts come from.
        cache: What was found on trees before.
        settings: The run's frozen ``[gate]``.
        clock: For durations.
        setup_cmd: ``[sandbox] setup_cmd``.
        manifest: The manifest's path in the tree, with slashes; empty where it is outside.
        redact: Knows the user's keys; without it only their shapes are looked for.
        signature: Of a failed verify's output, where the same failure again means being stuck.
        jury: Judges prose; without it a person has to.
    """
    bases = Bases(cache, setup_cmd)
    redact = redact or Redactor({})
    jury = jury or Jury(None, Goal(), "", BudgetSettings(), cache)
    judges = (
        ApplyJudge(repository, settings.protect, manifest),
        OutputJudge(repository, redact),
        TypecheckJudge(repository, settings, bases),
        VerifyJudge(repository, settings, bases, signature),
        CritiqueJudge(repository, jury, redact),
        AlignmentJudge(repository, jury, redact),
        ApprovalJudge(repository, redact),
    )
    return CodeGate(repository, judges, settings, clock, setup_cmd)
