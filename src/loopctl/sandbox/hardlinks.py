"""Parts the files of a worktree from other files that they are: hard links.

git's checkout makes none. A worker's command may have made one to a file outside, of the user's or
of the object store; who writes to the one later writes to the other.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from loopctl.sandbox.survey import entries

_DRAFT = ".loop-parted"


def linked(root: Path) -> Iterator[Path]:
    """Yield the regular files below ``root`` that have another name somewhere; follows no link."""
    folders = [str(root)]
    while folders:
        for entry in entries(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and entry.stat().st_nlink > 1:
                yield Path(entry.path)


def part(root: Path) -> None:
    """Make each file that has another name a file of its own, with the same content and mode.

    Raises:
        OSError: One cannot be copied.
    """
    for path in linked(root):
        mode = stat.S_IMODE(path.stat(follow_symlinks=False).st_mode)
        draft = path.with_name(f"{_DRAFT}-{os.getpid()}")
        draft.unlink(missing_ok=True)
        shutil.copyfile(path, draft, follow_symlinks=False)
        draft.chmod(mode)
        draft.replace(path)
