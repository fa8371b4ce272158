"""From a file to a TOML document: everything that can be wrong before a single key is looked at.

Each function raises :class:`~loopctl.errors.FaultsError` with exactly one fault.
"""

import re
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from loopctl.errors import Fault, FaultsError

MAX_BYTES: Final = 64 << 20
BOM: Final = "\ufeff"

_MARKER: Final = re.compile(r"^(?:<{7}|\|{7}|={7}|>{7})(?=[ \r\n]|\Z)", re.MULTILINE)
_POSITION: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_bytes(path: Path, shown_as: str, missing: str) -> bytes:
    """Return what a regular file holds, at most ``MAX_BYTES``.

    Args:
        path: A symbolic link is followed.
        shown_as: How a message names the file.
        missing: The message for a file that is not there: what makes one.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise _fault(shown_as, 0, "this is a folder; a file is expected")
        # Reading a pipe or a device could wait for ever.
        if not stat.S_ISREG(found.st_mode):
            raise _fault(shown_as, 0, "this is no regular file")
        if found.st_size > MAX_BYTES:
            raise _too_large(shown_as, found.st_size)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise _fault(shown_as, 0, missing) from exc
    except OSError as exc:
        raise _fault(shown_as, 0, f"it cannot be read: {exc.strerror or exc}") from exc
    if len(content) > MAX_BYTES:
        raise _too_large(shown_as, len(content))
    return content


def decode(content: bytes, shown_as: str) -> str:
    """Return the text of a TOML file, without its byte order mark, line endings as they are."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _fault(shown_as, 1, "this is UTF-16; save it as UTF-8")
    nul = content.find(b"\0")
    if nul >= 0:
        raise _fault(shown_as, _line(content, nul), "a NUL byte; this is no text file")
    try:
        return content.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as exc:
        byte = content[exc.start]
        line = _line(content, exc.start)
        raise _fault(shown_as, line, f"byte 0x{byte:02X} is not UTF-8; save it as UTF-8") from exc


def parse(text: str, shown_as: str) -> dict[str, Any]:
    """Return the document that a text holds."""
    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise _fault(shown_as, 0, "arrays or tables are nested too deep") from exc
    except ValueError as exc:
        raise _syntax_fault(text, shown_as, str(exc)) from exc


def _syntax_fault(text: str, shown_as: str, said: str) -> FaultsError:
    marker = _MARKER.search(text)
    if marker is not None:
        line = text.count("\n", 0, marker.start()) + 1
        return _fault(
            shown_as, line, f"git conflict marker {marker[0]}; resolve the conflict first"
        )
    position = _POSITION.search(said)
    if position is None:
        return _fault(shown_as, 0, f"not valid TOML: {said}")
    message = f"not valid TOML: {said[: position.start()]}"
    if position[1] is None:
        return _fault(shown_as, text.rstrip().count("\n") + 1, f"{message} (at the end)")
    return _fault(shown_as, int(position[1]), f"{message} (column {position[2]})")


def _line(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def _too_large(shown_as: str, size: int) -> FaultsError:
    return _fault(shown_as, 0, f"{size >> 20} MiB; at most {MAX_BYTES >> 20} MiB are read")


def _fault(shown_as: str, line: int, message: str) -> FaultsError:
    return FaultsError(Fault(shown_as, line, message))
