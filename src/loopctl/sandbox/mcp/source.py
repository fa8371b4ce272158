"""How a server is reached: what it is called, how it is started or addressed, what it may know."""

import contextlib
import hashlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from loopctl.calls import canonical
from loopctl.domain import ExecResult
from loopctl.errors import EnvironmentFaultError, SandboxError
from loopctl.mcpsettings import McpServerSettings, is_loopback
from loopctl.ports import Confinement
from loopctl.records import Confined
from loopctl.sandbox import lasting
from loopctl.sandbox.environment import command_environment, write_home
from loopctl.sandbox.mcp.texts import Secrets, one_line

if TYPE_CHECKING:
    from loopctl.sandbox.mcp.connection import Connection
    from loopctl.sandbox.mcp.stdio import ProcessStreams

_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all servers of a run share.

    Attributes:
        checkout: The user's; where the program of a command is looked up that has a relative path.
        folder: Private to the run; servers get their homes in there. Made when it is needed.
        env: The caller's environment.
    """

    checkout: Path
    folder: Path
    env: Mapping[str, str]
    confinement: Confinement


class Source:
    """One server as the settings have it.

    Args:
        name: In the settings.
        settings: ``[mcp.NAME]``.
        around: What it shares with others.
    """

    def __init__(self, name: str, settings: McpServerSettings, around: Surroundings) -> None:
        self.name = name
        self.settings = settings
        self._around = around
        variables = (*settings.env, *settings.headers_env.values())
        values = [(around.env[name], name) for name in variables if name in around.env]
        self.secrets = Secrets((name, value) for value, name in values)

    @property
    def scope(self) -> str:
        """Under which its tools are pinned: another command or address is another server."""
        where = canonical([*(self.settings.command or ()), self.settings.url or ""])
        return f"mcp:{self.name}:{hashlib.sha256(where).hexdigest()[:16]}"

    def fault(self, reason: str, account: str = "") -> EnvironmentFaultError:
        """Return the error for a server that cannot be had.

        Args:
            reason: The predicate of a sentence about it.
            account: What it has said for itself.
        """
        what = " ".join(
            [
                f"the tool server {self.name!r} ({self._address()}) {reason}.",
                *([account] if account else []),
                # One that names the setting has said what to do.
                *([] if self._table in reason else [self._remedy()]),
            ]
        )
        return EnvironmentFaultError(self.secrets.hide(what))

    def connection(self, worktree: Path | None) -> "tuple[Connection, ProcessStreams | None]":
        """Return a connection to be served, and the streams of its process where it has one.

        Args:
            worktree: Where it runs; an empty folder of its own where ``None``.

        Raises:
            EnvironmentFaultError: A variable that it is to have is not set.
        """
        # The SDK takes two seconds to import, and many runs have no servers.
        from loopctl.sandbox.mcp.connection import Connection  # noqa: PLC0415
        from loopctl.sandbox.mcp.http import http_streams  # noqa: PLC0415
        from loopctl.sandbox.mcp.refusals import Named  # noqa: PLC0415
        from loopctl.sandbox.mcp.stdio import ProcessStreams  # noqa: PLC0415

        timeout_s = self.settings.timeout_s
        if self.settings.url is None:
            given = {name: self._variable(name) for name in self.settings.env}
            streams = ProcessStreams(lambda: self._begin(worktree, given))
            return Connection(streams.open, timeout_s), streams
        url = self.settings.url
        headers = {
            header: _header(header, self._variable(variable))
            for header, variable in self.settings.headers_env.items()
        }
        streams_of = partial(
            http_streams,
            url,
            headers,
            named=Named(self._table, self.settings.headers_env),
            timeout_s=timeout_s,
            is_loopback=is_loopback(urlsplit(url).hostname or ""),
        )
        return Connection(streams_of, timeout_s), None

    def _begin(self, worktree: Path | None, given: Mapping[str, str]) -> lasting.LastingProcess:
        folder = self._around.folder / self.name
        home, scratch, empty = (folder / name for name in ("home", "tmp", "work"))
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        for made in (scratch, empty):
            made.mkdir(mode=0o700, exist_ok=True)
        write_home(home)
        confined = self._confined(worktree, (home, scratch))
        path = self._around.env.get("PATH") or os.defpath
        started = lasting.begin(
            confined.argv,
            cwd=worktree or empty,
            env=command_environment(
                self._around.env,
                # No `loop` on its PATH: a server has nothing to say to the harness.
                {"PATH": path, **given},
                shim=folder,
                home=home,
                scratch=scratch,
            ),
            has_keeper=confined.has_keeper,
        )
        if isinstance(started, ExecResult):
            said = started.stderr.decode("utf-8", "replace").removeprefix("loop: ").strip()
            raise EnvironmentFaultError(f"cannot be started: {one_line(said, _SHOWN)}")
        return started

    def _confined(self, worktree: Path | None, writable: tuple[Path, ...]) -> Confined:
        """Return how it is started: confined in a worktree, where it meets what workers wrote.

        Elsewhere it is a program of the user's own, with nothing of a worker's around it.
        """
        command = self.settings.command or ()
        argv = (self._program(command[0]), *command[1:])
        if worktree is None:
            return Confined(argv)
        try:
            return self._around.confinement.wrap(
                argv,
                workdir=worktree,
                writable=writable,
                kept=self._kept(argv),
                network=self.settings.network,
            )
        except SandboxError as error:
            raise EnvironmentFaultError(f"cannot be started: {error}") from error

    def _kept(self, argv: tuple[str, ...]) -> tuple[Path, ...]:
        """Return what of the checkout the command names in full: the folders of files.

        The worktree stands in the checkout's place, and a worker must not get to be the server.
        """
        checkout = self._around.checkout
        found: dict[Path, None] = {}
        for word in (part for one in argv for part in (one, one.partition("=")[2])):
            place = Path(os.path.normpath(word)) if word.startswith(os.sep) else checkout
            if checkout in place.parents and place.exists():
                is_folder = place.is_dir() or place.parent == checkout
                found[place if is_folder else place.parent] = None
        return tuple(found)

    def _program(self, word: str) -> str:
        """Return the program: one with a relative path is the user's, never the worktree's."""
        if os.sep in word and not word.startswith(os.sep):
            return os.path.normpath(self._around.checkout / word)
        return word

    def _variable(self, name: str) -> str:
        value = self._around.env.get(name)
        if value is None:
            raise EnvironmentFaultError(
                f"is to be handed the variable {name}, which is not set; set it, or take it out"
            )
        return value

    def _address(self) -> str:
        if self.settings.url is not None:
            parts = urlsplit(self.settings.url)
            # What comes after the path may be a key.
            shown = f"{parts.scheme}://{parts.netloc}{parts.path}"
        else:
            shown = shlex.join(self.settings.command or ())
        return one_line(shown, _SHOWN)

    @property
    def _table(self) -> str:
        return f"[mcp.{self.name}]"

    def _remedy(self) -> str:
        if self.settings.url is not None:
            return f"See that it runs and lets you in, or mend {self._table}."
        inside = ""
        if self.settings.is_in_worktree and self._around.confinement.is_holding:
            # By hand it works: what it lacks is inside.
            inside = "In the worktree it reads of other folders only what [sandbox] read names. "
        return (
            f"{inside}Run its command by hand to see more, or mend {self._table} (timeout_s among "
            "it)."
        )


def _header(header: str, value: str) -> str:
    """Return what is sent: credentials without a scheme are a bearer's."""
    text = value.strip()
    return f"Bearer {text}" if header.lower() == "authorization" and " " not in text else text
