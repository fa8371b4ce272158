"""The ``apply`` check: a diff that is not empty, is safe, touches nothing protected, and fits.

Everything is judged on what git itself says differs between two trees; no patch text is parsed
and nothing is applied to files.
"""

from dataclasses import dataclass, replace
from typing import Final

from loopctl.domain import Sha
from loopctl.judges.case import Case
from loopctl.judges.evidence import printable, shown, tail
from loopctl.judges.paths import GONE, LINK, link_fault, mode_fault, nesting_fault, path_fault
from loopctl.judges.protect import ReadBlob, Surface
from loopctl.judges.runs import runs
from loopctl.judges.sections import LIMIT
from loopctl.ports import Repository
from loopctl.trees import Change
from loopctl.verdict import Blame, Check, CheckResult, Verdict

_MOST_FAULTS: Final = 20
_MOST_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class ApplyJudge:
    """Judges the diff itself; its result's ``tree`` is the one that the later checks judge.

    Attributes:
        protect: Globs of ``gate.protect``.
        manifest: The manifest's path in the tree, empty where it is not part of it.
    """

    repository: Repository
    protect: tuple[str, ...]
    manifest: str = ""

    @property
    def check(self) -> Check:
        """It is ``apply``."""
        return Check.APPLY

    def judge(self, case: Case) -> CheckResult:
        """Return the evidence; on a failure every path that is at fault, with what mends it."""
        candidate = case.candidate
        raw = self._changes(candidate.base, candidate.tree)
        if not raw:
            return _refused("", [_empty(candidate.left_out)])
        if faults := self._unsafe(raw, candidate.tree):
            return _refused("", faults)
        carried = self.repository.carry(candidate.base, candidate.tree, candidate.head)
        if carried.tree is None:
            return self._conflicting(case, raw, carried.detail)
        return self._judge_carried(case, raw, carried.tree)

    def _judge_carried(self, case: Case, raw: tuple[Change, ...], tree: str) -> CheckResult:
        if tree == case.head_tree:
            nothing = "the diff is empty: the integration head has all of it already"
            return _lost(_refused("", [nothing]))
        if case.candidate.tree == tree and case.candidate.base == case.candidate.head:
            changes = raw
        else:
            changes = self._changes(case.candidate.head, tree)
        faults = self._unsafe(changes, tree)
        faults = faults or self._protected(case, changes, tree)
        if faults:
            return _refused(tree, faults)
        count = len(changes)
        return CheckResult(
            check=Check.APPLY,
            verdict=Verdict.PASS,
            reason=f"{count} path{'' if count == 1 else 's'} changed",
            tree=tree,
        )

    def _conflicting(self, case: Case, raw: tuple[Change, ...], said: str) -> CheckResult:
        """Return the evidence of a diff that was right where it began, on a head that moved."""
        landed = self._changes(case.candidate.base, case.head_tree)
        both = sorted({change.path for change in raw} & {change.path for change in landed})
        # What is not the same path on both sides is a file in the place of a folder.
        names = ", ".join(shown(path) for path in both[:_MOST_NAMES]) or "what it changes"
        more = f" and {len(both) - _MOST_NAMES} more" if len(both) > _MOST_NAMES else ""
        reason = (
            "the diff does not apply on the integration head: it conflicts with what has landed "
            f"since, in {names}{more}; make the change again on the files as they are there"
        )
        return _lost(_refused("", [reason], said=said))

    def _changes(self, old: Sha, tree: str) -> tuple[Change, ...]:
        return self.repository.changes(self.repository.tree_of(old), tree)

    def _unsafe(self, changes: tuple[Change, ...], tree: str) -> list[str]:
        """Return a sentence for each path that no result may hold."""
        faults = []
        for change in changes:
            fault = mode_fault(change)
            if not fault and change.new_mode != GONE:
                fault = path_fault(change.path) or self._link_fault(change, tree)
            if fault:
                faults.append(f"{shown(change.path) or '(empty)'} {fault}")
        nested = None if faults else nesting_fault(changes)
        return [f"{shown(nested[0])} {nested[1]}"] if nested else faults

    def _link_fault(self, change: Change, tree: str) -> str:
        if change.new_mode != LINK:
            return ""
        target = self.repository.read_blob(tree, change.path, LIMIT)
        return link_fault(change.path, target or b"")

    def _protected(self, case: Case, changes: tuple[Change, ...], tree: str) -> list[str]:
        """Return a sentence for each path that this task may not touch."""
        task = case.candidate.task
        surface = Surface(self.protect, task.may_edit, self.manifest, runs(task.verify_cmd or ""))
        base, now = self._reader(case.head_tree), self._reader(tree)
        return [
            f"{shown(change.path)} {fault}"
            for change in changes
            if (fault := surface.fault(change, base, now))
        ]

    def _reader(self, tree: str) -> ReadBlob:
        return lambda path: self.repository.read_blob(tree, path, LIMIT + 1)


def _lost(refused: CheckResult) -> CheckResult:
    """Return a refusal that others are the cause of: they were first."""
    return replace(refused, blame=Blame.PRE_EXISTING)


def _empty(left_out: str) -> str:
    nothing = "the diff is empty: nothing differs from the base"
    return f"{nothing}; there is {shown(left_out)}" if left_out else f"{nothing}; change a file"


def _refused(tree: str, faults: list[str], said: str = "") -> CheckResult:
    more = len(faults) - 1
    reason = faults[0] + (f" (and {more} more)" if more else "")
    listed = "\n".join(faults[:_MOST_FAULTS]) if more else ""
    if len(faults) > _MOST_FAULTS:
        listed += f"\n[... {len(faults) - _MOST_FAULTS} more]"
    return CheckResult(
        check=Check.APPLY,
        verdict=Verdict.FAIL,
        blame=Blame.INTRODUCED,
        reason=printable(reason),
        tree=tree,
        tail=printable(listed) if listed else tail(said.encode("utf-8", "replace")),
    )
