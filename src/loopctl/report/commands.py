"""The commands that a reader can paste to go on, quoted for a POSIX shell.

Each is written so that it can be read in one way only, whatever tasks and branches are called.
"""

import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loopctl.domain import Decision, DecisionKind, asks_consent
from loopctl.report.wording import decision_word, takeable_guess

if TYPE_CHECKING:
    from loopctl.report.summary import RunSummary, TaskSummary

PLACEHOLDER: Final = '"…"'
"""Stands where the reader has to write an answer."""

_SUGGESTED: Final = {
    "loop": "loops=50",
    "token": "tokens=400000",
    "wall": "wall_s=7200",
}
_NOT_IN_A_BRANCH: Final = re.compile(r"\.(?=\.|$|lock$)")


@dataclass(frozen=True, slots=True)
class Commands:
    """How commands have to be written for the reader's shell.

    Attributes:
        program: ``loop``, or how to start it where ``loop`` is not on PATH.
        directory: The checkout, where the reader's shell stands elsewhere; empty otherwise.
        base_branch: The branch that is checked out; empty where HEAD is detached or unknown.
        manifest: Its path, where it is another than ``tasks/ACTIVE.toml``; empty otherwise.
        names: The names of all commands; a task of such a name is written behind ``--``.
        ids: Returns the ids of the manifest's tasks; a decision of such an id is written
            ``TASK:N``.
        drawn: Returns the words that draw the tasks of a run anew, where it drew them itself; the
            manifest does not know their ids. Empty for every other run.
    """

    program: tuple[str, ...] = ("loop",)
    directory: str = ""
    base_branch: str = ""
    manifest: str = ""
    names: frozenset[str] = frozenset()
    ids: Callable[[], Collection[str]] = frozenset
    drawn: Callable[[str], tuple[str, ...]] = lambda _run: ()

    def loop(self, *words: str) -> str:
        """Return a ``loop`` command."""
        where = ("-C", self.directory) if self.directory else ()
        return shlex.join((*self.program, *where, *words))

    def drive(self, *words: str, last: str | None = None) -> str:
        """Return a ``loop`` command that reads the manifest.

        Args:
            words: The command, its arguments and its options.
            last: An argument that must not be taken for an option or a command.
        """
        manifest = ("--manifest", self.manifest) if self.manifest else ()
        return self.loop(*words, *manifest, *(() if last is None else ("--", last)))

    def task(self, task: str) -> str:
        """Return the command that runs ``task``."""
        return self.drive("run", last=task) if task in self.names else self.drive(task)

    def answer(self, decision: Decision) -> str:
        """Return the command that answers ``decision``, with its best guess where it has one."""
        words = ("answer", decision_word(decision, self.ids()))
        if asks_consent(decision):
            return self.drive(*words, "--approve")
        if decision.kind is DecisionKind.BUDGET:
            return self.drive(*words, "--budget", _cap(decision))
        guess = takeable_guess(decision)
        if not guess or not guess.isprintable():
            return f"{self.drive(*words)} {PLACEHOLDER}"
        return self.drive(*words, last=guess) if guess[0] == "-" else self.drive(*words, guess)

    def review(self, summary: "RunSummary") -> str:
        """Return the ``git log`` that shows what landed."""
        base = self.base_branch or summary.base[:12] or "HEAD"
        where = ("-C", self.directory) if self.directory else ()
        return shlex.join(("git", *where, "log", "-p", f"{base}..{summary.branch}"))

    def recover(self, task: "TaskSummary") -> str:
        """Return the command that brings the kept tree of ``task`` back as a branch."""
        branch = f"recovered/{_NOT_IN_A_BRANCH.sub('-', task.id)}"
        return self.loop("recover", task.ref, "--branch", branch)


def _cap(decision: Decision) -> str:
    """The new cap: as the decision proposes it, which decisions of older versions did not."""
    if decision.options:
        return decision.options[0]
    named = (cap for axis, cap in _SUGGESTED.items() if axis in decision.reason)
    return next(named, "usd=2")
