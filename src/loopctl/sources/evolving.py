"""From what history left undone to tasks, each with a command that is red until it is done: pure."""

import shlex
from dataclasses import dataclass
from typing import Final

from loopctl.domain import Task, TaskId
from loopctl.sources.mining import Finding, Trace

_WORDS: Final = {
    Trace.MARKER: ("Do what a marker asks for", "Do what it asks for and remove the marker."),
    Trace.SKIPPED: (
        "Let a test run again",
        (
            "Remove the skip or the expected failure and mend the code, so that the test passes; "
            "the test itself stays."
        ),
    ),
    Trace.SUPPRESSED: (
        "Mend what a suppression hides",
        "Mend the code, so that the suppression can go, and remove it.",
    ),
    Trace.REVERTED: (
        "Bring back what was reverted",
        "Find out why it was reverted, and bring the change back without that fault.",
    ),
}
_SHOWN: Final = 80
_END: Final = "\n}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A finding that became no task, and why."""

    finding: Finding
    why: str


def goal_of(commits: int) -> str:
    """Return the goal of tasks from so many commits."""
    return f"Finish what the last {commits} commits left undone"


def commits_of(goal: str) -> int:
    """Return of how many commits a goal of :func:`goal_of` is; 0 for another goal."""
    count = "".join(letter for letter in goal if letter.isdecimal())
    return int(count) if count and goal == goal_of(int(count)) else 0


def check_of(finding: Finding, tests: str) -> str:
    """Return a command that is red while the finding is there; empty where none can tell.

    Args:
        finding: What history left.
        tests: The command that runs the tests, which is to stay green; empty for none.
    """
    if not finding.path:
        return ""
    path, text = f"./{shlex.quote(finding.path)}", shlex.quote(finding.text)
    # The line itself, wherever it is indented to; a text may stand in longer lines as well.
    stands = f"sed 's/^[[:space:]]*//; s/[[:space:]]*$//' {path} | grep -qxF -e {text}"
    fewer = f'test "$(grep -cF -e {text} -- {path})" -lt {finding.holders}'
    if not finding.holders:
        return f"{stands}{_also(tests)}"
    return f"test -e {path} && ! {stands} && {fewer}{_also(tests)}"


def keeps_green(check: str, tests: str) -> bool:
    """Return whether a command of :func:`check_of` was made with these tests; empty for none."""
    return check.endswith(_also(tests)) if tests else not check.endswith(_END)


def _also(tests: str) -> str:
    return f" && {{ {tests}{_END}" if tests else ""


def task_of(finding: Finding, name: str, check: str, command: str | None = None) -> Task:
    """Return the task of a finding.

    Args:
        finding: What history left.
        name: The id of the task.
        check: Its verify command.
        command: What a worker of commands runs; ``None`` for every other worker.
    """
    title, ask = _WORDS[finding.trace]
    touches_tests = finding.trace in {Trace.SKIPPED, Trace.REVERTED}
    return Task(
        id=TaskId(name),
        title=f"{title}: {finding.subject or finding.path}",
        area=(finding.trace.value,),
        worker="command" if command is not None else None,
        command=command,
        verify_cmd=check,
        prompt=f"{_story(finding)}{ask} All tests stay green.",
        may_edit=(finding.path,) if touches_tests else (),
    )


def _story(finding: Finding) -> str:
    commit = finding.commit[:10]
    text = finding.text if len(finding.text) <= _SHOWN else f"{finding.text[:_SHOWN]}…"
    if not finding.subject:
        return f"Commit {commit} added this line to {finding.path}:\n\n    {text}\n\n"
    ends = "is not there until it is back" if not finding.holders else "goes with it"
    return (
        f"Commit {commit} reverted this, and nothing has followed:\n\n    {finding.subject}\n\n"
        f"A line of {finding.path} stands for it, which {ends}:\n\n    {text}\n\n"
    )
