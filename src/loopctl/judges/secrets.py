"""Keys that a diff would bring into the repository: where, and what kind; never the key itself.

Whole files are compared, not lines: a key is new where no changed file of the base has it, so
that moving, wrapping or indenting what is there already counts for nothing.
"""

from collections.abc import Iterator
from typing import Final

from loopctl.judges.evidence import shown
from loopctl.judges.paths import GONE
from loopctl.ports import Repository
from loopctl.redaction import Found, Redactor
from loopctl.trees import Change
from loopctl.verdict import Hit

_SUBMODULE: Final = "160000"
_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a file that are looked at; a larger one is a hit itself."""


def secrets_in(repository: Repository, base: str, tree: str, redact: Redactor) -> tuple[Hit, ...]:
    """Return the keys that ``tree`` has and ``base`` has not, in the order of the paths.

    Raises:
        GitError: A tree could not be read.
    """
    changes = repository.changes(base, tree)
    known: set[str] = set()
    for change in changes:
        if change.old_mode not in {GONE, _SUBMODULE}:
            content = repository.read_blob(base, change.path, _LIMIT) or b""
            known.update(found.key for found, _ in _keys(redact, change.path, content))
    hits: dict[str, Hit] = {}
    for change in changes:
        if change.new_mode in {GONE, _SUBMODULE}:
            continue
        content = repository.read_blob(tree, change.path, _LIMIT + 1) or b""
        for hit in _new(redact, change, content, known):
            hits.setdefault(hit.key, hit)
    return tuple(hits.values())


def _new(redact: Redactor, change: Change, content: bytes, known: set[str]) -> Iterator[Hit]:
    path = shown(redact(change.path))
    if len(content) > _LIMIT:
        megabytes = _LIMIT // (1024 * 1024)
        words = f"{path} (more than {megabytes} MB, too large to be searched for keys)"
        yield Hit(f"secret-{change.new_blob[:16]}", words)
        return
    for found, line in _keys(redact, change.path, content):
        if found.key not in known:
            where = f"{path}:{line}" if line else f"{path}, in its name"
            yield Hit(f"secret-{found.key}", f"{where} ({found.name})")


def _keys(redact: Redactor, path: str, content: bytes) -> Iterator[tuple[Found, int]]:
    """Yield keys with their lines from 1; those in the name of the file with line 0."""
    for found in redact.keys_in(path):
        yield found, 0
    text = content.decode("utf-8", "surrogateescape")
    for found in redact.keys_in(text):
        yield found, text.count("\n", 0, found.offset) + 1
    if "\0" in text:
        # Text of two bytes a character, as some editors write it.
        plain = text.replace("\0", "")
        for found in redact.keys_in(plain):
            yield found, plain.count("\n", 0, found.offset) + 1
