"""Asks at the terminal what is unclear about a goal, and shows what the goal became."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopctl.cli.asking import GUESS, described, meant
from loopctl.cli.output import say, write
from loopctl.domain import Criterion, DecisionDraft
from loopctl.report.escape import one_line
from loopctl.report.wording import counted

if TYPE_CHECKING:
    from loopctl.aim import Aim
    from loopctl.sources.kickoff import Kickoff


def aim_of(text: str, *, attended: bool) -> "Aim":
    """Return the goal with who is asked about it, and where it is shown what it became."""
    from loopctl.aim import Aim

    return Aim(text, ask_in_one_round if attended else None, show)


def ask_in_one_round(drafts: Sequence[DecisionDraft]) -> tuple[str, ...]:
    """Return the answers, empty where a question was skipped; the end of input skips the rest."""
    stream = sys.stderr
    write(stream, f"{counted(len(drafts), 'question')} before the work begins. ")
    write(stream, f"An empty line skips one, {GUESS} takes what would be assumed.\n")
    given: list[str] = []
    for number, draft in enumerate(drafts, 1):
        write(stream, f"\n({number}/{len(drafts)}) {described('', draft)}\n> ")
        line = sys.stdin.readline()
        if not line:
            write(stream, "\n")
            break
        given.append(meant(line.strip(), draft))
    return (*given, *[""] * (len(drafts) - len(given)))


def show(kickoff: "Kickoff") -> None:
    """Say on stderr which criteria and tasks stand in the manifest now, and on what they rest."""
    addition = kickoff.addition
    done_when = addition.goal.done_when if addition.goal is not None else ()
    say(f"loop: the goal became {counted(len(addition.tasks), 'task')}, written to the manifest")
    for criterion in done_when:
        say(f"  done when: {_words(criterion)}")
    for task in addition.tasks:
        after = f" (after {', '.join(task.deps)})" if task.deps else ""
        say(f"  {task.id} {one_line(task.title)}{after}: {one_line(task.verify_cmd or '')}")
    for one in kickoff.suppositions:
        say(f"  assumed: {one_line(one.draft.question)} {one_line(one.draft.best_guess)}")


def _words(criterion: Criterion) -> str:
    return one_line(criterion.check or criterion.criterion or "")
