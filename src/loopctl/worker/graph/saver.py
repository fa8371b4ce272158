"""The saver of one step: a database in memory that is filled only where the step is interrupted.

LangGraph hands over the state of every step at its end, and most of these nobody will ever read.
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver


class LateSaver(SqliteSaver):
    """Keeps what it is given as it is until :meth:`flush`; then it is in the database.

    Args:
        connection: In memory; LangGraph may write from a thread of its own, under a lock.
        is_filled: There is something in it already, which counts from the beginning.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_filled: bool) -> None:
        # Only plain types come back from a blob, whatever the environment says of that.
        super().__init__(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._is_late = not is_filled
        self._late: list[Callable[[], object]] = []

    def flush(self) -> None:
        """Write what was kept; from now on everything is written at once."""
        late, self._late, self._is_late = self._late, [], False
        for write in late:
            write()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return what is in the database."""
        return None if self._is_late else super().get_tuple(config)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a state, or write it."""
        if not self._is_late:
            return super().put(config, checkpoint, metadata, new_versions)
        self._late.append(partial(super().put, config, checkpoint, metadata, new_versions))
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a node has written, or write it."""
        if not self._is_late:
            super().put_writes(config, writes, task_id, task_path)
            return
        self._late.append(partial(super().put_writes, config, tuple(writes), task_id, task_path))
