"""Runs the hooks of a run: outside of the confinement, in the user's checkout, without keys.

They are the user's own programs: named by settings that are frozen at the start of the run, with
their files. A worktree has no say in which are run, and one that fails blocks the call.
"""

import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.calls import Action, Ruling, ToolCall, ToolResult
from loopctl.errors import SandboxError
from loopctl.events import Noticed
from loopctl.hooksettings import EVERY, TIMEOUT_S, HookSettings
from loopctl.ports import Emit
from loopctl.sandbox import process
from loopctl.sandbox.environment import command_environment
from loopctl.sandbox.hooks import form
from loopctl.sandbox.hooks.frozen import PROJECT_DIR, Frozen, files_of
from loopctl.sandbox.hooks.verdict import Failure, strictest, verdict
from loopctl.toolports import PinStore

MAX_SAID_BYTES: Final = 1 << 20
"""What is read of a hook's output."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook, ready to be run.

    Attributes:
        name: As a person is told of it.
        files: That its command names.
    """

    name: str
    settings: HookSettings
    files: tuple[Path, ...]

    def is_for(self, event: str, tool: str) -> bool:
        """Return whether it is run for a tool at that event."""
        wanted = self.settings.match
        return self.settings.event == event and (
            wanted == EVERY or any(re.fullmatch(wanted, name) for name in form.names(tool))
        )


class Hooks:
    """All hooks of one run.

    Args:
        commands: ``[policy] pre_tool_use``.
        settings: ``[hooks]``.
        run_id: The run.
        checkout: The user's.
        env: The caller's environment.
        pins: Keeps what their files were at the start of the run.
        emit: Told of a hook that could not be asked, once for each way in which it failed.
        cancel: Ends one that runs.
    """

    def __init__(
        self,
        commands: Sequence[str],
        settings: Mapping[str, HookSettings],
        *,
        run_id: str,
        checkout: Path,
        env: Mapping[str, str],
        pins: PinStore,
        emit: Emit,
        cancel: threading.Event | None = None,
    ) -> None:
        self._checkout = checkout
        self._env = _environment(env, checkout)
        self._emit = emit
        self._cancel = cancel
        self._told: set[str] = set()
        bare = {f"`{one}`": HookSettings(command=one, timeout_s=TIMEOUT_S) for one in commands}
        home = env.get("HOME", "")
        self._hooks = tuple(
            Hook(name, one, files_of(one.command, checkout, home))
            for name, one in {**bare, **settings}.items()
        )
        self._frozen = Frozen(f"hooks:{run_id}", pins)
        self._frozen.hold(tuple(path for hook in self._hooks for path in hook.files))

    def at(self, workdir: Path) -> "HooksAt":
        """Return the hooks for the calls of a sandbox whose worktree is ``workdir``."""
        return HooksAt(self, workdir)

    def before(self, call: ToolCall, workdir: Path) -> Ruling:
        """Return the strictest of what they say; none is asked any more after one that denies.

        Raises:
            CancelledError: The run was asked to stop.
        """
        ruling = Ruling()
        said = form.before(call, workdir)
        for hook in self._hooks:
            if hook.is_for("pre_tool_use", call.tool):
                ruling = strictest(ruling, self._asked(hook, said))
            if ruling.action is Action.DENY:
                break
        return ruling

    def after(self, call: ToolCall, workdir: Path, result: ToolResult) -> None:
        """Tell those that observe; what they say or fail at changes nothing.

        Raises:
            CancelledError: The run was asked to stop.
        """
        said = form.after(call, workdir, result)
        for hook in self._hooks:
            if hook.is_for("post_tool_use", call.tool):
                came = self._run(hook, said)
                if isinstance(came, Failure):
                    self._notice(f"the hook {hook.name} was not told of a call: it {came.reason}")

    def _asked(self, hook: Hook, said: bytes) -> Ruling:
        came = self._run(hook, said)
        if isinstance(came, Failure):
            why = f"the hook {hook.name} {came.reason}; what it has not let through is not done"
            self._notice(why)
            return Ruling(Action.DENY, why)
        if came.action is Action.ALLOW:
            return Ruling()
        return Ruling(came.action, f"the hook {hook.name} says: {came.reason}")

    def _run(self, hook: Hook, said: bytes) -> Ruling | Failure:
        if changed := self._frozen.changed(hook.files):
            return Failure(f"is not run, since {changed} is not what it was when the run began")
        try:
            ended = process.run(
                ["/bin/sh", "-c", hook.settings.command],
                cwd=self._checkout,
                env=self._env,
                timeout_s=hook.settings.timeout_s,
                stdin=said,
                max_output_bytes=MAX_SAID_BYTES,
                cancel=self._cancel,
            )
        except (SandboxError, OSError) as exc:
            return Failure(f"could not be run: {exc}")
        return verdict(ended)

    def _notice(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._emit(Noticed(text=text))


@dataclass(frozen=True, slots=True)
class HooksAt:
    """The port ``CallHooks`` for one worktree."""

    hooks: Hooks
    workdir: Path

    def before(self, call: ToolCall) -> Ruling:
        """Return what the hooks say of a call that is about to be made."""
        return self.hooks.before(call, self.workdir)

    def after(self, call: ToolCall, result: ToolResult) -> None:
        """Tell the hooks what a call came to."""
        self.hooks.after(call, self.workdir, result)


def _environment(env: Mapping[str, str], checkout: Path) -> dict[str, str]:
    """Return what a hook may know: what commands may, and the user's own home and PATH."""
    scratch = Path(env.get("TMPDIR") or "/tmp")  # noqa: S108 - the user's own program, as they run it
    own = {"PATH": env.get("PATH") or os.defpath, PROJECT_DIR: str(checkout)}
    home = Path(env.get("HOME") or "/nonexistent")
    return command_environment(env, own, shim=checkout, home=home, scratch=scratch)
