"""What a check leaves for its readers: a bounded printable tail, and the next observation."""

import re
from typing import Final

from loopctl.verdict import Blame, Check, CheckResult, GateResult, Verdict

TAIL_BYTES: Final = 4096

_ESCAPES: Final = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\[[0-?]*[ -/]*[@-~]?|[ -/]*[0-~]?)"
)
_HARMFUL: Final = (
    *("\x00\x08", "\x0b\x1f", "\x7f\x9f", "\u061c\u061c", "\u200b\u200f", "\u2028\u202e"),
    *("\u2060\u206f", "\ufeff\ufeff", "\ufff9\ufffb", "\ud800\udfff"),
)
_READ: Final = frozenset({Check.CRITIQUE, Check.ALIGNMENT})
"""Checks that nothing is run for: whoever wrote the text is who can mend it."""
_SPELT_OUT: Final = {
    code: f"<U+{code:04X}>" for first, last in _HARMFUL for code in range(ord(first), ord(last) + 1)
}
_ROOM: Final = 8

BLAME_WORDS: Final = {
    Blame.INTRODUCED: "this change introduced it: the base does not have it",
    Blame.PRE_EXISTING: "the base has it too; it has to go all the same",
    Blame.FLAKY: "it is flaky: run again on the same files it ended otherwise",
    Blame.ENVIRONMENT: "the environment is at fault, not the change",
}


def shown(text: str) -> str:
    """Return text of unknown origin on one line, harmless to a terminal."""
    return printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def printable(text: str) -> str:
    """Return ``text`` without terminal sequences, other invisible characters spelt out."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    # By a table: an output of many megabytes may be made of nothing else.
    return plain.translate(_SPELT_OUT)


def tail(output: bytes, limit: int = TAIL_BYTES) -> str:
    """Return the end of an output: at most about ``limit`` bytes, whole lines, printable.

    Bytes that are no UTF-8 are replaced. What is left out is said in the first line.
    """
    # Terminal sequences and other letters that do not count are short beside this.
    cut = max(0, len(output) - _ROOM * limit)
    text = printable(output[cut:].decode("utf-8", "replace")).strip("\n")
    kept = text.encode("utf-8")
    if not cut and len(kept) <= limit:
        return text
    end = kept[-limit:]
    _, newline, lines = end.decode("utf-8", "ignore").partition("\n")
    shown_end = lines if newline and lines else end.decode("utf-8", "ignore")
    return f"[... {cut + len(kept) - len(end)} bytes left out]\n{shown_end}"


def observation(result: GateResult) -> str:
    """Return what the worker is shown of a gate that did not pass; empty where it passed."""
    failed = result.checks[-1]
    if failed.verdict is Verdict.PASS:
        return ""
    lines = [f"The gate stopped at {failed.check.value}: {failed.reason or failed.verdict.value}"]
    if failed.command:
        lines.append(f"command: {failed.command}")
    if failed.exit is not None:
        lines.append(f"exit: {failed.exit}")
    if failed.blame is not None and failed.check not in _READ:
        lines.append(f"blame: {failed.blame.value} ({_blame_words(failed)})")
    lines.extend(_count_lines(failed))
    if failed.tail:
        lines.append(f"output:\n{failed.tail}")
    return "\n".join(lines)


def _blame_words(result: CheckResult) -> str:
    if result.check is Check.APPLY and result.blame is Blame.PRE_EXISTING:
        return "the head has it, not this change: the head has moved since this change was begun"
    return BLAME_WORDS[result.blame] if result.blame else ""


def _count_lines(result: CheckResult) -> list[str]:
    lines = []
    for name, counts in (("tests", result.counts), ("tests at the base", result.base_counts)):
        if counts is not None:
            lines.append(
                f"{name}: {counts.collected} collected, {counts.passed} passed, "
                f"{counts.failed} failed, {counts.skipped} skipped, {counts.xfailed} xfailed"
            )
    if result.findings:
        heading = "best guesses at the answers" if result.check is Check.ALIGNMENT else "red"
        lines.append(f"{heading}:\n" + "\n".join(f"  {finding}" for finding in result.findings))
    return lines
