"""What a goal was assumed to mean, kept from before its tasks are written until its run has it.

``.local/kickoff.json``: a process that dies between writing the manifest and the run's first
events leaves it to the run that drives those tasks next.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from loopctl import failpoints
from loopctl.disk import machine_errors
from loopctl.domain import DecisionDraft, DecisionKind, TaskId
from loopctl.records import Supposition

FILE_NAME: Final = "kickoff.json"

Kept = tuple[tuple[Supposition, ...], tuple[str, ...]]
"""What was assumed, and what a person has decided, as sentences."""


class KickoffFile:
    """The file in ``.local``; for whoever holds the lease."""

    def __init__(self, local: Path) -> None:
        self._path = local / FILE_NAME

    def save(self, goal: str, suppositions: Sequence[Supposition], settled: Sequence[str]) -> None:
        """Keep what belongs to a goal, in the place of what was kept; atomically.

        Raises:
            MachineError: It cannot be written.
        """
        kept = {
            "goal": goal,
            "suppositions": [asdict(one) for one in suppositions],
            "settled": list(settled),
        }
        draft = self._path.with_suffix(".tmp")
        with machine_errors(f"{self._path} cannot be written"):
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.write(json.dumps(kept).encode())
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._path)
        failpoints.reach("kickoff.after_save")

    def load(self, goal: str) -> Kept:
        """Return what is kept of exactly that goal; nothing where that is nothing readable."""
        try:
            kept = json.loads(self._path.read_bytes())
            if kept["goal"] != goal:
                return (), ()
            return tuple(_supposition(one) for one in kept["suppositions"]), tuple(kept["settled"])
        except (OSError, ValueError, KeyError, TypeError):
            return (), ()

    def clear(self) -> None:
        """Forget it: the run has it, or there will be none."""
        self._path.unlink(missing_ok=True)


def _supposition(one: dict[str, object]) -> Supposition:
    draft, tasks = one["draft"], one["tasks"]
    if not (isinstance(draft, dict) and isinstance(tasks, list)):
        raise TypeError("no supposition")
    kind, options = DecisionKind(draft["kind"]), tuple(draft["options"])
    return Supposition(
        DecisionDraft(**{**draft, "kind": kind, "options": options}), tuple(map(TaskId, tasks))
    )
