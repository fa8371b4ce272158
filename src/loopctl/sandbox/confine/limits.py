"""What one confined command may take, how that is set, and how it is told that it was too much.

Memory has no limit of the kernel's: that of address space stops runtimes and sanitizers that
reserve more than they use. The harness looks instead (``sandbox/crowd.py``), and at the number of
processes too: the kernel does not count root's.
"""

import re
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.domain import ExecResult
from loopctl.records import Most
from loopctl.settings import SandboxSettings

OPEN_FILES: Final = 65536
_SHARE: Final = 0.75
"""Of the machine's memory, where the settings name none."""

_FALLBACK_BYTES: Final = 8 << 30
_LEAST_BYTES: Final = 256 << 20
_LOOKED_AT: Final = 4096
_TOO_LARGE: Final = re.compile(rb"File too large|File size limit exceeded|\bEFBIG\b")
_NO_FORK: Final = re.compile(
    rb"fork: (?:retry: )?(?:Resource temporarily unavailable|Cannot fork)|Cannot fork\b"
    rb"|BlockingIOError: \[Errno 11\]|can't start new thread|\bspawn \S+ EAGAIN\b"
    rb"|pthread_create failed|unable to create (?:native )?thread"
)
_XFSZ: Final = frozenset({-signal.SIGXFSZ, 128 + signal.SIGXFSZ})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one command with all that comes of it.

    Attributes:
        processes: And threads, at the same time.
        memory_bytes: That they use together; of the files of each folder in memory a quarter.
        file_bytes: Of one file.
    """

    processes: int = 4096
    memory_bytes: int = _FALLBACK_BYTES
    file_bytes: int = 16 << 30

    @property
    def most(self) -> Most:
        """What the harness looks at."""
        return Most(self.processes, self.memory_bytes)

    @property
    def folder_bytes(self) -> int:
        """Of the files in one folder that lies in memory."""
        return self.memory_bytes // 4

    def of_process(self) -> Iterator[tuple[str, int, int]]:
        """Yield what the kernel holds a process to: name, number, value that may be set here.

        Processes are twice what the harness looks for: who is told by the kernel tries again for
        ever, and has to be ended.
        """
        for name, number, most in (
            ("core", resource.RLIMIT_CORE, 0),
            ("nofile", resource.RLIMIT_NOFILE, OPEN_FILES),
            ("nproc", resource.RLIMIT_NPROC, 2 * self.processes),
            ("fsize", resource.RLIMIT_FSIZE, self.file_bytes),
        ):
            _, hard = resource.getrlimit(number)
            yield name, number, most if hard == resource.RLIM_INFINITY else min(most, hard)

    def explain(self, ended: ExecResult) -> str:
        """Return which limit a command that failed has met, as far as it says so."""
        said = ended.stdout[-_LOOKED_AT:]
        if ended.returncode in _XFSZ or _TOO_LARGE.search(said):
            return (
                f"a file may have {self.file_bytes >> 20} MiB inside the confinement; "
                "[sandbox] file_mb sets it"
            )
        if _NO_FORK.search(said):
            return (
                f"a command may have {self.processes} processes and threads inside the "
                "confinement; [sandbox] processes sets it"
            )
        return ""


def limits(settings: SandboxSettings) -> Limits:
    """Return the limits that the settings name, or that fit this machine."""
    memory = settings.memory_mb << 20 if settings.memory_mb else _usual_memory()
    return Limits(settings.processes, memory, settings.file_mb << 20)


def _usual_memory() -> int:
    try:
        text = Path("/proc/meminfo").read_text()
        total = int(text.partition("MemTotal:")[2].split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return _FALLBACK_BYTES
    return max(_LEAST_BYTES, int(total * _SHARE))
