"""``loop init``: writes an example manifest to start from."""

from typing import Final

import typer

from loopctl.cli.opening import Directory, commands_for, opened
from loopctl.cli.output import emit
from loopctl.errors import UsageError
from loopctl.report.escape import one_line

EXAMPLE: Final = """\
# The goal and the tasks that `loop` drives; change everything below.
schema = 1

[goal]
text = "Say in a sentence what is to be reached"
# done_when = [
#   { check = "python -m pytest -q" },    # a command that must exit 0
# ]

[defaults]                                # any task key may stand here
worker = "command"                        # runs the task's `command` in a sandbox
verify_cmd = "true"                       # the test of your project, such as "python -m pytest -q"

[[task]]
id = "T1"
title = "Write a greeting"
status = "todo"                           # loop writes it back: done, stuck, needs-human ...
command = "echo hello > greeting.txt"
verify_cmd = "grep -q hello greeting.txt" # accepted only when this exits 0

[[task]]
id = "T2"
title = "Make the greeting longer"
status = "todo"
deps = ["T1"]                             # begins when T1 is done
command = "echo world >> greeting.txt"
verify_cmd = "grep -q world greeting.txt"
# area = ["docs"]                         # a tag for `loop --area docs`
# priority = 1                            # higher runs first among those that can run
# budget = { loops = 5, wall_s = 600 }
"""


def init(ctx: typer.Context, directory: Directory = None) -> None:
    """Write an example manifest; an existing one is left alone."""
    project = opened(ctx, directory)
    path = project.manifest.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError as error:
        raise UsageError(f"{path} exists already and was left as it is") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    commands = commands_for(project)
    emit(
        f"Wrote {one_line(str(path))}. Next: put your tasks into it, look at "
        f"`{commands.drive('--dry-run')}`, then run `{commands.drive()}`.\n"
    )
