"""The ``typecheck`` check: new type errors fail, those that the base has too do not.

Errors are compared as multisets of (file, code, message), never by line. A checker that is red
without an error that can be read is compared by its whole output, numbers left out.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256

from loopctl.judges import outcome
from loopctl.judges.bases import Bases
from loopctl.judges.case import Case
from loopctl.judges.checkers import find
from loopctl.judges.diagnostics import findings, normalised
from loopctl.judges.outcome import End, classify
from loopctl.judges.output import is_text_alone
from loopctl.ports import Repository, Sandbox
from loopctl.settings import GateSettings
from loopctl.verdict import Blame, Check, CheckResult, Verdict

_MOST_FINDINGS = 50
_UNREADABLE = "output: "


@dataclass(frozen=True, slots=True)
class TypecheckJudge:
    """Runs the type checker on the candidate and, where it is red there, on the base."""

    repository: Repository
    settings: GateSettings
    bases: Bases
    _found: dict[str, str | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def check(self) -> Check:
        """It is ``typecheck``."""
        return Check.TYPECHECK

    def judge(self, case: Case) -> CheckResult | None:
        """Return the evidence; ``None`` where it is off or the project configures no checker.

        A diff that touches nothing but the one text that a task yields has no types.
        """
        if is_text_alone(self.repository, case):
            return None
        command = self.command(case.head_tree)
        if command is None:
            return None
        sandbox = case.checkouts.shared(case.candidate.head, case.tree)
        end, why, found = self._run(sandbox, command, case.tree)
        if end is End.GREEN:
            self.bases.remember(case.tree, Check.TYPECHECK, command, found)
            return outcome.passed(found, "no type errors")
        if end is End.STOPPED:
            return outcome.unknown(found, f"the type checker had no chance: {why}")
        base = self._base(case, command, is_fresh=end is not End.RED)
        result = _compare(end, why, found, base)
        if result.verdict is Verdict.PASS:
            self.bases.remember(case.tree, Check.TYPECHECK, command, found)
        return replace(result, findings=result.findings[:_MOST_FINDINGS])

    def command(self, tree: str) -> str | None:
        """Return the checker's command for a base of ``tree``; ``None`` where there is none."""
        setting = self.settings.typecheck.strip()
        if setting in {"", "off"}:
            return None
        if setting != "auto":
            return setting
        if tree not in self._found:
            self._found[tree] = find(lambda path: self._text(tree, path))
        return self._found[tree]

    def _text(self, tree: str, path: str) -> str | None:
        content = self.repository.read_blob(tree, path)
        return None if content is None else content.decode("utf-8-sig", "replace")

    def _base(self, case: Case, command: str, *, is_fresh: bool) -> CheckResult:
        def now() -> CheckResult:
            sandbox = case.checkouts.shared(case.candidate.head, case.head_tree)
            return self._run(sandbox, command, case.head_tree)[2]

        if is_fresh:
            # The machine may have changed since the base was judged.
            return now()
        return self.bases.verdict(case.head_tree, Check.TYPECHECK, command, now)

    def _run(self, sandbox: Sandbox, command: str, tree: str) -> tuple[End, str, CheckResult]:
        """Return how the checker ended, and its evidence as it would stand for a base."""
        timeout_s = self.settings.timeout_s
        ended = sandbox.run(command, timeout_s=timeout_s)
        end, why = classify(command, ended, timeout_s)
        found = outcome.recorded(Check.TYPECHECK, command, ended, tree)
        if end is End.RED and ended.truncated:
            end, why = End.STOPPED, "its output is too long to be compared"
        if end is End.GREEN:
            return end, why, found
        if end is not End.STOPPED:
            output, root = ended.stdout + ended.stderr, str(sandbox.inside)
            errors = findings(output, root) or (
                f"{_UNREADABLE}{_digest(normalised(output, root))}",
            )
            found = replace(found, findings=errors, signature=_digest("\n".join(errors)))
        return end, why, found if end is End.RED else outcome.unknown(found, why)


def _compare(end: End, why: str, found: CheckResult, base: CheckResult) -> CheckResult:
    if end is End.MISSING or (end is End.STARVED and base.verdict is Verdict.UNKNOWN):
        if base.verdict is Verdict.PASS:
            return outcome.failed(found, Blame.INTRODUCED, f"{why}; on the base it passes")
        return outcome.unknown(found, f"the type checker had no chance: {why}")
    if base.verdict is Verdict.UNKNOWN:
        return outcome.unknown(found, f"the base could not be checked: {base.reason}")
    new = tuple((Counter(found.findings) - Counter(base.findings)).elements())
    if not new and found.exit != base.exit:
        reason = f"the checker ends with {found.exit}, at the base with {base.exit}"
        return outcome.failed(found, Blame.INTRODUCED, f"{reason}; see its output")
    if not new:
        return outcome.passed(found, _known_reason(base.findings))
    return outcome.failed(
        replace(found, findings=_readable(new)), Blame.INTRODUCED, _new_reason(new, base)
    )


def _known_reason(errors: tuple[str, ...]) -> str:
    if errors[0].startswith(_UNREADABLE):
        return "the checker ends as it does at the base"
    count = len(errors)
    return f"no new type errors; the base has {count} of its own"


def _new_reason(new: tuple[str, ...], base: CheckResult) -> str:
    known = len(_readable(base.findings))
    has = f"the base has {known} of its own" if known else "the base has none"
    errors = _readable(new)
    if not errors:
        return "the checker ends otherwise than at the base, and its output names no error"
    count = len(errors)
    return f"{count} new type error{'' if count == 1 else 's'}, first {errors[0]}; {has}"


def _readable(errors: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(error for error in errors if not error.startswith(_UNREADABLE))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
