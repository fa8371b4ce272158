"""The ``approval`` check: what of a green result lands only with a person's word.

It collects what the judges before it have found, and looks for keys in the diff itself. There is
no such check in the evidence where nothing was found.
"""

from dataclasses import dataclass, replace

from loopctl.judges.case import Case
from loopctl.judges.secrets import secrets_in
from loopctl.ports import Repository
from loopctl.redaction import Redactor
from loopctl.verdict import Blame, Check, CheckResult, Verdict


@dataclass(frozen=True, slots=True)
class ApprovalJudge:
    """Passes what a person has approved, each thing by its key; it is the last of the judges."""

    repository: Repository
    redact: Redactor

    @property
    def check(self) -> Check:
        """It is ``approval``."""
        return Check.APPROVAL

    def judge(self, case: Case) -> CheckResult | None:
        """Return what needs a person's word; ``None`` where nothing does, and of a draft."""
        if case.candidate.is_draft:
            return None
        found = (*secrets_in(self.repository, case.head_tree, case.tree, self.redact), *case.hits)
        if not found:
            return None
        approved = set(case.candidate.task.approved)
        left = tuple(hit for hit in found if hit.key not in approved)
        passed = CheckResult(
            Check.APPROVAL, Verdict.PASS, reason="a person has approved it", tree=case.tree
        )
        if not left:
            return replace(passed, reason=f"approved by a person: {_count(len(found))}")
        return replace(
            passed,
            verdict=Verdict.FAIL,
            blame=Blame.INTRODUCED,
            reason=f"{_count(len(left))} to be approved by a person, first {left[0].words}",
            findings=tuple(hit.words for hit in left),
            hits=left,
        )


def _count(number: int) -> str:
    return f"{number} thing{'' if number == 1 else 's'}"
