"""The harness's side of its pytest plugin, and of its like for unittest: loading, and reading.

The plugin is named by ``PYTEST_ADDOPTS`` and found by a ``PYTHONPATH`` of its own folder, which
has Python import the one for unittest by itself. Where the command sets one of the two variables,
ours is put in front of what it sets.
"""

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loopctl.verdict import TestCounts

PLUGIN: Final = "loopctl_pytest_report"
FOLDER: Final = Path(__file__).parent / "plugins"
_OPTION: Final = f"-p {PLUGIN}"
_ADDOPTS: Final = f"{_OPTION} --continue-on-collection-errors"
"""One file that cannot be imported must not hide how all the others stand."""

_UNLOADED: Final = re.compile(
    rf"Error importing plugin \"?{PLUGIN}|No module named '{PLUGIN}'".encode()
)
_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Account:
    """What all the sessions of pytest and unittest of one command said of themselves.

    Attributes:
        began: Sessions that a plugin saw begin.
        exits: How each session that ended was about to exit.
        counts: Their sums; ``None`` where none ended.
        failed: Ids of tests, sorted; a file that could not be collected counts as one.
        causes: The error of each of them in one line, as far as it is known.
        replaced: Parts of pytest, unittest and the builtins that the code put others in the place
            of, sorted.
    """

    began: int = 0
    exits: tuple[int, ...] = ()
    counts: TestCounts | None = None
    failed: tuple[str, ...] = ()
    causes: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """At least one session was seen, and all of them came to their end."""
        return 0 < self.began == len(self.exits)


@dataclass(slots=True)
class Report:
    """One run's report file, outside the checkout.

    Attributes:
        folder: Where it is; the run can write there.
        token: Proves that a line is a plugin's.
    """

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def path(self) -> Path:
        """The file that the plugins append to."""
        return self.folder / f"tests-{self.token[:8]}.jsonl"

    def env(self) -> Mapping[str, str]:
        """Return what makes every pytest and unittest below load its plugin."""
        return {
            "PYTEST_ADDOPTS": _ADDOPTS,
            "PYTHONPATH": str(FOLDER),
            "LOOP_TEST_REPORT": str(self.path),
            "LOOP_TEST_TOKEN": self.token,
        }

    def take(self) -> Account:
        """Return what the plugins have written, and remove the file."""
        lines = _read(self.path).splitlines()
        with contextlib.suppress(OSError):
            self.path.unlink()
        records = [record for line in lines if (record := self._record(line)) is not None]
        return _sum(records)

    def _record(self, line: bytes) -> dict[str, Any] | None:
        try:
            record = json.loads(line)
        except ValueError:
            return None
        if not isinstance(record, dict) or record.get("token") != self.token:
            return None
        return record


def _read(path: Path) -> bytes:
    """Return what a file of the run holds; it may have put anything in its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES)
    finally:
        os.close(descriptor)


def loading(command: str) -> str:
    """Return ``command`` so that what it sets itself does not keep the plugin out."""
    command = re.sub(r"(?<![\w$])PYTHONPATH=", f'PYTHONPATH="{_quoted(str(FOLDER))}":', command)
    return re.sub(r"(?<![\w$])PYTEST_ADDOPTS=", f'PYTEST_ADDOPTS="{_ADDOPTS} "', command)


def is_unloaded(output: bytes) -> bool:
    """Return whether a pytest said that it could not import the plugin."""
    return _UNLOADED.search(output) is not None


def _quoted(text: str) -> str:
    return re.sub(r'(["\\$`])', r"\\\1", text)


def _sum(records: list[dict[str, Any]]) -> Account:
    began = sum(1 for record in records if record.get("event") == "began")
    ended = [record for record in records if record.get("event") == "ended"]
    if not ended:
        return Account(began=began)
    try:
        failed = [str(name) for record in ended for name in record["failed"]]
        counts = TestCounts(
            collected=sum(int(record["collected"]) for record in ended),
            passed=sum(int(record["passed"]) for record in ended),
            failed=len(failed),
            skipped=sum(int(record["skipped"]) for record in ended),
            xfailed=sum(int(record["xfailed"]) for record in ended),
        )
        exits = tuple(int(record["exit"]) for record in ended)
        pairs = [pair for record in ended for pair in record.get("causes", ())]
        causes = {str(name): str(cause) for name, cause in pairs}
        replaced = {str(name) for record in ended for name in record.get("replaced", ())}
    except (KeyError, TypeError, ValueError):
        return Account(began=began)
    names = tuple(sorted(failed))
    return Account(began, exits, counts, names, causes, tuple(sorted(replaced)))
