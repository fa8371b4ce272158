"""What the file system refuses: said plainly, as the machine's fault and not as a bug."""

import contextlib
import errno
from collections.abc import Iterator
from typing import Final

from loopctl.errors import MachineError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LONGEST_NAME: Final = 300
_MACHINES: Final = frozenset(
    {
        *_FULL,
        *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE),
    }
)


def is_machines_fault(error: BaseException) -> bool:
    """Return whether an error says that the machine lacks something; others may be bugs."""
    return isinstance(error, OSError) and error.errno in _MACHINES


def describe(error: BaseException) -> str:
    """Return what the file system says, and what mends it where that is known."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in _FULL:
        return "the disk is full; free some space and run the command again"
    name = str(error.filename or "")
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME // 2]}...{name[-_LONGEST_NAME // 2 :]}"
    place = f" ({name})" if name else ""
    return f"{error.strerror or error}{place}"


@contextlib.contextmanager
def machine_errors(what: str) -> Iterator[None]:
    """Turn an error of the file system into a :class:`MachineError`: ``what``, and why."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"{what}: {describe(error)}") from error
