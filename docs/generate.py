"""Writes the pages of ``docs/reference/`` that are made from code: ``python docs/generate.py``.

A test compares the pages with what this makes, so that they cannot fall behind.
"""

from collections.abc import Iterable
from pathlib import Path

from loopctl import settings
from loopctl.cli.reference import render
from loopctl.manifest import keys

REFERENCE = Path(__file__).parent / "reference"
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


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    pages = {"settings.md": settings_page(), "manifest.md": manifest_page(), "cli.md": render()}
    for name, text in pages.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
