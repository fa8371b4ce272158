"""The commands that a reader can paste to go on, quoted for a POSIX shell."""

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loopctl.domain import Decision, DecisionKind

if TYPE_CHECKING:
    from loopctl.report.summary import RunSummary, TaskSummary

PLACEHOLDER: Final = '"…"'
"""Stands where the reader has to write an answer."""

_CAPS: Final = {"usd": "usd=2", "token": "tokens=400000", "loop": "loops=50", "wall": "wall_s=7200"}


@dataclass(frozen=True, slots=True)
class Commands:
    """How commands have to be written for the reader's shell.

    Attributes:
        program: ``loop``, or how to start it where ``loop`` is not on PATH.
        directory: The checkout, where the reader's shell stands elsewhere; empty otherwise.
        base_branch: The branch that is checked out; empty where HEAD is detached or unknown.
        manifest: Its path, where it is another than ``tasks/ACTIVE.toml``; empty otherwise.
    """

    program: tuple[str, ...] = ("loop",)
    directory: str = ""
    base_branch: str = ""
    manifest: str = ""

    def loop(self, *words: str) -> str:
        """Return a ``loop`` command."""
        where = ("-C", self.directory) if self.directory else ()
        return shlex.join((*self.program, *where, *words))

    def drive(self, *words: str) -> str:
        """Return a ``loop`` command that reads the manifest."""
        return self.loop(*words, *(("--manifest", self.manifest) if self.manifest else ()))

    def answer(self, decision: Decision) -> str:
        """Return the command that answers ``decision``, with its best guess where it has one."""
        if decision.kind is DecisionKind.APPROVAL:
            return self.drive("answer", decision.id, "--approve")
        if decision.kind is DecisionKind.BUDGET:
            cap = next(
                (cap for axis, cap in _CAPS.items() if axis in decision.reason), _CAPS["usd"]
            )
            return self.drive("answer", decision.id, "--budget", cap)
        guess = decision.best_guess.strip()
        if guess and guess.isprintable() and not guess.startswith("-"):
            return self.drive("answer", decision.id, guess)
        return f"{self.drive('answer', decision.id)} {PLACEHOLDER}"

    def review(self, summary: "RunSummary") -> str:
        """Return the ``git log`` that shows what landed."""
        base = self.base_branch or summary.base[:12] or "HEAD"
        where = ("-C", self.directory) if self.directory else ()
        return shlex.join(("git", *where, "log", "-p", f"{base}..{summary.branch}"))

    def recover(self, task: "TaskSummary") -> str:
        """Return the command that brings the kept tree of ``task`` back as a branch."""
        return self.loop("recover", task.ref, "--branch", f"recovered/{task.id}")
