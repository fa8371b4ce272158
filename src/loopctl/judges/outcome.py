"""How a check's command ended: by its own word, or because something kept it from its work."""

import re
import signal
from dataclasses import replace
from enum import Enum
from typing import Final

from loopctl.domain import ExecResult
from loopctl.judges.evidence import tail
from loopctl.verdict import Blame, Check, CheckResult, Verdict


class End(Enum):
    """How a command ended.

    ``MISSING``, ``STOPPED`` and ``STARVED`` are the environment's doing, as far as the command
    itself can tell; the base may show otherwise.
    """

    GREEN = "green"
    RED = "red"
    MISSING = "missing"
    STOPPED = "stopped"
    STARVED = "starved"


_CRASHES: Final = frozenset({signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS})
_OWN_FAULT: Final = frozenset({*_CRASHES, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS})
_ENDED_BY_OTHERS: Final = frozenset(
    {
        *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM),
        *(signal.SIGXCPU, signal.SIGXFSZ),
    }
)
_STARVED: Final = (
    (
        "no space or quota left on the disk",
        re.compile(
            rb"No space left on device|Disk quota exceeded|\bENOSPC\b|database or disk is full"
        ),
    ),
    (
        "no network",
        re.compile(
            rb"Temporary failure in name resolution|Name or service not known"
            rb"|Could not resolve (?:host|proxy)|Network is unreachable|\bENETUNREACH\b"
            rb"|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|nodename nor servname provided"
            rb"|No route to host|dial tcp: lookup "
        ),
    ),
)
_NO_MODULE: Final = re.compile(rb"No module named '?([A-Za-z_][\w]*)'?\s*$", re.MULTILINE)


def classify(command: str, ended: ExecResult, timeout_s: float) -> tuple[End, str]:
    """Return how ``command`` ended and, where the environment is at fault, in words how."""
    if ended.timed_out:
        return End.STOPPED, f"it ran into the time limit of {timeout_s:g} s (gate.timeout_s)"
    if ended.excess:
        return End.STOPPED, f"it was ended, since {ended.excess}"
    if ended.returncode == 0:
        return End.GREEN, ""
    if name := _killer(ended.returncode):
        return End.STOPPED, f"it was ended by {name}"
    if ended.returncode in {126, 127}:
        how = "not found" if ended.returncode == 127 else "not executable"  # noqa: PLR2004
        return End.MISSING, f"the command is {how} (exit {ended.returncode}); install it"
    if name := _missing_module(command, ended):
        return End.MISSING, f"Python has no module {name}, which the command runs; install it"
    for what, pattern in _STARVED:
        if pattern.search(ended.stdout) or pattern.search(ended.stderr):
            return End.STARVED, f"{what}, its output says"
    return End.RED, ""


def _killer(returncode: int) -> str:
    """Return the signal by which somebody else ended the command; a crash is its own end."""
    if returncode < 0 and -returncode not in _OWN_FAULT:
        number = -returncode
    elif returncode - 128 in _ENDED_BY_OTHERS:
        number = returncode - 128
    else:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _missing_module(command: str, ended: ExecResult) -> str:
    """Return the module that ``python -m`` was told to run and does not have."""
    for found in _NO_MODULE.findall(ended.stdout[-4096:] + b"\n" + ended.stderr[-4096:]):
        name = found.decode("ascii", "replace")
        if re.search(rf"-m\s*{re.escape(name)}\b", command):
            return str(name)
    return ""


def recorded(check: Check, command: str, ended: ExecResult, tree: str) -> CheckResult:
    """Return what was run, where, and how it went: ``pass`` on exit 0, else a failure."""
    is_green = ended.returncode == 0 and not (ended.timed_out or ended.excess)
    return CheckResult(
        check=check,
        verdict=Verdict.PASS if is_green else Verdict.FAIL,
        blame=None if is_green else Blame.PRE_EXISTING,
        command=command,
        exit=ended.returncode,
        ms=ended.duration_ms,
        tree=tree,
        tail=tail(ended.stdout + ended.stderr if ended.stderr else ended.stdout),
    )


def passed(result: CheckResult, reason: str, *, vacuous: bool = False) -> CheckResult:
    """Return the evidence as a pass."""
    return replace(
        result, verdict=Verdict.PASS, blame=None, reason=reason, vacuous=vacuous, findings=()
    )


def failed(result: CheckResult, blame: Blame, reason: str) -> CheckResult:
    """Return the evidence as a failure."""
    return replace(result, verdict=Verdict.FAIL, blame=blame, reason=reason)


def unknown(result: CheckResult, reason: str) -> CheckResult:
    """Return the evidence of a check that had no chance: the environment is at fault."""
    return replace(result, verdict=Verdict.UNKNOWN, blame=Blame.ENVIRONMENT, reason=reason)
