"""Which tests a run's output names as failed, as a signature that line numbers do not change.

Reads what pytest, unittest, TAP and node's own reporter, jest, cargo and go print. Pure.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_TESTS: Final = (
    re.compile(r"^(?:FAILED|ERROR) (?P<id>\S+\.py(?:::.*?)?)(?: - .*)?$"),
    re.compile(r"^(?:FAIL|ERROR): (?P<id>\w+ \([\w.<>]+\))"),
    re.compile(r"^\s*not ok \d+ - (?P<id>(?!.*# (?:TODO|SKIP)).+?)\s*$"),
    re.compile(r"^\s*\u2716 (?P<id>.+?)(?: \([\d.]+ms\))?$"),
    re.compile(r"^\s*\u25cf (?P<id>.+ \u203a .+)$"),
    re.compile(r"^test (?P<id>\S+) \.\.\. FAILED$"),
    re.compile(r"^\s*--- FAIL: (?P<id>\S+)"),
)
_ERROR: Final = re.compile(
    r"^(?:E\s+)?(?:\s*error: ['\"])?(?P<text>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b.*)$"
    r"|^thread '.*' panicked at (?P<panic>.*)$"
    r"|^E\s+(?P<assert>assert .*)$"
)
_VARYING: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x"),
    (re.compile(r"\bline \d+"), "line"),
    (re.compile(r":\d+(:\d+)?\b"), ":"),
    (re.compile(r"(/[\w.@+-]+){2,}/"), "/"),
    (re.compile(r"\b\d+(\.\d+)?\s*m?s\b"), "time"),
)


@dataclass(frozen=True, slots=True)
class Failures:
    """What one run's output says is red.

    Attributes:
        tests: Ids, sorted, each once; empty where the output names none.
        errors: Class and message, without line numbers, addresses, times and folders; sorted.
    """

    tests: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """Equal for the same failure at another line; empty where nothing was read."""
        if not self.tests and not self.errors:
            return ""
        text = "\n".join((*self.tests, "", *self.errors))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read_failures(output: str) -> Failures:
    """Return what ``output`` names; text of no known runner gives none."""
    tests: set[str] = set()
    errors: set[str] = set()
    for line in _COLOUR.sub("", output).splitlines():
        for pattern in _TESTS:
            if found := pattern.match(line):
                tests.add(found["id"])
                break
        else:
            if found := _ERROR.match(line):
                errors.add(_stable(found["text"] or found["panic"] or found["assert"]))
    return Failures(tuple(sorted(tests)), tuple(sorted(errors)))


def _stable(text: str) -> str:
    for pattern, put in _VARYING:
        text = pattern.sub(put, text)
    return text.strip()
