"""``docs/reference/cli.md``: the help texts as ``loop`` prints them, so that they cannot drift."""

from typing import Final

import typer
from typer._click.core import Command, Context
from typer.core import TyperGroup

from loopctl.cli.app import build

WIDTH: Final = 100
"""Columns of the help texts."""

_HEAD: Final = """\
# Command line

Made from the help texts by `make docs`; do not edit. What the words mean, and the exit codes,
are in the public contract.
"""


def render() -> str:
    """Return the page."""
    group = typer.main.get_command(build())
    top = _context(group, "loop", None)
    sections = [_section("loop", top.get_help())]
    for name, command in _commands(group).items():
        if not command.hidden:
            sections.append(_section(f"loop {name}", _context(command, name, top).get_help()))
    return "\n".join([_HEAD, *sections])


def _commands(group: Command) -> dict[str, Command]:
    return dict(group.commands) if isinstance(group, TyperGroup) else {}


def _context(command: Command, name: str, parent: Context | None) -> Context:
    context = Context(command, info_name=name, parent=parent, **command.context_settings)
    context.terminal_width = WIDTH
    return context


def _section(title: str, text: str) -> str:
    body = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return f"## `{title}`\n\n```text\n{body}\n```\n"
