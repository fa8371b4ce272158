"""Writes one message into the outbox of a sandbox; needs no checkout and no settings."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from loopctl.errors import UsageError

VARIABLE: Final = "LOOP_OUTBOX"


def put(kind: str, message: Mapping[str, Any]) -> None:
    """Write one JSON file; the name sorts after those written before it.

    Raises:
        UsageError: This is no sandbox, its outbox is gone, or the message cannot be written.
    """
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        raise UsageError(
            f"this command speaks to the harness from inside a sandbox; {VARIABLE} is not set here"
        )
    name = f"{time.time_ns():020d}-{os.getpid()}-{kind}"
    target = Path(folder) / f"{name}.json"
    hidden = Path(folder) / f".{name}.tmp"
    try:
        hidden.write_text(json.dumps({"type": kind, **message}) + "\n", "utf-8")
        hidden.replace(target)
    except OSError as error:
        raise UsageError(f"the outbox {folder} cannot be written: {error.strerror}") from error
