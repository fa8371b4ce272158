"""``[mcp.NAME]``: how a server of tools is reached, and which variables it may have.

Variables are named here and never held: settings are kept with a run, and keys must not be.
"""

import ipaddress
import re
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from loopctl.tomlsource.sections import Seconds, Section, Url, Variable, Word

ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9](_?[A-Za-z0-9-])*$")]
"""Becomes part of a tool's name, ``mcp__SERVER__TOOL``, so it has no double underscore."""

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TAKEN: Final = frozenset({"accept", "accept-encoding", "content-length", "content-type", "host"})


def _header(name: str) -> str:
    if not _HEADER.fullmatch(name):
        raise ValueError("is no name of an HTTP header")
    if name.lower() in _TAKEN or name.lower().startswith("mcp-"):
        raise ValueError("is a header of the protocol itself")
    return name


def _argument(text: str) -> str:
    if any(".." in path.split("/") for path in _paths(text)):
        raise ValueError("leads out of the sandbox; name the folder in full")
    return text


def _paths(word: str) -> tuple[str, ...]:
    """Return what in an argument, or in the value of ``--name=value``, is a path from here."""
    return tuple(
        value
        for value in (word, word.partition("=")[2])
        if value in {".", ".."} or value.startswith(("./", "../"))
    )


Header = Annotated[str, AfterValidator(_header)]
Argument = Annotated[Word, AfterValidator(_argument)]


class McpServerSettings(Section):
    """``[mcp.NAME]``: one server of tools, started by a command or found at a URL."""

    command: Annotated[tuple[Argument, ...], Field(strict=False, min_length=1)] | None = Field(
        default=None, description="The program and its arguments; `.` is the sandbox's worktree."
    )
    url: Url | None = Field(
        default=None, description="Instead of a command: where it answers (streamable HTTP)."
    )
    env: Annotated[tuple[Variable, ...], Field(strict=False)] = Field(
        default=(), description="Names of variables that the command is handed."
    )
    network: bool = Field(
        default=False,
        description="For a command in the worktree, which is confined: it may use the network.",
    )
    headers_env: dict[Header, Variable] = Field(
        default_factory=dict,
        description="For a URL: HTTP headers, each with the variable that holds its value.",
    )
    timeout_s: Seconds = Field(
        default=60, description="Seconds that its start may take, and each of its calls."
    )

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if self.command is not None and self.url is not None:
            raise ValueError("it has both a command and a url; keep one of them")
        if self.command is None and self.url is None:
            raise PydanticCustomError("incomplete", "it needs a command or a url")
        if self.url is None and self.headers_env:
            raise ValueError("it has headers_env, which only a url can use; a command has env")
        if self.command is None and self.env:
            raise ValueError("it has env, which only a command can use; a url has headers_env")
        if self.command is None and self.network:
            raise ValueError("it has network, which only a command in the worktree needs")
        return self

    @model_validator(mode="after")
    def _keeps_its_keys(self) -> Self:
        parts = urlsplit(self.url or "")
        if self.headers_env and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ValueError("it would send its headers_env unencrypted; use https://")
        return self

    @property
    def is_in_worktree(self) -> bool:
        """The command names the folder that it runs in, so it is meant to see a worktree."""
        return any(_paths(word) for word in (self.command or ())[1:])


def is_loopback(host: str) -> bool:
    """Return whether a host, by its name or address, is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
