"""``bash``: a command in the sandbox; what it says is cut in the middle, and kept for reading on."""

import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from loopctl.calls import Effect, ToolResult
from loopctl.domain import ExecResult
from loopctl.errors import SandboxError
from loopctl.ports import Sandbox
from loopctl.sandbox.tools.tool import SHOWN_BYTES, RefusalError, WorkTool, spec_of
from loopctl.sandbox.tools.tree import MAX_READ_BYTES, Tree

TIMEOUT_S: Final = 600.0
"""As long as a check of the gate has by default, so that a worker can run what the gate runs."""

KEPT: Final = 8
"""How many long outputs are kept; the oldest goes first."""

# One that is there is used; what a model calls bash it writes for bash.
_START: Final = 'if command -v bash >/dev/null; then exec bash -c -- "$1"; fi; exec sh -c -- "$1"'


def shell(sandbox: Sandbox, scratch: Tree, timeout_s: float = TIMEOUT_S) -> WorkTool:
    """Return the tool.

    Args:
        sandbox: Where commands run.
        scratch: The folder of temporary files; keeps long outputs.
        timeout_s: Of one command.
    """
    outputs = _Outputs(scratch)

    def run(arguments: Mapping[str, Any], key: str) -> ToolResult:
        command = arguments["command"]
        if not command.strip() or "\0" in command:
            raise RefusalError("command is a shell command, not empty and without a NUL character")
        ended = sandbox.run(["sh", "-c", _START, "sh", command], timeout_s=timeout_s)
        output = ended.stdout
        shown = output.decode("utf-8", "replace")
        if len(output) > SHOWN_BYTES:
            shown = _cut(output, outputs.keep(key, output))
        text = f"{_how(ended, timeout_s)}\n{shown}" if shown else f"{_how(ended, timeout_s)}"
        return ToolResult(text, is_error=ended.timed_out or bool(ended.excess))

    spec = spec_of(
        "bash",
        "Run a command in the worktree, by bash where there is one, else by sh. It has no terminal "
        f"and no input, {timeout_s:.0f} seconds, and ends with all that it has started. A long "
        "output is cut in the middle; the result says where all of it can be read.",
        1,
        command={"type": "string", "description": "A shell command; may have several lines."},
    )
    return WorkTool(spec, Effect.INSIDE, run)


class _Outputs:
    """Long outputs of commands, in the sandbox's folder of temporary files."""

    def __init__(self, scratch: Tree) -> None:
        self._scratch = scratch
        self._names: deque[str] = deque()

    def keep(self, key: str, output: bytes) -> str:
        """Return the path of a file that holds the output; empty where it could not be kept."""
        name = f"output-{key[:12]}.txt"
        try:
            self._scratch.write(name, output, 0o600, limit=MAX_READ_BYTES)
        except (OSError, RefusalError, SandboxError):
            # The command itself has happened, and its result is worth more than its length.
            return ""
        if name not in self._names:
            self._names.append(name)
        while len(self._names) > KEPT:
            with contextlib.suppress(OSError, RefusalError, SandboxError):
                self._scratch.remove(self._names.popleft())
        return str(self._scratch.root / name)


def _how(ended: ExecResult, timeout_s: float) -> str:
    if ended.timed_out:
        return f"ended by its time limit of {timeout_s:.0f} seconds"
    if ended.excess:
        return f"ended, since {ended.excess}"
    if ended.returncode < 0:
        return f"ended by signal {-ended.returncode}"
    nothing = "" if ended.stdout else ", no output"
    return f"exit code {ended.returncode}{nothing}"


def _cut(output: bytes, path: str) -> str:
    """Return head and tail, whole lines where that is near, and how to read what is between."""
    half = SHOWN_BYTES // 2
    begin = output.rfind(b"\n", half // 2, half) + 1 or half
    end = output.find(b"\n", len(output) - half, len(output) - half // 2) + 1 or len(output) - half
    first, last = output.count(b"\n", 0, begin) + 1, output.count(b"\n", 0, end)
    lines = f", lines {first} to {last}," if last >= first else ""
    where = f"read_file path={path} start={first}" if path else "it could not be kept"
    note = f"[{end - begin} bytes{lines} left out: {where}]"
    head, tail = (part.decode("utf-8", "replace") for part in (output[:begin], output[end:]))
    return f"{head.removesuffix(chr(10))}\n{note}\n{tail}"
