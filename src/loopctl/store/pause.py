"""``pause`` in a run's folder: the request to issue no further step, from any other process."""

import os
from pathlib import Path
from typing import Final

FILE_NAME: Final = "pause"


class PauseFile:
    """The port ``Pause`` over a file in the folder of the run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._is_heeded = False

    @property
    def is_heeded(self) -> bool:
        """:meth:`is_asked` has said so, and therefore something was not begun."""
        return self._is_heeded

    def is_asked(self) -> bool:
        """Return whether it was made; from then on always."""
        self._is_heeded = self._is_heeded or self._path.exists()
        return self._is_heeded

    def ask(self) -> None:
        """Make the request; the run's folder is there."""
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))

    def withdraw(self) -> None:
        """Take back a request that an earlier drive of the run has heeded or never saw."""
        self._path.unlink(missing_ok=True)
