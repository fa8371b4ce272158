"""Texts on their way to a model and into the past: made sound, cut, and fenced as data.

Whatever is no order - files, output, what servers and pages say, records of steps - goes into a
prompt through :func:`fence`, and in no other way.
"""

import hashlib
from typing import Final

_TAG_DIGITS: Final = 12
_MARK_BYTES: Final = 48
"""What the note on what is missing takes at most."""


def clean(text: str) -> str:
    """Return ``text`` with every half of a surrogate pair replaced: no provider takes those."""
    return text.encode("utf-8", "replace").decode("utf-8")


def cut(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` bytes of UTF-8; what is too much goes from its middle.

    Args:
        text: Without surrogates.
        limit: More than what the note on the missing bytes takes.
    """
    encoded = text.encode("utf-8")
    if len(encoded) <= limit:
        return text
    half = (limit - _MARK_BYTES) // 2
    head = encoded[:half].decode("utf-8", "ignore")
    tail = encoded[-half:].decode("utf-8", "ignore")
    return f"{head} [… {len(encoded) - 2 * half} bytes left out …] {tail}"


def one_line(text: str, limit: int) -> str:
    """Return ``text`` as one line of at most ``limit`` bytes."""
    return cut(" ".join(text.split()), limit)


def fence(text: str, source: str) -> str:
    """Return ``text`` between two marks that say that it is data, and where it is from.

    The marks hold a digest of the text and never stand in it, so that no text can close its own
    fence, however long somebody has searched for one; equal texts have equal fences, so that a
    prompt stays the same from one request to the next.
    """
    text, head = clean(text), one_line(clean(source), 200)
    tag = _digest(text)
    while tag in text or tag in head:
        tag = _digest(f"{tag}{text}")
    return f"<<<DATA {tag} {head}\n{text}\n{tag} DATA>>>"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_TAG_DIGITS]
