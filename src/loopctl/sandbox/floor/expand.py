"""Expands a word: braces, and variables that the same command line has set."""

import re
from collections.abc import Mapping
from itertools import islice, product
from typing import Final

from loopctl.sandbox.floor import marks

FIELDS: Final = 256
_REFERENCE: Final = re.compile(f"([{marks.VARIABLE}{marks.QUOTED}])([^{marks.END}]*){marks.END}")
_BRACES: Final = re.compile(f"{marks.OPEN}([^{marks.OPEN}{marks.CLOSE}]*){marks.CLOSE}")
_RANGE: Final = re.compile(r"(\w)\.\.(\w)")
_KNOWN: Final = {"HOME": marks.HOME, "PWD": ".", "TMPDIR": "/tmp/of-this", "IFS": " \t\n"}  # noqa: S108
_SPACE: Final = re.compile(r"[ \t\n]+")
_SPLIT: Final = "\ue018"


def names(word: str) -> set[str]:
    """Return the variables that a word refers to."""
    return {match[2] for match in _REFERENCE.finditer(word)}


def fields(word: str, values: Mapping[str, str]) -> list[str]:
    """Return the words that one word becomes; a variable without a value stays unknown.

    Raises:
        OverflowError: They are too many.
    """
    found: list[str] = []
    for one in _unbraced(word):
        text = _REFERENCE.sub(lambda match: _value(match, values), one)
        parts = text.split(_SPLIT) if _SPLIT in text else [text]
        found += [part for part in parts if part] if len(parts) > 1 else parts
    if len(found) > FIELDS:
        raise OverflowError
    return found


def joined(word: str, values: Mapping[str, str]) -> str:
    """Return a word whose variables are not split, as on the right of an assignment."""
    quoted = word.replace(marks.VARIABLE, marks.QUOTED)
    return _literal(_REFERENCE.sub(lambda match: _value(match, values), quoted))


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    name = match[2]
    value = values.get(name, _KNOWN.get(name, marks.GIVEN))
    return value if match[1] == marks.QUOTED else _SPACE.sub(_SPLIT, value)


def _unbraced(word: str) -> list[str]:
    words, done = [word], []
    while words:
        one = words.pop()
        match = _BRACES.search(one)
        if match is None:
            done.append(_literal(one))
        else:
            words += [one[: match.start()] + way + one[match.end() :] for way in _ways(match[1])]
        if len(words) + len(done) > FIELDS:
            raise OverflowError
    return done[::-1]


def _ways(inside: str) -> list[str]:
    if marks.COMMA in inside:
        return inside.split(marks.COMMA)
    match = _RANGE.fullmatch(inside)
    if match is None:
        return ["{" + inside + "}"]
    first, last = sorted((ord(match[1]), ord(match[2])))
    return [chr(code) for code in range(first, min(last, first + FIELDS) + 1)]


def _literal(word: str) -> str:
    return word.translate({ord(marks.OPEN): "{", ord(marks.COMMA): ",", ord(marks.CLOSE): "}"})


def combinations(
    words: list[str], known: Mapping[str, tuple[str, ...]]
) -> list[dict[str, str]] | None:
    """Return each way in which the variables of some words may be set; ``None`` for too many."""
    used = sorted({name for word in words for name in names(word)} & known.keys())
    ways = list(islice(product(*(known[name] for name in used)), FIELDS + 1))
    if len(ways) > FIELDS:
        return None
    return [dict(zip(used, way, strict=True)) for way in ways]
