"""What a command writes, as far as its words tell: it may be what the next one runs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopctl.sandbox.floor.paths import Place
from loopctl.sandbox.floor.quoting import unescaped


@dataclass(frozen=True, slots=True)
class Feed:
    """The input of a command.

    Attributes:
        text: All of it; ``None`` where it is not known.
        is_listing: It names files of the worktree and nothing else.
    """

    text: str | None = None
    is_listing: bool = False


EMPTY: Final = Feed("")
UNKNOWN: Final = Feed()
_LISTS: Final = frozenset({"find", "fd", "fdfind", "ls", "grep", "egrep", "rg", "ag"})
_FILTERS: Final = frozenset(
    {"sort", "uniq", "head", "tail", "grep", "egrep", "fgrep", "tac", "shuf"}
)


def output(words: Sequence[str], feed: Feed, where: Callable[[str], Place]) -> Feed:
    """Return what a command writes, program first, when it is given ``feed``."""
    name, *rest = [*words, ""][: max(len(words), 1)]
    plain = [word for word in rest if not word.startswith("-")]
    if name == "echo":
        options = [word for word in rest[:2] if re.fullmatch(r"-[neE]+", word)]
        text = " ".join(rest[len(options) :])
        return Feed(unescaped(text) if any("e" in one for one in options) else text)
    if name == "printf" and rest:
        return Feed(_printed(rest[1:] if rest[0] == "--" else rest))
    if name in {"cat", "tee"} and not (plain if name == "cat" else []):
        return feed
    if name in _FILTERS and feed.is_listing:
        return Feed(is_listing=True)
    if name == "git" and rest[:1] in (["ls-files"], ["diff"], ["status"], ["grep"]):
        return Feed(is_listing=True)
    if name in _LISTS:
        # Which of the words are paths and not patterns does not matter: none may lead out.
        return Feed(is_listing=not any(where(word) is not Place.INSIDE for word in plain))
    return UNKNOWN


def _printed(words: Sequence[str]) -> str:
    """Return what ``printf`` writes, and its words on lines of their own where it is more."""
    form, values = unescaped(words[0]), list(words[1:])
    parts = re.split(r"(%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z%])", form)
    found: list[str] = []
    for part in parts:
        if part == "%%":
            found.append("%")
        elif part.startswith("%") and len(part) > 1:
            value = values.pop(0) if values else ""
            found.append(unescaped(value) if part.endswith("b") else value)
        else:
            found.append(part)
    return "".join(found) + "".join(f"\n{value}" for value in values)
