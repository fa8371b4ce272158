"""The index for recall: full text by SQLite's FTS5, and vectors where there are any."""

import contextlib
import hashlib
import re
import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from operator import mul
from pathlib import Path
from typing import Any, Final

from loopctl.contextports import Document, Passage
from loopctl.store.indexfile import IndexFile, named_errors

NEAR: Final = 0.2
"""The cosine from which on a passage counts as near at all."""

_CAMEL: Final = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+|\b(?:[A-Z][a-z0-9]+){2,}")
_PART: Final = re.compile(r"[A-Z]?[a-z0-9]+")

_Vectors = list[tuple[Passage, "array[float]"]]


class SqliteMemories:
    """The port ``MemoryIndex`` over ``.local/recall.db``; threads and processes share it.

    Args:
        local: The folder ``.local``. Where nothing can be written there, the index is in memory.
        redact: Takes keys out of what is kept, so that nothing that is recalled holds any.
    """

    def __init__(self, local: Path, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._file = IndexFile(local)
        self._lock = threading.RLock()
        self._vectors: dict[str, _Vectors] = {}

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def reset(self) -> None:
        """Forget everything; what comes after works, where need be in memory alone."""
        with self._lock, named_errors():
            self._vectors.clear()
            self._file.remake()

    def versions(self) -> Mapping[str, str]:
        """Return the documents that it holds, key to version."""
        return dict(self._rows("SELECT key, version FROM documents"))

    def replace(self, documents: Sequence[Document], gone: Sequence[str] = ()) -> None:
        """Take these documents in, each in place of its older version, and drop ``gone``."""
        with self._write() as connection:
            for key in (*gone, *(document.key for document in documents)):
                connection.execute(
                    "DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE key = ?)",
                    (key,),
                )
                connection.execute("DELETE FROM passages WHERE key = ?", (key,))
                connection.execute("DELETE FROM documents WHERE key = ?", (key,))
            for document in documents:
                _insert(connection, self._without_keys(document))
            connection.execute(
                "DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM passages)"
            )

    def _without_keys(self, document: Document) -> Document:
        texts = (
            Passage(self._redact(one.source), self._redact(one.text)) for one in document.passages
        )
        return replace(document, passages=tuple(texts))

    def search(self, terms: Sequence[str], limit: int) -> tuple[Passage, ...]:
        """Return the passages that hold any of the terms, whatever is in these, best first."""
        quoted = (term.replace("\0", " ").replace('"', '""') for term in terms if term.strip())
        query = " OR ".join(f'"{term}"' for term in quoted)
        if not query:
            return ()
        rows = self._rows(
            "SELECT p.source, w.text FROM words w JOIN passages p ON p.id = w.rowid"
            # A term counts four times in the source's name.
            " WHERE words MATCH ? ORDER BY bm25(words, 4.0, 1.0, 1.0), w.rowid LIMIT ?",
            (query, limit),
        )
        return tuple(Passage(source, text) for source, text in rows)

    def without_vector(self, model: str, limit: int) -> Mapping[str, str]:
        """Return some passages that lack a vector of that model: digest of the text, text."""
        return dict(
            self._rows(
                "SELECT p.digest, w.text FROM passages p JOIN words w ON w.rowid = p.id"
                " WHERE p.digest NOT IN (SELECT digest FROM vectors WHERE model = ?)"
                " ORDER BY p.id LIMIT ?",
                (model, limit),
            )
        )

    def keep_vectors(self, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Remember vectors by digest of the text, for as long as some passage has that text."""
        with self._write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO vectors (model, digest, vector) VALUES (?, ?, ?)",
                [(model, digest, _unit(one).tobytes()) for digest, one in vectors.items()],
            )

    def nearest(self, model: str, vector: Sequence[float], limit: int) -> tuple[Passage, ...]:
        """Return the passages whose vectors are nearest by their angle, and near at all."""
        wanted = _unit(vector)
        with self._lock:
            if model not in self._vectors:
                self._vectors[model] = self._load(model)
            known = self._vectors[model]
        scored = [
            (sum(map(mul, wanted, one)), passage)
            for passage, one in known
            if len(one) == len(wanted)
        ]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        return tuple(passage for score, passage in scored[:limit] if score >= NEAR)

    def _load(self, model: str) -> _Vectors:
        rows = self._rows(
            "SELECT p.source, w.text, v.vector FROM vectors v JOIN passages p ON p.digest = v.digest"
            " JOIN words w ON w.rowid = p.id WHERE v.model = ? ORDER BY p.id",
            (model,),
        )
        return [(Passage(source, text), array("f", blob)) for source, text, blob in rows]

    def _rows(self, sql: str, args: Sequence[str | int] = ()) -> list[tuple[Any, ...]]:
        with self._lock, named_errors():
            return self._file.connection.execute(sql, args).fetchall()

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Hold the one write transaction; commits at the end, rolls back on any exception."""
        with self._lock, named_errors():
            self._vectors.clear()
            connection = self._file.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


def _insert(connection: sqlite3.Connection, document: Document) -> None:
    connection.execute(
        "INSERT INTO documents (key, version) VALUES (?, ?)", (document.key, document.version)
    )
    for passage in document.passages:
        digest = hashlib.sha256(passage.text.encode("utf-8", "surrogatepass")).hexdigest()
        row = connection.execute(
            "INSERT INTO passages (key, source, digest) VALUES (?, ?, ?)",
            (document.key, passage.source, digest),
        )
        parts = " ".join(_parts(f"{passage.source}\n{passage.text}"))
        connection.execute(
            "INSERT INTO words (rowid, source, parts, text) VALUES (?, ?, ?, ?)",
            (row.lastrowid, passage.source, parts, passage.text),
        )


def _parts(text: str) -> Iterator[str]:
    """Yield the words that identifiers in camel case are made of."""
    for name in set(_CAMEL.findall(text)):
        yield from _PART.findall(name)


def _unit(vector: Sequence[float]) -> "array[float]":
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return array("f", [value / length for value in vector])
