"""The child's standard streams, taken for the engine alone.

Libraries print, and programs that they start would inherit the pipes. So both are moved away:
whatever else this process writes to its standard output goes to its standard error.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator

from loopctl.worker.asking import Send
from loopctl.worker.codec import encode
from loopctl.worker.protocol import Frame, ToEngine


@contextlib.contextmanager
def claim_pipes() -> Iterator[tuple[Iterable[bytes], Send]]:
    """Yield the engine's lines, and what writes a frame to it; any thread may call that."""
    # Copies are not inherited by what is started.
    with os.fdopen(os.dup(0), "rb") as inbound, os.fdopen(os.dup(1), "wb") as outbound:
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        lock = threading.Lock()

        def send(frame: Frame[ToEngine]) -> None:
            line = encode(frame) + b"\n"
            # The engine has gone, and with it the lines that come from it: that ends the process.
            with lock, contextlib.suppress(BrokenPipeError):
                outbound.write(line)
                outbound.flush()

        yield inbound, send
