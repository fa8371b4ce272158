"""Writes and removes the harness's own files; follows no symbolic link."""

import contextlib
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from loopctl import failpoints
from loopctl.disk import describe
from loopctl.errors import SandboxError


def write_if_changed(path: Path, content: bytes) -> None:
    """Make ``content`` what the private file ``path`` holds, atomically."""
    with contextlib.suppress(OSError):
        if not path.is_symlink() and path.read_bytes() == content:
            return
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    move(fresh, path)


def move(source: Path, target: Path) -> None:
    """Rename within one file system; a file that is there is replaced."""
    failpoints.reach("sandbox.before_replace")
    source.replace(target)
    failpoints.reach("sandbox.after_replace")


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all that is in it, read-only folders too.

    What cannot be removed stays: the next set-up tries again.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    if sys.version_info >= (3, 12):
        shutil.rmtree(path, onexc=_make_writable)
    else:
        shutil.rmtree(path, onerror=_make_writable)


def _make_writable(remove: Callable[..., object], name: str, error: object) -> None:
    del error
    parent = Path(name).parent
    with contextlib.suppress(OSError):
        parent.chmod(stat.S_IRWXU)
        if remove in {os.open, os.scandir, os.rmdir} and not Path(name).is_symlink():
            Path(name).chmod(stat.S_IRWXU)
            shutil.rmtree(name, ignore_errors=True)
            return
        remove(name)


@contextlib.contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn an error of the file system into a :class:`SandboxError` that says so."""
    try:
        yield
    except OSError as error:
        raise SandboxError(f"{what}: {describe(error)}") from error
