"""Takes keys out of what is written: known values in all their forms, and well-known shapes.

Values come from the environment: of the variables that the settings name, and of those whose names
say that they hold a secret. Shapes are those that the issuers document for their keys.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

MASK: Final = "[key]"

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SHORTEST: Final = 4
"""A value of fewer characters is no key, and would tear words apart."""
_SHORTEST_GUESSED: Final = 6
"""The same where only the variable's name speaks for a secret: its value may be ``false``."""
_SHORTEST_SURE: Final = 8
"""The same where a diff is kept from landing for it."""
_SHORTEST_ENCODED: Final = 6
"""Of fewer bytes too little of the encoded form is certain, wherever they stand in a text."""

_START: Final = r"(?<![A-Za-z0-9])"
SHAPES: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for name, pattern in (
        (
            "private key",
            # Up to its end, or where a text is cut, up to what can be no part of it.
            (
                r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
                r"(?:[\s\S]{0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
                r"|[A-Za-z0-9+/=\s\\]{0,20000})"
            ),
        ),
        ("model provider's key", _START + r"sk-[A-Za-z0-9_-]{20,}"),
        ("Stripe key", _START + r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("GitHub token", _START + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
        ("GitLab token", _START + r"glpat-[A-Za-z0-9_-]{20,}"),
        ("AWS key id", _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("Google key", _START + r"AIza[A-Za-z0-9_-]{35}"),
        ("Slack token", _START + r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        (
            "Slack hook",
            r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}",
        ),
        ("npm token", _START + r"npm_[A-Za-z0-9]{36}"),
        ("PyPI token", _START + r"pypi-[A-Za-z0-9_-]{50,}"),
        ("Hugging Face token", _START + r"hf_[A-Za-z0-9]{30,}"),
        (
            "JSON web token",
            _START + r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        ),
    )
}
_HINTS: Final = re.compile(
    r"-----BEGIN|[sr]k[-_]|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox|hooks\.slack"
    r"|npm_|pypi-|hf_|eyJ"
)
"""What every shape holds: a text without any of these is not looked at further."""


@dataclass(frozen=True, slots=True)
class Found:
    """A key that stands in a text.

    Attributes:
        name: What it is: whose value, or which shape.
        key: Equal for the same key anywhere; it cannot be told from this.
        offset: In characters.
    """

    name: str
    key: str
    offset: int


class Redactor:
    """Replaces every known key, and what looks like one, by ``[key]``.

    A value is found raw, JSON-escaped, quoted for URLs, in hexadecimal, and in base64 wherever it
    stands in the encoded text.

    Args:
        env: The environment; read anew for each text, for keys may be set late.
        names: Variables with keys, besides those that are called so.
    """

    def __init__(self, env: Mapping[str, str], names: Iterable[str] = ()) -> None:
        self._env = env
        self._names = frozenset(names)
        self._known: tuple[tuple[str, ...], re.Pattern[str] | None] = ((), None)

    def __call__(self, text: str) -> str:
        """Return the text without keys."""
        values = self._values()
        if values != self._known[0]:
            self._known = (values, _pattern(values))
        if (pattern := self._known[1]) is not None:
            text = pattern.sub(MASK, text)
        if _HINTS.search(text):
            for shape in SHAPES.values():
                text = shape.sub(MASK, text)
        return text

    def data(self, content: bytes) -> bytes:
        """Return bytes without keys; those that hold none come back as they are."""
        text = content.decode("utf-8", "surrogateescape")
        clean = self(text)
        return content if clean == text else clean.encode("utf-8", "surrogateescape")

    def tree(self, value: Any) -> Any:
        """Return a JSON value with the keys taken out of every string in it, names too."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self.tree(name): self.tree(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(inner) for inner in value]
        return value

    def document(self, text: str) -> str:
        """Return a JSON document without keys, still one; what is no JSON is taken as a text."""
        try:
            value = json.loads(text)
            clean = self.tree(value)
        except (ValueError, RecursionError):
            return self(text)
        if clean == value:
            return text
        return json.dumps(clean, ensure_ascii=False, separators=(",", ":"))

    def keys_in(self, text: str) -> Iterator[Found]:
        """Yield the keys in a text, for a person to judge, by kind.

        More is masked than is called a key here: a variable whose name alone speaks for a secret
        may hold a plain word.
        """
        if self._sure:
            pattern = self._sure_pattern
            for match in pattern.finditer(text):
                name = f"the value of {self._sure[match.group()]}"
                yield Found(name, _digest(name), match.start())
            text = pattern.sub(lambda match: " " * len(match.group()), text)
        for name, offset, found in _shaped(text):
            yield Found(name, _digest(f"{name} {found}"), offset)

    @cached_property
    def _sure_pattern(self) -> re.Pattern[str]:
        return _either(self._sure)

    @cached_property
    def _sure(self) -> Mapping[str, str]:
        """The forms of what is a key for sure, with the variables that hold it."""
        return {form: name for name, value in self._sure_values() for form in _forms(value)}

    def _sure_values(self) -> Iterator[tuple[str, str]]:
        for name, raw in sorted(self._env.items()):
            value = raw.strip()
            is_named = name in self._names and len(value) >= _SHORTEST
            is_guessed = _SECRET.search(name) and len(value) >= _SHORTEST_SURE
            if is_named or (is_guessed and not value.isalpha() and _may_be_key(value)):
                yield name, value

    def _values(self) -> tuple[str, ...]:
        found = set()
        for name, raw in self._env.items():
            value = raw.strip()
            if name in self._names:
                is_key = len(value) >= _SHORTEST
            else:
                is_key = bool(_SECRET.search(name)) and _may_be_key(value)
            if is_key:
                found.add(value)
        return tuple(sorted(found))


def shapes_in(text: str) -> Iterator[tuple[str, int]]:
    """Yield what looks like a key in a text: the name of its shape, and the offset."""
    for name, offset, _ in _shaped(text):
        yield name, offset


def _shaped(text: str) -> Iterator[tuple[str, int, str]]:
    if _HINTS.search(text):
        for name, shape in SHAPES.items():
            for match in shape.finditer(text):
                yield name, match.start(), match.group()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _may_be_key(value: str) -> bool:
    """Return whether a guessed value is long enough, and no path of this machine."""
    if len(value) < _SHORTEST_GUESSED:
        return False
    if not value.startswith("/"):
        return True
    try:
        return not Path(value).exists()
    except (OSError, ValueError):
        return True


def _pattern(values: tuple[str, ...]) -> re.Pattern[str] | None:
    forms = {form for value in values for form in _forms(value)}
    return _either(forms) if forms else None


def _either(forms: Iterable[str]) -> re.Pattern[str]:
    # The longest first: an alternative that is tried early must not leave the rest of a longer one.
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))


def _forms(value: str) -> Iterator[str]:
    content = value.encode("utf-8", "surrogateescape")
    yield value
    yield quote(value, safe="", errors="surrogateescape")
    yield quote_plus(value, errors="surrogateescape")
    yield quote(value, errors="surrogateescape")
    for is_ascii in (True, False):
        yield json.dumps(value, ensure_ascii=is_ascii)[1:-1]
    if len(content) >= _SHORTEST_ENCODED:
        yield content.hex()
        yield content.hex().upper()
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(content).decode("ascii").rstrip("=")
        for lead in range(3):
            yield from _base64(content, lead)


def _base64(content: bytes, lead: int) -> Iterator[str]:
    """Yield what base64 surely shows of ``content`` behind ``lead`` bytes of another text."""
    first = -(-lead * 8 // 6)
    last = (lead + len(content)) * 8 // 6
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(bytes(lead) + content).decode("ascii")[first:last]
