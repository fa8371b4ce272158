"""What a path, a mode and a link of a result may be; pure rules, each with a sentence.

A path that the new tree holds is refused when

* it is absolute, empty, or has an empty, ``.`` or ``..`` component;
* a component names ``.git`` or ``.gitmodules`` on any file system: in any case, with the code
  points that HFS+ ignores, with NTFS's trailing dots and spaces, streams and short names, or
  behind a backslash, which NTFS takes for a slash;
* it holds a control character (a NUL, newline and tab among them) or one that turns the
  direction of the text: such names are shown otherwise than they are;
* a component is longer than 255 bytes or the path longer than 4,095: no file system takes it.

Bytes that are no UTF-8 are allowed: old projects have such names and git carries them well.
"""

import re
from typing import Final

from loopctl.judges.evidence import shown
from loopctl.trees import Change

GONE: Final = "000000"
LINK: Final = "120000"
SUBMODULE: Final = "160000"
FILE_MODES: Final = frozenset({"100644", "100755"})

_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4095
_HFS_IGNORES: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_GIT_NAME: Final = re.compile(r"(\.git|git~\d+)")
_MODULES_NAME: Final = re.compile(r"(\.gitmodules|gitmod~\d+|gi7eba~\d+)")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def path_fault(path: str) -> str:
    """Return what is wrong with a path, empty where nothing is."""
    if not path or path.startswith("/") or re.match(r"[A-Za-z]:[\\/]", path):
        return "is absolute or empty; only paths inside the tree can land"
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "has an empty, '.' or '..' component; only plain paths inside the tree can land"
    for part in parts:
        if fault := _name_fault(part):
            return fault
    if len(path.encode("utf-8", "surrogateescape")) > _LONGEST_PATH:
        return f"is longer than {_LONGEST_PATH} bytes; choose a shorter path"
    return ""


def _name_fault(name: str) -> str:
    if any(_folded(piece, _GIT_NAME) for piece in name.split("\\")):
        return "names a .git folder (in one of the spellings of a file system); leave git alone"
    if any(_folded(piece, _MODULES_NAME) for piece in name.split("\\")):
        return "changes submodules; a task cannot"
    if "\\" in name and any(piece in {".", ".."} for piece in name.split("\\")):
        return "climbs out of the tree where a backslash separates folders; rename it"
    if _CONTROL.search(name):
        return "has a control character in its name; rename it"
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        return f"has a name longer than {_LONGEST_NAME} bytes; choose a shorter one"
    return ""


def _folded(name: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a file system could take ``name`` for what ``pattern`` names."""
    plain = name.translate(_HFS_IGNORES).casefold()
    plain = plain.partition(":")[0].rstrip(". ")
    return pattern.fullmatch(plain) is not None


def mode_fault(change: Change) -> str:
    """Return what is wrong with the kind of a change, empty where nothing is."""
    if SUBMODULE in {change.old_mode, change.new_mode}:
        return "is a submodule or nested repository; a task cannot add, change or remove one"
    if change.new_mode in {GONE, LINK} or change.new_mode in FILE_MODES:
        return ""
    return f"has the mode {change.new_mode}; only 100644, 100755 and links can land"


def link_fault(path: str, target: bytes) -> str:
    """Return what is wrong with a link at ``path`` to ``target``, empty where nothing is.

    A target may climb with ``..`` at its beginning only: behind another link, a later ``..``
    would be taken from the place which that link leads to.
    """
    text = target.decode("utf-8", "surrogateescape")
    where = f"is a link to {shown(text)}"
    if not text or "\0" in text or len(target) > _LONGEST_PATH:
        return "is a link whose target no system can follow; write a real one"
    if text.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", text):
        return f"{where}, outside the tree; link to a path inside, relative to the link"
    parts = [part for part in text.split("/") if part not in {"", "."}]
    climbs = next((i for i, part in enumerate(parts) if part != ".."), len(parts))
    if ".." in parts[climbs:]:
        return f"{where}, which climbs in its middle; write the shortest path"
    if climbs > path.count("/"):
        return f"{where}, outside the tree; link to a path inside, relative to the link"
    if any(_folded(piece, _GIT_NAME) for part in parts for piece in part.split("\\")):
        return f"{where}, a .git folder; leave git alone"
    return ""


def nesting_fault(changes: tuple[Change, ...]) -> tuple[str, str] | None:
    """Return a path that cannot be checked out beside the others, and why; ``None`` if all can.

    A tree made by hand may name a path twice, or hold a path below a link or a file.
    """
    kept = [change.path for change in changes if change.new_mode != GONE]
    files = set(kept)
    if len(files) < len(kept):
        twice = next(path for path in kept if kept.count(path) > 1)
        return twice, "stands in the tree twice; leave one"
    for path in kept:
        parent = path
        while "/" in parent:
            parent = parent.rpartition("/")[0]
            if parent in files:
                return path, f"lies below {shown(parent)}, which is a file or link"
    return None
