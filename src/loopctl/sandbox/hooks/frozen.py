"""Holds the files that a hook's command names to what they were when the run began."""

import hashlib
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from loopctl.toolports import PinStore

MISSING: Final = "missing"
UNREADABLE: Final = "unreadable"
PROJECT_DIR: Final = "CLAUDE_PROJECT_DIR"


def files_of(command: str, checkout: Path, home: str) -> tuple[Path, ...]:
    """Return the files that a command names, in order; those that are missing as well.

    A word is taken for a file where it has a slash or is the name of one in the checkout, but for
    what output is sent to. What a command makes up while it runs is not seen.

    Args:
        command: For ``sh``.
        checkout: Where it runs.
        home: The user's; empty where there is none.
    """
    for name, value in ((PROJECT_DIR, str(checkout)), *((("HOME", home),) if home else ())):
        command = command.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return tuple(dict.fromkeys(_files(command, checkout, home)))


def _files(command: str, checkout: Path, home: str) -> Iterator[Path]:
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        words = list(reader)
    except ValueError:
        return
    for before, word in zip(["", *words], words, strict=False):
        if ">" in before:  # a log that the hook writes
            continue
        text = f"{home}{word[1:]}" if home and word.startswith("~/") else word
        for part in (text, text.partition("=")[2]):
            path = checkout / part
            if part and ("/" in part or path.is_file()) and not path.is_dir():
                yield path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, links followed, or a word for why it has none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return UNREADABLE
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return MISSING
    except (OSError, ValueError):
        return UNREADABLE


class Frozen:
    """The files of one run's hooks.

    Args:
        scope: Of the run in the store.
        pins: Keeps what they were, so that a resume does not take up what has changed meanwhile.
    """

    def __init__(self, scope: str, pins: PinStore) -> None:
        self._scope = scope
        self._pins = pins
        self._known: dict[str, str] = dict(pins.pinned(scope))

    def hold(self, files: tuple[Path, ...]) -> None:
        """Take files up as they are now, but for those that the run has seen before."""
        new: Mapping[str, str] = {
            str(path): digest(path) for path in files if str(path) not in self._known
        }
        if new:
            self._pins.pin(self._scope, new)
            self._known.update(new)

    def changed(self, files: tuple[Path, ...]) -> str:
        """Return the first of the files that is not what it was; empty where all are."""
        return next((str(path) for path in files if digest(path) != self._known[str(path)]), "")
