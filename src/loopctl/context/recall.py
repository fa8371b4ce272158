"""Recall: finds in the repository and in earlier runs what may matter for a step.

Full text always, embeddings where a model for them is set; the two lists are merged by rank.

Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion" (2009), for the merging and its 60.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from loopctl.context.indexable import FILES, is_indexable, text_of
from loopctl.context.passages import passages, terms
from loopctl.contextports import Document, History, Memory, MemoryIndex, Oracle, Passage
from loopctl.errors import StoreError
from loopctl.events import Noticed
from loopctl.ports import Emit, Repository
from loopctl.trees import TreeFile

RANK_OFFSET: Final = 60
"""How much the first ranks count over the next ones: little."""

BATCH_BYTES: Final = 4 << 20
"""Of files that are in memory at once, and taken in as one."""

EMBED_BATCH: Final = 64
"""Texts that are embedded in one call."""

EMBED_BATCHES: Final = 4
"""Calls that one recall makes at most to catch up with the index."""

_FILE: Final = "file:"
_PER_MEMORY: Final = 5
"""Passages that are looked at for each memory that is asked for: one source has several."""


class LocalRecall:
    """The port ``Recall`` over an index that is brought up to the tree before it is asked.

    Args:
        tree: Returns the tree whose files count now.
        embed_model: The name of the model behind ``oracle.embed``; empty where none is set.
    """

    def __init__(
        self,
        index: MemoryIndex,
        repository: Repository,
        history: History,
        oracle: Oracle,
        *,
        tree: Callable[[], str],
        emit: Emit,
        embed_model: str = "",
    ) -> None:
        self._index = index
        self._repository = repository
        self._history = history
        self._tree = tree
        self._emit = emit
        self._synced: str | None = None
        self._meaning = _Meaning(index, oracle, embed_model)
        self._lock = threading.Lock()

    def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        """Return at most ``limit`` memories, the nearest first; none where nothing fits.

        An index that is damaged is made anew; where even that fails there are no memories, and
        the run says so.
        """
        wanted = terms(query)
        if limit < 1 or not wanted:
            return ()
        with self._lock:
            try:
                return self._recall(query, wanted, limit)
            except StoreError:
                return self._recall_anew(query, wanted, limit)

    def _recall_anew(self, query: str, wanted: Sequence[str], limit: int) -> tuple[Memory, ...]:
        self._synced = None
        try:
            self._index.reset()
            return self._recall(query, wanted, limit)
        except StoreError as exc:
            self._emit(Noticed(text=f"nothing could be recalled: {exc}"))
            return ()

    def _recall(self, query: str, wanted: Sequence[str], limit: int) -> tuple[Memory, ...]:
        self._sync()
        looked_at = limit * _PER_MEMORY
        lists = [self._index.search(wanted, looked_at), self._meaning.nearest(query, looked_at)]
        return merged(lists, limit)

    def _sync(self) -> None:
        """Bring the index up to the tree and the earlier runs; reads only what has changed."""
        tree = self._tree()
        if tree == self._synced:
            return
        known = self._index.versions()
        files = {_FILE + file.path: file for file in _indexable(self._repository.files(tree))}
        runs = self._history.versions()
        gone = [key for key in known if key not in files and key not in runs]
        told = [self._remembered(key, at) for key, at in runs.items() if known.get(key) != at]
        if gone or told:
            self._index.replace(told, gone)
        new = [file for key, file in files.items() if known.get(key) != file.blob]
        for batch in _batches(new):
            self._index.replace(self._read(batch))
        self._synced = tree

    def _read(self, files: Sequence[TreeFile]) -> list[Document]:
        contents = self._repository.read_blobs([file.blob for file in files])
        return [_document(file, contents.get(file.blob, b"")) for file in files]

    def _remembered(self, key: str, version: str) -> Document:
        told = self._history.passages(key)
        return Document(
            key,
            version,
            tuple(Passage(one.source, text) for one in told for text in passages(one.text)),
        )


class _Meaning:
    """Finds by meaning, where a model for that is set; one that fails is not asked again."""

    def __init__(self, index: MemoryIndex, oracle: Oracle, model: str) -> None:
        self._index = index
        self._oracle = oracle
        self._model = model
        self._asked: dict[str, tuple[float, ...]] = {}

    def nearest(self, query: str, limit: int) -> tuple[Passage, ...]:
        vector = self._vector(query)
        if vector is None:
            return ()
        self._catch_up()
        return self._index.nearest(self._model, vector, limit)

    def _vector(self, query: str) -> tuple[float, ...] | None:
        """Return the query's vector; steps of one todo ask the same one again and again."""
        if query not in self._asked:
            found = self._embedded([query])
            if found is None:
                return None
            self._asked = {query: found[0]}
        return self._asked[query]

    def _catch_up(self) -> None:
        """Embed what has no vector yet, a part of it: the rest is for the next recalls."""
        for _ in range(EMBED_BATCHES):
            texts = self._index.without_vector(self._model, EMBED_BATCH) if self._model else {}
            found = self._embedded(list(texts.values())) if texts else None
            if found is None:
                return
            self._index.keep_vectors(self._model, dict(zip(texts, found, strict=True)))

    def _embedded(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...] | None:
        found = self._oracle.embed(texts) if self._model else None
        if found is None or len(found) != len(texts):
            self._model = ""
            return None
        return found


def merged(lists: Iterable[Sequence[Passage]], limit: int) -> tuple[Memory, ...]:
    """Return what stands in several ranked lists as one list, each source once.

    A source's score is the sum over the lists of ``1 / (60 + rank)``; its text that passage of it
    which ranks highest, in the first list where two rank alike.
    """
    scores: dict[str, float] = {}
    best: dict[str, tuple[int, str]] = {}
    for ranked in lists:
        sources: dict[str, str] = {}
        for passage in ranked:
            sources.setdefault(passage.source, passage.text)
        for rank, (source, text) in enumerate(sources.items(), 1):
            scores[source] = scores.get(source, 0.0) + 1 / (RANK_OFFSET + rank)
            if source not in best or rank < best[source][0]:
                best[source] = (rank, text)
    order = sorted(scores, key=lambda source: (-scores[source], source))
    return tuple(Memory(source, best[source][1], scores[source]) for source in order[:limit])


def _indexable(files: Iterable[TreeFile]) -> list[TreeFile]:
    return [file for file in files if is_indexable(file)][:FILES]


def _batches(files: Iterable[TreeFile]) -> Iterator[list[TreeFile]]:
    batch: list[TreeFile] = []
    size = 0
    for file in files:
        if batch and size + file.size_bytes > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size_bytes
    if batch:
        yield batch


def _document(file: TreeFile, content: bytes) -> Document:
    """Return what stands for a file; one that is no text is known, and has no passages."""
    text = text_of(content) or ""
    found: Mapping[str, None] = dict.fromkeys(passages(text))
    return Document(_FILE + file.path, file.blob, tuple(Passage(file.path, text) for text in found))
