"""``--test-debug-fix`` and ``--evolve``: what goes together, and the work that it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from loopctl.errors import UsageError

if TYPE_CHECKING:
    from loopctl.bootstrap import Listener, Project
    from loopctl.cli.driving import Work
    from loopctl.domain import Manifest, RunOptions
    from loopctl.events import RunEnded
    from loopctl.launch import Ask
    from loopctl.place import Own


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the options say about tasks that are drawn from the tree."""

    test_debug_fix: bool
    evolve: bool
    commits: int | None
    command: str | None
    worker: str | None
    mode: str | None
    dry_run: bool = False

    def __bool__(self) -> bool:
        """Say whether tasks are drawn."""
        return self.test_debug_fix or self.evolve

    def check(self, verify: str | None, *, has_others: bool) -> None:
        """Refuse what does not go together.

        Args:
            verify: The value of ``--verify``.
            has_others: Ids, a goal or tags are named as well.

        Raises:
            UsageError: Says what to leave out, or to add.
        """
        if self.commits is not None and not self.evolve:
            raise UsageError("--commits says how far --evolve looks back; give both")
        if not self:
            if self.command is not None:
                raise UsageError("--command is for --test-debug-fix and --evolve; give one of them")
            return
        name = "--test-debug-fix" if self.test_debug_fix else "--evolve"
        if self.test_debug_fix and self.evolve:
            raise UsageError("--test-debug-fix and --evolve: give one of them")
        if has_others:
            raise UsageError(f"{name} makes its own tasks; leave ids, goals and --area out")
        if self.test_debug_fix and self.dry_run:
            raise UsageError(
                "--dry-run runs nothing, and only a run of the tests tells what is red; leave it "
                "out, or run the tests yourself"
            )
        self._check_command()
        for option, text in (("--verify", verify), ("--command", self.command)):
            _check_text(option, text or "")

    def _check_command(self) -> None:
        if self.command is None:
            if self.worker == "command" and not self.dry_run:
                raise UsageError("--worker command: say with --command what it runs")
        elif not self.command.strip() or self.worker not in {None, "command"}:
            raise UsageError(
                "--command is what the worker command runs; name no other, and no empty one"
            )


def _check_text(option: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(f"{option}: it is no UTF-8 text; type it again") from exc


def words_of(own: "Own", manifest: "Manifest") -> tuple[str, ...]:
    """Return the words that ask for the tasks of a run again."""
    from loopctl.place import Own
    from loopctl.sources.evolving import commits_of

    task = manifest.tasks[0]
    if own is Own.FIX:
        given = ("--verify", task.verify_cmd or "")
    else:
        given = ("--commits", str(commits_of(manifest.goal.text)))
    worker = () if task.command is None else ("--command", task.command)
    return (f"--{own.value}", *given, *worker)


def drawing(project: "Project", options: "RunOptions", drawn: Drawn, *, as_json: bool) -> "Work":
    """Return the work; it ends the command where there is nothing to drive."""
    if drawn.evolve:
        return _evolving(project, options, drawn, as_json=as_json)
    from loopctl.cli.mending import print_green, tell
    from loopctl.domain import Mode
    from loopctl.mending import Mending

    mode = Mode(drawn.mode) if drawn.mode is not None else None
    source = Mending(options.verify_cmd, drawn.command, mode, tell)

    def work(listeners: "Sequence[Listener]", person: "Ask | None") -> "RunEnded":
        ended = project.draw(source, options, listeners, person)
        if ended is None:
            print_green(as_json=as_json)
            raise typer.Exit
        return ended

    return work


def _evolving(project: "Project", options: "RunOptions", drawn: Drawn, *, as_json: bool) -> "Work":
    from loopctl.cli.evolving import Listing
    from loopctl.evolving import COMMITS, Evolving

    listing = Listing()
    count = drawn.commits or COMMITS
    source = Evolving(
        count, options.verify_cmd, drawn.command, is_dry=drawn.dry_run, tell=listing.tell
    )

    def work(listeners: "Sequence[Listener]", person: "Ask | None") -> "RunEnded":
        ended = project.draw(source, options, listeners, person)
        if ended is None:
            listing.print(as_json=as_json)
            raise typer.Exit
        return ended

    return work
