"""From a red verify command to one task that makes it green: pure.

What a worker is shown begins with the smallest failing piece: one test and its error.
"""

import re
from collections.abc import Sequence
from typing import Final

from loopctl.domain import Goal, Manifest, Mode, Task, TaskId
from loopctl.sources.failures import read_failures
from loopctl.verdict import Check, CheckResult, GateResult, Verdict

PROTECT: Final = (
    *("tests/**", "test/**", "spec/**", "**/tests/**", "**/__tests__/**", "**/testdata/**"),
    *("**/test_*.py", "**/*_test.py", "**/tests.py", "**/*_test.go", "**/*.test.*", "**/*.spec.*"),
    *("**/Makefile", "**/makefile", "**/GNUmakefile", "**/*.mk"),
    *(".github/**", ".ci/**", ".gitlab-ci.yml", ".circleci/**", ".travis.yml", "Jenkinsfile"),
    *("azure-pipelines.yml", ".buildkite/**", ".drone.yml", ".woodpecker/**"),
)
"""Globs that are protected here besides those of the settings: tests, and what runs them."""

_SHOWN: Final = 40
_TAIL_CHARS: Final = 3000


def manifest(
    name: str, red: CheckResult, *, command: str | None = None, mode: Mode = Mode.RELAY
) -> Manifest:
    """Return the goal and the one task that make ``red.command`` exit 0.

    Args:
        name: The id of the task.
        red: How the command ends now.
        command: What a worker of commands runs; ``None`` for every other worker.
        mode: Of the task.
    """
    text = f"Make `{red.command}` exit 0"
    task = Task(
        id=TaskId(name),
        title=_one_line(text),
        mode=mode,
        worker="command" if command is not None else None,
        command=command,
        verify_cmd=red.command,
        prompt=_prompt(red),
    )
    return Manifest(Goal(text), (task,))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN * 3 else f"{line[: _SHOWN * 3]}…"


def _prompt(red: CheckResult) -> str:
    return "\n".join(
        (
            f"The command `{red.command}` is red ({how_red(red)}). Mend the code until it exits 0.",
            (
                "Tests, their configuration and CI stay as they are: a result that changes, skips or "
                "removes them is refused. Take one failing piece at a time: run it, mend it, run it "
                "again, and run the whole command at the end."
            ),
            *focus(red),
            "The output ends:",
            red.tail[-_TAIL_CHARS:],
        )
    )


def how_red(red: CheckResult) -> str:
    """Return the exit code, or why an exit 0 is no pass."""
    return f"exit {red.exit}" if red.exit else red.reason


def focus(red: CheckResult) -> tuple[str, ...]:
    """Return lines that name one failing piece, its error, and what else is red."""
    read = read_failures(red.tail)
    tests: Sequence[str] = red.findings or read.tests
    lines = [f"Begin with: {tests[0]}"] if tests else []
    if error := (_error_of(tests[0], red.tail) if tests else "") or "; ".join(read.errors[:1]):
        lines.append(f"It says: {error}")
    rest = tests[1 : _SHOWN + 1]
    if rest:
        more = len(tests) - 1 - len(rest)
        lines += [
            "Also red:",
            *(f"  {test}" for test in rest),
            *([f"  … and {more} more"] * bool(more)),
        ]
    return tuple(lines)


def _error_of(test: str, output: str) -> str:
    """Return what pytest's summary says of a test; empty where it says nothing."""
    found = re.search(rf"^(?:FAILED|ERROR) {re.escape(test)} - (.+)$", output, re.MULTILINE)
    return found[1] if found else ""


def observed(result: GateResult, description: str) -> str:
    """Return what a worker is shown of a gate that failed, the smallest failing piece first."""
    failed = result.checks[-1]
    if failed.check is not Check.VERIFY or failed.verdict is Verdict.PASS:
        return description
    return "\n".join((*focus(failed), description))


def signature(output: str) -> str:
    """Return what is equal for the same failures; empty where the output names none."""
    return read_failures(output).signature
