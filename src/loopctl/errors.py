"""Every deliberate exception and the exit code it ends a command with.

Arguments are data and the text is made in ``__str__``, so that an error survives pickling and a
message always says what, which and what to do. What a command line can end with is listed in
``docs/reference/exit-codes.md``.
"""

from dataclasses import dataclass
from typing import ClassVar


class LoopctlError(Exception):
    """The root of all errors that ``loop`` raises on purpose."""

    exit_code: ClassVar[int] = 1


class UserError(LoopctlError):
    """Something that the user can mend: the command's words, settings, manifest, repository."""

    exit_code: ClassVar[int] = 2


class UsageError(UserError):
    """The words of the command line do not say what to do. ``args[0]`` is the whole message."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a file that the user wrote.

    Attributes:
        path: As the user would name it, relative to the checkout.
        line: 1-based; 0 where the file as a whole is meant.
        message: What is wrong and, where one is near, what was probably meant.
    """

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


class FaultsError(UserError):
    """All the faults of one file, found in one go. ``args`` are the :class:`Fault` values."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults in the order of their lines."""
        return tuple(self.args)

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


class ManifestError(FaultsError):
    """The manifest cannot be used as it stands."""


class SettingsError(FaultsError):
    """A settings file, an environment variable or an option has a value that cannot be used."""


class RepositoryError(UserError):
    """The user's repository cannot be worked on as it is. ``args[0]`` says why and what mends it."""


class MachineError(UserError):
    """The machine lacks something that ``loop`` needs. ``args[0]`` names it and what to install."""


class LandingRefusedError(UserError):
    """The branch was left as it was. ``args[0]`` says why and what mends it."""


class LeaseHeldError(UserError):
    """Another process works on this repository.

    Args:
        pid: Its process id, 0 where unknown.
        run_id: The run it drives, empty where unknown.
    """

    def __init__(self, pid: int, run_id: str = "") -> None:
        super().__init__(pid, run_id)

    def __str__(self) -> str:
        pid, run_id = self.args
        who = f"process {pid}" if pid else "another process"
        run = f" (run {run_id})" if run_id else ""
        return (
            f"{who} is already driving this repository{run}; wait for it, or end it with "
            f"`kill -INT {pid or '<pid>'}`, and run the command again"
        )


class KickoffError(UserError):
    """A goal did not become tasks; nothing was written. ``args[0]`` says why and what to do."""


class AnswerError(UserError):
    """An answer does not fit: no such decision, answered already. ``args[0]`` is the message."""


class SandboxError(LoopctlError):
    """A sandbox could not be made, or is gone: an error of its task, never of the whole run."""

    exit_code: ClassVar[int] = 2


class GitError(LoopctlError):
    """A git command that must succeed did not.

    Args:
        argv: The command without the hardening flags.
        returncode: Its exit code.
        stderr: The end of what it said.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, argv: tuple[str, ...], returncode: int, stderr: str) -> None:
        super().__init__(argv, returncode, stderr)

    def __str__(self) -> str:
        argv, returncode, stderr = self.args
        return f"git {' '.join(argv)} ended with {returncode}: {stderr.strip() or 'no message'}"


class CancelledError(LoopctlError):
    """The user asked the run to stop; what was under way has been ended and saved."""

    exit_code: ClassVar[int] = 130


class StoreError(LoopctlError):
    """The harness's own database cannot be used. ``args[0]`` says why and what mends it."""

    exit_code: ClassVar[int] = 2


class CheckpointConflictError(LoopctlError):
    """The same iteration was to be saved with other contents: two owners, or a bug (P1)."""

    def __init__(self, session_id: str, iteration: int) -> None:
        super().__init__(session_id, iteration)

    def __str__(self) -> str:
        session_id, iteration = self.args
        return f"checkpoint {iteration} of session {session_id} exists with other contents"


class LedgerConflictError(LoopctlError):
    """A call does not fit what the ledger has under its key: two owners, or a bug (P1).

    Args:
        key: Of the call.
        reason: What does not fit.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)

    def __str__(self) -> str:
        key, reason = self.args
        return f"call {key[:12]}: {reason}; it was not run"


class CallInFlightError(LoopctlError):
    """Another thread or process that is still there is at the same call now.

    Args:
        key: Of the call.
        since: When it was begun.
    """

    def __init__(self, key: str, since: str) -> None:
        super().__init__(key, since)

    def __str__(self) -> str:
        key, since = self.args
        return f"call {key[:12]} is under way elsewhere since {since}; it was not run again"


class SchemaTooNewError(LoopctlError):
    """A stored blob was written by a newer version of ``loop``."""

    exit_code: ClassVar[int] = 2

    def __init__(self, found: int, known: int) -> None:
        super().__init__(found, known)

    def __str__(self) -> str:
        found, known = self.args
        return f"schema too new: version {found}, this loop reads up to {known}; update loop"


class InvalidTransitionError(LoopctlError):
    """A task in this state does not accept this signal; nothing was changed."""

    def __init__(self, state: str, signal: str) -> None:
        super().__init__(state, signal)

    def __str__(self) -> str:
        state, signal = self.args
        return f"a task that is {state!r} does not accept the signal {signal!r}"


class EnvironmentFaultError(LoopctlError):
    """The machine keeps a step from happening: a server of tools, a model's process.

    Not the worker's fault, and no step. ``args[0]`` says what, why, and what mends it.
    """

    exit_code: ClassVar[int] = 2
