"""Replaces a file by another version of it, whole or not at all, unless somebody else did."""

import contextlib
import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from loopctl import failpoints


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as it was read.

    Attributes:
        path: The file itself, no symbolic link.
        content: All of it.
        status: Taken before it was read, so that a later write shows.
    """

    path: Path
    content: bytes
    status: os.stat_result


def see(path: Path, limit: int) -> Seen:
    """Return the file that ``path`` leads to, as it is now.

    Raises:
        OSError: It cannot be read, is no regular file, or is larger than ``limit`` bytes.
    """
    target = Path(os.path.realpath(path))
    fd = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no waiting for a pipe
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{target.name} is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(f"{target.name} is larger than {limit} bytes")
    return Seen(target, content, found)


def replace_file(seen: Seen, content: bytes) -> bool:
    """Put ``content`` in the place of a file; the bytes are on the disk when this returns.

    The new file has the mode of the old one and, where possible, its owner. Between the last look
    at the old file and the rename lies one system call.

    Returns:
        False when the file is not the one that was seen any more; it was left alone then.

    Raises:
        OSError: It cannot be written: no room, no permission, marked read-only. It is as it was,
            and nothing was left beside it.
    """
    if not seen.status.st_mode & 0o222:
        raise PermissionError(f"{seen.path.name} is read-only")
    _sweep(seen.path)
    temporary = seen.path.with_name(f".{seen.path.name}.{os.getpid()}.loop-tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            _take_after(fd, seen.status)
            os.fsync(fd)
            if not _is_unchanged(seen):
                return False
            failpoints.reach("manifest.before_replace")
            temporary.replace(seen.path)
            failpoints.reach("manifest.after_replace")
    finally:
        # After the rename there is none; a process that is killed before leaves it to _sweep.
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    _sync_folder(seen.path.parent)
    return True


def create_file(path: Path, content: bytes) -> bool:
    """Make a file with its folder; it is there as a whole, and lasts, or not at all.

    Returns:
        False when there is such a file by now; it was left alone then.

    Raises:
        OSError: It cannot be made; nothing was left but perhaps its folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.loop-tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            os.fsync(fd)
            failpoints.reach("manifest.before_create")
            path.hardlink_to(temporary)  # unlike a rename it never replaces what is there
            failpoints.reach("manifest.after_create")
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    _sync_folder(path.parent)
    return True


def _take_after(fd: int, status: os.stat_result) -> None:
    with contextlib.suppress(PermissionError):
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, stat.S_IMODE(status.st_mode))


def _is_unchanged(seen: Seen) -> bool:
    """Tell whether the path still leads to the same file with the same bytes.

    The bytes are compared too: two writes within one tick of the file system's clock may leave
    the same time and size.
    """
    try:
        if seen.path.read_bytes() != seen.content:
            return False
        now = os.lstat(seen.path)
    except OSError:
        return False
    return _identity(now) == _identity(seen.status)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _sweep(path: Path) -> None:
    """Remove what a killed process has left; a living one holds the lock on its own."""
    from glob import escape  # noqa: PLC0415 - dear, and needed where something is written

    for leftover in path.parent.glob(f".{escape(path.name)}.*.loop-tmp"):
        with contextlib.suppress(OSError):
            fd = os.open(leftover, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()
            finally:
                os.close(fd)


def _sync_folder(folder: Path) -> None:
    """Make the rename last; some file systems cannot, and then it lasts as long as they let it."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
