# ruff: noqa: INP001 - no package: pytest imports it by name from a PYTHONPATH of this folder
"""A pytest plugin that leaves a machine-read account of what pytest itself counted.

It runs in the project's own interpreter, so it needs nothing but the standard library and any
pytest from 6 on. One JSON line is appended when pytest begins and one when it ends, by each
process that runs a session; the workers of a distributed run leave that to their controller.
Its variables are taken out of the environment while the session runs, so that a pytest which a
test starts reports nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any

import loopctl_originals
import pytest

_NAMES = ("LOOP_TEST_REPORT", "LOOP_TEST_TOKEN", "PYTEST_ADDOPTS")
_HELD = {name: os.environ.pop(name) for name in _NAMES if name in os.environ}
_OWN_OPTION = "-p loopctl_pytest_report --continue-on-collection-errors"

_rest = _HELD.get("PYTEST_ADDOPTS", "").replace(_OWN_OPTION, "", 1).strip()
if _rest:
    os.environ["PYTEST_ADDOPTS"] = _rest


class _Account:
    """What one session has done so far."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, session: Any) -> None:
        self.session = session
        self.outcomes: dict[str, str] = {}
        self.broken: set[str] = set()
        self.unread: set[str] = set()
        self.causes: dict[str, str] = {}
        self.replaced: set[str] = set()

    def write(self, event: str, **fields: Any) -> None:
        path = _HELD.get("LOOP_TEST_REPORT")
        if not path:
            return
        fields.update(event=event, token=_HELD.get("LOOP_TEST_TOKEN", ""), pid=os.getpid())
        line = json.dumps(fields, sort_keys=True) + "\n"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode("ascii"))
        finally:
            os.close(handle)


_account = _Account()
loopctl_originals.hold("pytest", "_pytest", "pluggy", __name__)
_RANK = {"passed": 0, "xfailed": 1, "skipped": 2, "failed": 3}


_CAUSE_CHARS = 200
_MOST_CAUSES = 200
_REPLACED = "loopctl_replaced"


def _cause(report: Any) -> str:
    """Return the error of a failed report in one line, as far as pytest tells it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(getattr(crash, "message", "") or report.longrepr or "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # What could not be collected ends with its error, marked as in the report.
    line = (lines[0] if crash is not None else lines[-1].removeprefix("E ")) if lines else ""
    return line.strip()[:_CAUSE_CHARS]


def _is_worker(config: Any) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: Any) -> None:
    """Begin the account of a session."""
    if _is_worker(session.config):
        return
    _account.begin(session)  # one process may run several sessions in turn
    _account.write("began", pytest=pytest.__version__)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report: Any) -> None:
    """Note a file that could not be collected, or that skips itself as a whole."""
    if report.failed:
        _account.broken.add(report.nodeid)
        _account.causes[report.nodeid] = _cause(report)
    elif report.skipped:
        _account.unread.add(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: Any) -> None:
    """Note how a phase of a test ended; the worst of its phases counts."""
    outcome = report.outcome
    if hasattr(report, "wasxfail") and outcome == "skipped":
        outcome = "xfailed"
    if outcome == "passed" and report.when != "call":
        return
    if outcome not in _RANK:
        return
    if outcome == "failed":
        _account.causes.setdefault(report.nodeid, _cause(report))
    known = _account.outcomes.get(report.nodeid, "passed")
    _account.outcomes[report.nodeid] = max(known, outcome, key=lambda name: _RANK[name])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: Any) -> None:
    """Have the controller of a distributed run know what was replaced in this worker."""
    if _is_worker(session.config):
        session.config.workeroutput[_REPLACED] = loopctl_originals.replaced()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Have the workers load this plugin too; their controller itself runs no test."""
    os.environ.update(_HELD)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a worker has told."""
    _account.replaced.update(getattr(node, "workeroutput", {}).get(_REPLACED, ()))


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: Any) -> None:
    """Write the account, with the status that pytest is about to exit with.

    A file that was skipped or could not be read as a whole counts as one test collected.
    """
    session = _account.session
    if _is_worker(config) or session is None:
        return
    ends = list(_account.outcomes.values())
    failed = {name for name, end in _account.outcomes.items() if end == "failed"}
    whole = len(_account.unread) + len(_account.broken)
    _account.write(
        "ended",
        exit=int(session.exitstatus),
        collected=int(getattr(session, "testscollected", 0)) + whole,
        passed=ends.count("passed"),
        skipped=ends.count("skipped") + len(_account.unread),
        xfailed=ends.count("xfailed"),
        failed=sorted(failed | _account.broken),
        causes=sorted(_account.causes.items())[:_MOST_CAUSES],
        replaced=sorted(_account.replaced | set(loopctl_originals.replaced())),
    )
    _account.begin(None)
    os.environ.update(_HELD)
