"""The code gate: the judges that block, in order, each on fresh checkouts of exactly that tree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopctl.clock import Clock
from loopctl.domain import Blame, Check, CheckResult, GateResult, Sha, Verdict
from loopctl.errors import GitError, SandboxError
from loopctl.judges import outcome
from loopctl.judges.bases import Bases
from loopctl.judges.case import Case, Checkouts, Judge
from loopctl.judges.diff import ApplyJudge
from loopctl.judges.evidence import shown
from loopctl.judges.outcome import End
from loopctl.judges.typecheck import TypecheckJudge
from loopctl.judges.verify import VerifyJudge, run_verify
from loopctl.ports import Candidate, Repository, VerdictCache
from loopctl.settings import GateSettings


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
        results: list[CheckResult] = []
        tree = ""
        with self._checkouts() as checkouts:
            for judge in self.judges:
                result = self._judge_one(judge, candidate, tree, checkouts)
                if result is None:
                    continue
                results.append(result)
                tree = result.tree or tree
                if result.verdict is not Verdict.PASS:
                    break
        return GateResult(head=candidate.head, tree=tree, checks=tuple(results))

    def run_check(self, command: str, commit: Sha) -> CheckResult:
        """Return how ``command`` ends on a fresh checkout of ``commit``, as a verify does.

        Raises:
            CancelledError: The run was asked to stop; the checkout is gone.
        """
        nothing = _not_made(Check.VERIFY, command)
        try:
            tree = self.repository.tree_of(commit)
            with self._checkouts() as checkouts:
                sandbox = checkouts.fresh(commit, tree)
                run = run_verify(sandbox, command, tree, self.settings.timeout_s)
        except (SandboxError, GitError, OSError) as exc:
            return outcome.unknown(nothing, f"{command} could not be run: {shown(str(exc))}")
        if run.end is End.GREEN and run.result.verdict is Verdict.UNKNOWN:
            return outcome.failed(run.result, Blame.PRE_EXISTING, run.result.reason)
        if run.end is End.RED:
            reason = f"the command ended with exit {run.result.exit}"
            return outcome.failed(run.result, Blame.PRE_EXISTING, reason)
        return run.result

    def _checkouts(self) -> Checkouts:
        timeout_s = self.settings.timeout_s
        return Checkouts(self.repository, setup_cmd=self.setup_cmd, timeout_s=timeout_s)

    def _judge_one(
        self, judge: Judge, candidate: Candidate, tree: str, checkouts: Checkouts
    ) -> CheckResult | None:
        started = self.clock.monotonic()
        try:
            head_tree = self.repository.tree_of(candidate.head)
            result = judge.judge(Case(candidate, tree, head_tree, checkouts))
        except (SandboxError, GitError, OSError) as exc:
            reason = f"{judge.check.value} could not be made: {shown(str(exc))}"
            result = outcome.unknown(replace(_not_made(judge.check), tree=tree), reason)
        if result is None or result.exit is not None:
            return result
        return replace(result, ms=round((self.clock.monotonic() - started) * 1000))


def _not_made(check: Check, command: str = "") -> CheckResult:
    return CheckResult(check, Verdict.UNKNOWN, Blame.ENVIRONMENT, command=command)


def code_gate(
    repository: Repository,
    cache: VerdictCache,
    settings: GateSettings,
    *,
    clock: Clock,
    setup_cmd: str = "",
    manifest: str = "tasks/ACTIVE.toml",
) -> CodeGate:
    """Return the gate of code tasks: apply, typecheck, verify.

    Args:
        repository: The trees, and where checkouts come from.
        cache: What was found on trees before.
        settings: The run's frozen ``[gate]``.
        clock: For durations.
        setup_cmd: ``[sandbox] setup_cmd``.
        manifest: The manifest's path in the tree, with slashes; empty where it is outside.
    """
    bases = Bases(cache, setup_cmd)
    judges = (
        ApplyJudge(repository, settings.protect, manifest),
        TypecheckJudge(repository, settings, bases),
        VerifyJudge(repository, settings, bases),
    )
    return CodeGate(repository, judges, settings, clock, setup_cmd)
