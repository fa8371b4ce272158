"""Names that must be unique and that git or a file system must accept."""

import hashlib
import re
import secrets
import urllib.parse
from datetime import datetime
from typing import Final

MAIN: Final = "main"
"""The candidate of a task without options."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]|\.(?=\.|$|lock)|^[.-]")
_TRIAL_CHARS: Final = 24
_PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]")


def run_id(moment: datetime) -> str:
    """Return a new run's id: the moment it began, and four random digits."""
    return f"{moment:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"


def part(name: str) -> str:
    """Return ``name`` as one component of a ref or a folder; different names stay different."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def unpart(text: str) -> str:
    """Return the name that :func:`part` has written so."""
    return urllib.parse.unquote(text)


def sandbox(run: str, task: str, candidate: str) -> str:
    """Return the name of a candidate's worktree: readable, short, and no other one's."""
    digest = hashlib.sha256(f"{len(task)}:{task}{candidate}".encode()).hexdigest()[:8]
    words = "-".join(_PLAIN.sub("_", word)[:24] for word in (task, candidate))
    return f"{run}-{words}-{digest}"


def trial(candidate: str, step: int, number: int, option: str) -> str:
    """Return the name of a candidate that tries one option of a fork; no other trial's.

    Args:
        candidate: Whose step has raised the fork.
        step: The iteration of that step.
        number: Of the option, from 1.
        option: Its name, of which no more than a few letters are taken.
    """
    word = _PLAIN.sub("-", option)[:_TRIAL_CHARS].strip("-") or "option"
    return f"{candidate}.{step}.{number}-{word}"


def rescue_ref(run: str, task: str, candidate: str) -> str:
    """Return the ref under which files are saved whose step was cut short; no candidate's own."""
    return f"{ref(run, task, candidate)}+interrupted"


def ref(run: str, task: str, candidate: str) -> str:
    """Return the ref under which a candidate's tree is kept."""
    return f"refs/loop/{run}/{part(task)}/{part(candidate)}"
