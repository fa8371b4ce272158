"""The ``output`` check: what a prose task's result is, read as its judges read it.

The result is the file that ``output`` names; without a name, the texts that the diff brings.
"""

import hashlib
import posixpath
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Task
from loopctl.judges.case import Case
from loopctl.judges.evidence import shown
from loopctl.judges.globs import matches_any
from loopctl.judges.paths import FILE_MODES
from loopctl.ports import Repository
from loopctl.redaction import Redactor
from loopctl.verdict import Blame, Check, CheckResult, Verdict

MOST_BYTES: Final = 100_000
"""Of all that is judged: a judge reads the whole of it, and quotes from anywhere."""


@dataclass(frozen=True, slots=True)
class Output:
    """A prose task's result.

    Attributes:
        text: Without keys; of several files each with its path before it.
        key: Equal for the same text, on whatever head; for the word of a person about it.
        others: What the diff changes besides, which no judge of prose reads.
        fault: Why there is no result; what mends it. Empty where there is one.
    """

    text: str = ""
    key: str = ""
    others: tuple[str, ...] = ()
    fault: str = ""


def read(repository: Repository, case: Case, redact: Redactor) -> Output:
    """Return the result of a candidate as its tree holds it, or why it is none.

    Raises:
        GitError: A tree could not be read.
    """
    task, changes = case.candidate.task, repository.changes(case.head_tree, case.tree)
    files = {change.path for change in changes if change.new_mode in FILE_MODES}
    named = path_of(task)
    if named and named not in files:
        return Output(fault=_why_none(repository, case, named))
    texts: dict[str, str] = {}
    left = MOST_BYTES
    for path in [named] if named else sorted(files):
        content = repository.read_blob(case.tree, path, left + 1) or b""
        if b"\0" in content:
            continue
        left -= len(content)
        if left < 0:
            return Output(fault=_too_long(path))
        texts[path] = redact(content.decode("utf-8-sig", "replace"))
    if not any(text.strip() for text in texts.values()):
        what = f"{shown(named)} is empty or no text" if named else "the diff brings no text"
        return Output(fault=f"{what}; write the result into it")
    others = tuple(change.path for change in changes if change.path not in texts)
    strays = [path for path in others if named and not matches_any(task.may_edit, path)]
    if strays:
        return Output(fault=_stray(named, strays))
    whole = texts[named] if named else "\n".join(f"--- {p}\n{text}" for p, text in texts.items())
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    return Output(whole, f"prose-{digest[:16]}", others)


def path_of(task: Task) -> str:
    """Return the path that ``output`` names, as git has it; empty where it names none."""
    return posixpath.normpath(task.output) if task.output else ""


def is_text_alone(repository: Repository, case: Case) -> bool:
    """Return whether a prose task has changed nothing but the file that its ``output`` names.

    Raises:
        GitError: A tree could not be read.
    """
    task = case.candidate.task
    if not task.is_prose or not task.output:
        return False
    changes = repository.changes(case.head_tree, case.tree)
    return all(change.path == path_of(task) for change in changes)


def named(task: Task) -> str:
    """Return what the result is called in messages."""
    return shown(path_of(task)) or "its result"


def _why_none(repository: Repository, case: Case, path: str) -> str:
    if repository.read_blob(case.tree, path, 1) is None:
        return (
            f"{shown(path)} is not there, and it is what this task's result is; write it (what git "
            "ignores is no part of a result)"
        )
    if any(change.path == path for change in repository.changes(case.head_tree, case.tree)):
        return f"{shown(path)} is a link; write a file in its place"
    return f"{shown(path)} is as it was before: that is no result; change it"


def _stray(path: str, strays: list[str]) -> str:
    more = f" and {len(strays) - 1} more" if len(strays) > 1 else ""
    return (
        f"the diff changes {shown(strays[0])}{more} besides {shown(path)}, and no judge reads that; "
        "put it back as it was, or name it in the task's may_edit"
    )


def _too_long(path: str) -> str:
    return (
        f"with {shown(path)} the result has more than {MOST_BYTES} bytes, which no judge can read "
        "in one piece; make it shorter"
    )


@dataclass(frozen=True, slots=True)
class OutputJudge:
    """Passes where a prose task has a result at all."""

    repository: Repository
    redact: Redactor

    @property
    def check(self) -> Check:
        """It is ``output``."""
        return Check.OUTPUT

    def judge(self, case: Case) -> CheckResult | None:
        """Return the evidence; ``None`` for a task that yields code."""
        task = case.candidate.task
        if not task.is_prose:
            return None
        found = read(self.repository, case, self.redact)
        if found.fault:
            blame = Blame.INTRODUCED
            return CheckResult(Check.OUTPUT, Verdict.FAIL, blame, found.fault, tree=case.tree)
        reason = f"{named(task)} has {len(found.text.split())} words"
        return CheckResult(Check.OUTPUT, Verdict.PASS, reason=reason, tree=case.tree)
