"""The file by which git finds its folder for a worktree, and the two files that lead back.

The harness names both folders itself and reads none of them: they are for the git that a worker's
commands start.
"""

import os
import stat
from pathlib import Path

from loopctl.sandbox.files import remove_tree, write_if_changed

_READ_ONLY = 0o444


def point(pointer: Path, admin: Path) -> None:
    """Make ``pointer`` the read-only ``.git`` of the worktree that git keeps ``admin`` for.

    Who writes to it does so by mistake; who means to can replace it, and changes nothing of what
    the harness sees.

    Raises:
        OSError: What stands in its place cannot be removed.
    """
    content = b"gitdir: " + os.fsencode(admin) + b"\n"
    if not _is_intact(pointer, content):
        remove_tree(pointer)
        write_if_changed(pointer, content)
        pointer.chmod(_READ_ONLY)
    write_if_changed(admin / "commondir", b"../..\n")
    write_if_changed(admin / "gitdir", os.fsencode(pointer) + b"\n")


def _is_intact(pointer: Path, content: bytes) -> bool:
    try:
        found = pointer.lstat()
    except FileNotFoundError:
        return False
    is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    return is_plain and found.st_mode & 0o777 == _READ_ONLY and pointer.read_bytes() == content
