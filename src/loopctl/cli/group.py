"""``loop``, ``loop T440``, ``loop --jobs 2`` and ``loop status`` in one Typer application.

What stands behind the group's own options decides: the name of a command is that command; all
else belongs to ``run``. ``words.py`` then reads the words.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer._click.core import Context, Parameter
from typer._click.formatting import HelpFormatter
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from loopctl.cli.faults import exit_codes
from loopctl.cli.table import COMMANDS

DEFAULT = "run"
DIRECTORY = "loopctl.directory"
IDS_ONLY = "loopctl.ids_only"
AS_JSON = "loopctl.as_json"
WORDS = "loopctl.words"
"""The words behind ``loop``, as they were given."""


def directory_of(ctx: Context, own: Path | None = None) -> Path:
    """Return where a command works: ``-C`` of the group, then ``-C`` of the command."""
    base: Path = ctx.meta.get(DIRECTORY) or Path.cwd()
    return base / own if own else base


class RunCommand(TyperCommand):
    """``run``: remembers whether its words stood behind ``--``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments; a lone goal that begins with a dash is no option."""
        ctx.meta[IDS_ONLY] = "--" in args
        if len(args) == 1 and is_dashed_goal(args[0]):
            args = [f"--goal={args[0]}"]
        return super().parse_args(ctx, args)


def is_dashed_goal(arg: str) -> bool:
    """Return whether ``arg`` is a goal such as ``"- fix it"``, not ``--verify=make test``."""
    name = arg.split("=", 1)[0]
    return arg.startswith("-") and any(char.isspace() for char in name)


class LoopGroup(TyperGroup):
    """The group whose default command is ``run``."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Put ``run`` before words that name no command."""
        ctx.meta[AS_JSON] = "--json" in args[: args.index("--") if "--" in args else None]
        ctx.meta[WORDS] = tuple(args)
        at = self._behind_own_options(ctx, args)
        rest = args[at:]
        is_named = bool(rest) and rest[0] in self.commands
        is_cut_short = at > len(args) or (ctx.resilient_parsing and not rest)
        if not is_named and not is_cut_short:
            args = [*args[:at], DEFAULT, *rest]
        return super().parse_args(ctx, args)

    def _behind_own_options(self, ctx: Context, args: Sequence[str]) -> int:
        """Where the group's options end; past the end when the last one lacks its value."""
        takes_value = {
            name: not getattr(param, "is_flag", False)
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
        }
        at = 0
        while at < len(args):
            name = args[at].split("=", 1)[0]
            if name in takes_value:
                at += 2 if takes_value[name] and "=" not in args[at] else 1
            elif args[at].startswith("-C") and not args[at].startswith("--"):
                at += 1
            else:
                break
        return at

    def invoke(self, ctx: Context) -> Any:
        """Run the command; whatever it raises becomes a message and an exit code."""
        directory = ctx.params.get("directory") or Path.cwd()
        with exit_codes(directory, as_json=ctx.meta.get(AS_JSON, False)):
            return super().invoke(ctx)

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the options of a run, then the group's own, then the commands."""
        run = self.commands[DEFAULT]
        own = {name for param in self.get_params(ctx) for name in param.opts}
        records = [
            record
            for param in run.params
            if not own & set(param.opts) and (record := _record(param, ctx))
        ]
        with formatter.section("Options of a run"):
            formatter.write_dl(records)
        super().format_options(ctx, formatter)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Return commands, and what ``run`` offers: its options, task ids."""
        found = super().shell_complete(ctx, incomplete)
        run = self.commands[DEFAULT]
        with run.make_context(DEFAULT, [], parent=ctx, resilient_parsing=True) as inner:
            offered = run.shell_complete(inner, incomplete)
            if not incomplete.startswith("-"):
                for param in run.params:
                    if param.param_type_name == "argument":
                        offered.extend(param.shell_complete(inner, incomplete))
        known = {item.value for item in found}
        return [*found, *(item for item in offered if item.value not in known)]


def _record(param: Parameter, ctx: Context) -> tuple[str, str] | None:
    return None if param.param_type_name == "argument" else param.get_help_record(ctx)


def command_names() -> tuple[str, ...]:
    """Return the names of all commands."""
    return tuple(COMMANDS)
