"""Says what ``--evolve`` found in recent history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopctl.cli.output import emit, emit_document, say
from loopctl.report.escape import one_line
from loopctl.report.wording import counted

if TYPE_CHECKING:
    from loopctl.domain import Task
    from loopctl.sources.evolving import LeftOut


class Listing:
    """What was found, kept to be printed at the end of a dry run."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.tasks: tuple[Task, ...] = ()
        self.left_out: tuple[LeftOut, ...] = ()

    def tell(self, tasks: "Sequence[Task]", left_out: "Sequence[LeftOut]") -> None:
        """Keep what was found, and say on stderr how much it is."""
        self.tasks, self.left_out = tuple(tasks), tuple(left_out)
        say(f"loop: recent history left {counted(len(tasks), 'task')}")
        for one in left_out:
            finding = one.finding
            what = f"{finding.trace.value} {finding.path} {finding.subject or finding.text}"
            say(f"  left out: {one_line(what)} ({one_line(one.why)})")

    def print(self, *, as_json: bool) -> None:
        """Print the tasks, and what became none."""
        if as_json:
            emit_document(self._document())
            return
        lines = [f"{counted(len(self.tasks), 'task')} in recent history"]
        for task in self.tasks:
            lines += [f"- {task.id} {one_line(task.title)}", f"    {one_line(_line(task))}"]
        emit("\n".join([*lines, ""]))

    def _document(self) -> dict[str, object]:
        return {
            "schema": 1,
            "tasks": [
                {
                    "id": task.id,
                    "title": task.title,
                    "area": list(task.area),
                    "verify_cmd": task.verify_cmd,
                    "prompt": task.prompt,
                }
                for task in self.tasks
            ],
            "left_out": [
                {
                    "trace": one.finding.trace.value,
                    "commit": one.finding.commit,
                    "path": one.finding.path,
                    "text": one.finding.subject or one.finding.text,
                    "why": one.why,
                }
                for one in self.left_out
            ],
        }


def _line(task: "Task") -> str:
    return f"red until: {task.verify_cmd}"
