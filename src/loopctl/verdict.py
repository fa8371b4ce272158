"""What a gate finds: checks, their verdicts, whose fault a failure is, and the evidence."""

from dataclasses import dataclass, field
from enum import StrEnum

from loopctl.domain import Sha, Usage
from loopctl.moneyports import Refused


class Check(StrEnum):
    """The checks of a gate, in their order; code has no output, critique or alignment."""

    APPLY = "apply"
    OUTPUT = "output"
    TYPECHECK = "typecheck"
    VERIFY = "verify"
    CRITIQUE = "critique"
    ALIGNMENT = "alignment"
    APPROVAL = "approval"


class Verdict(StrEnum):
    """What a check knows. A check that could not be made is ``unknown``, never ``pass``."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    UNKNOWN = "unknown"


class Blame(StrEnum):
    """Whose fault a failing check is."""

    INTRODUCED = "introduced"
    PRE_EXISTING = "pre-existing"
    FLAKY = "flaky"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class TestCounts:
    """What pytest itself counted, read from the harness's own report."""

    collected: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    xfailed: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """What of a result lands only with a person's word, however green everything is.

    Attributes:
        key: Equal for the same thing on a moved head; no secret can be told from it.
        words: What it is and where, for a reader; never the secret.
    """

    key: str
    words: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The evidence of one check.

    Attributes:
        check: Which one.
        verdict: What it found.
        blame: Set on every verdict but ``pass``.
        reason: One line for a reader; on a failure it says what would mend it.
        command: What was run, empty for ``apply``.
        exit: Its exit code, ``None`` where nothing was run.
        ms: Its duration in milliseconds.
        tree: The git tree that it ran on.
        tail: The end of its output, at most a few kilobytes, printable.
        vacuous: It passes at the base as well.
        counts: Of a pytest verify, on the candidate.
        base_counts: Of a pytest verify, on the base.
        findings: What was red, sorted, one line each: node ids of failed tests; type errors
            without their line numbers. Of a check whose blame is ``introduced`` only the new.
        replaced: Parts of pytest, unittest and Python that the code put others in the place of.
        signature: Equal for equal type errors, or failures; empty where they do not matter.
        hits: What a person must let land.
        usage: What asking a model for it has cost; nothing where none was asked.
        refused: A judge's question that did not fit the budget, so that it was not asked.
    """

    check: Check
    verdict: Verdict
    blame: Blame | None = None
    reason: str = ""
    command: str = ""
    exit: int | None = None
    ms: int = 0
    tree: str = ""
    tail: str = ""
    vacuous: bool = False
    counts: TestCounts | None = None
    base_counts: TestCounts | None = None
    findings: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    signature: str = ""
    hits: tuple[Hit, ...] = ()
    usage: Usage = field(default_factory=Usage)
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """The evidence of one gate run, in order; checks after the first that fails are absent.

    Attributes:
        head: The commit that the diff was applied to.
        tree: The tree that was judged and that alone may land; empty where nothing applied.
        checks: At least ``apply``.
    """

    head: Sha
    tree: str
    checks: tuple[CheckResult, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the last check: what comes before it has passed."""
        return self.checks[-1].verdict

    @property
    def blame(self) -> Blame | None:
        """The blame of the check that did not pass."""
        return self.checks[-1].blame

    @property
    def is_passed(self) -> bool:
        """Every check passed, and one of them judged more than whether the diff applies.

        A draft never does, however sound its critic finds it.
        """
        is_draft = any(result.check is Check.CRITIQUE for result in self.checks)
        return self.verdict is Verdict.PASS and self.is_verified and not is_draft

    @property
    def is_verified(self) -> bool:
        """A check of what the result does was made; without one a code task cannot be done."""
        said = {Check.TYPECHECK, Check.VERIFY, Check.CRITIQUE, Check.ALIGNMENT}
        return any(result.check in said for result in self.checks)

    @property
    def is_to_be_approved(self) -> bool:
        """Nothing keeps the result from landing but a person's word."""
        return self.verdict is not Verdict.PASS and bool(self.checks[-1].hits)

    @property
    def is_unverified(self) -> bool:
        """The diff applies, and nothing else could be asked of it."""
        return self.verdict is Verdict.PASS and not self.is_verified

    @property
    def signature(self) -> str:
        """Equal for gate runs that failed alike, where that is told; empty for all others."""
        return self.checks[-1].signature

    @property
    def usage(self) -> Usage:
        """What its judges have cost."""
        return sum((result.usage for result in self.checks), Usage())

    @property
    def is_vacuous(self) -> bool:
        """Verify passes at the base as well."""
        return any(result.vacuous for result in self.checks)
