"""Says what ``--test-debug-fix`` found: the command, and how it ends before any work."""

from typing import TYPE_CHECKING

from loopctl.cli.output import emit, emit_document, say
from loopctl.report.escape import one_line

if TYPE_CHECKING:
    from loopctl.sources.detect import Found
    from loopctl.verdict import CheckResult


def tell(found: "Found", result: "CheckResult") -> None:
    """Say on stderr which command decides and why, and what is red."""
    from loopctl.sources.fixing import focus, how_red
    from loopctl.verdict import Verdict

    is_green = result.verdict is Verdict.PASS
    how = "green" if is_green else f"red ({one_line(how_red(result))})"
    say(f"loop: `{one_line(found.command)}` ({one_line(found.because)}) is {how}")
    for line in () if is_green else focus(result):
        say(f"  {one_line(line)}")


def print_green(*, as_json: bool) -> None:
    """Print the result where nothing was to be done."""
    if as_json:
        emit_document({"schema": 1, "status": "green", "run_id": None, "tasks": []})
    else:
        emit("Already green: nothing was changed.\n")
