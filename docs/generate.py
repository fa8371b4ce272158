"""Writes the pages of ``docs/reference/`` that are made from code: ``python docs/generate.py``.

A test compares the pages with what this makes, so that they cannot fall behind.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from loopctl import settings
from loopctl.cli import reference
from loopctl.domain import TaskStatus
from loopctl.engine.transitions import TRANSITIONS
from loopctl.manifest import keys

REFERENCE = Path(__file__).parent / "reference"
ENGINE = Path(__file__).parent / "design" / "engine.md"
BEGIN = "<!-- states: begin -->"
END = "<!-- states: end -->"
NOTE = "<!-- Made by docs/generate.py; change the code it is made from. -->\n"
TIERS = ("cheap", "standard", "premium", "embed")


def settings_page() -> str:
    """Return ``settings.md``: every setting with its default."""
    rows = []
    for name, default, description in settings.table():
        parts = name.split(".")
        if parts[0] == "models":
            if parts[1] != TIERS[0]:
                continue
            parts[1] = "TIER"
        rows.append((f"`{'.'.join(parts)}`", f"`{default}`" if default else "", description))
    return f"""# Settings

{NOTE}
All settings are optional. They stand in `loop.toml` at the root of the checkout, or under
`[tool.loopctl]` in `pyproject.toml`. For one value, the first of these that names it counts:

1. the command line;
2. the environment: `LOOP_SET_SECTION__KEY`, for example `LOOP_SET_LOOP__JOBS=2` or
   `LOOP_SET_MODELS__CHEAP__NAME=openai/gpt-x-mini`; the value is read as TOML where it is TOML,
   else as text;
3. `loop.toml`;
4. `pyproject.toml`;
5. the default.

A name that is not in this table, or a value that does not fit, ends the command with exit code 2;
all of them are named in one go, with file and line. `loop doctor` prints each value and where it
came from. A run keeps the settings that it was begun with.

`TIER` is one of {", ".join(f"`{tier}`" for tier in TIERS)}; one configured tier serves the other
two, `embed` stands for itself. `NAME` is a name of your choice.

{_table(("setting", "default", "meaning"), rows)}"""


def manifest_page() -> str:
    """Return ``manifest.md``: every key of every table."""
    sections = (
        ("The whole file", keys.TOP_KEYS),
        ("`[goal]`", keys.GOAL_KEYS),
        ("An entry of `done_when`: exactly one of", keys.CRITERION_KEYS),
        ("`[[task]]`, and `[defaults]`", keys.TASK_KEYS),
        ("An entry of `options`", keys.OPTION_KEYS),
        ("`budget`", keys.BUDGET_KEYS),
    )
    tables = "\n".join(
        f"## {title}\n\n"
        + _table(
            ("key", "value", "where it is missing", "meaning"),
            ((f"`{key.name}`", key.wants, key.default, key.meaning) for key in section),
        )
        for title, section in sections
    )
    return f"""# The manifest

{NOTE}
`tasks/ACTIVE.toml` holds the goal and the tasks. An unknown key, a value that does not fit, an id
that is used twice, and `deps` that lead nowhere or in a circle end the command with exit code 2;
all of them are named in one go, with their lines, and nothing is run or written.

`loop` writes back `status` and nothing else. Comments, order, spacing and line endings stay as
they are. Numbers are finite and not negative. Only `done` satisfies a dependency.

{tables}"""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def engine_page() -> str:
    """Return ``design/engine.md`` with the state diagram as the table draws it."""
    page = ENGINE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{state_diagram()}{END}{after}"


def state_diagram() -> str:
    """Return ``engine/transitions.py`` as a mermaid block: an arrow for each pair of statuses."""
    arrows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for state in TaskStatus:
        for signal, target in TRANSITIONS.get(state, {}).items():
            arrows[_name(state), _name(target)].append(signal.value)
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state}" as {_name(state)}' for state in TaskStatus if "-" in state]
    lines += ["    [*] --> backlog", "    [*] --> todo"]
    lines += [f"    {old} --> {new}: {', '.join(by)}" for (old, new), by in arrows.items()]
    return "\n".join([*lines, "```", ""])


def _name(state: TaskStatus) -> str:
    return state.value.replace("-", "_")


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    for path, text in (
        (REFERENCE / "settings.md", settings_page()),
        (REFERENCE / "manifest.md", manifest_page()),
        (REFERENCE / "cli.md", reference.render()),
        (ENGINE, engine_page()),
    ):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
