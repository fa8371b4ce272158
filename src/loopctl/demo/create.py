"""Writes the demo's project into a folder, with its history and its manifest.

The project is ``tally``, a small library that adds up expenses: real code with real flaws, tests
that are red until its ten tasks are done, and the codemods that do them. Its files stand below
``project/`` as they come out, but for ``@PYTHON@`` in the manifest, which stands for the
interpreter, and for ``gitignore``, which gets its dot.
"""

import importlib.util
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from loopctl.errors import MachineError, UsageError

Git = Callable[[Sequence[str]], str]
"""Runs git with these arguments in the demo's folder; raises where git does not succeed."""

NEEDED: Final = ("pytest", "ruff")
MANIFEST: Final = "tasks/ACTIVE.toml"

_AUTHOR: Final = ("-c", "user.name=Demo", "-c", "user.email=demo@example.invalid")
_RENAMED: Final = {"gitignore": ".gitignore"}

HISTORY: Final[Mapping[str, tuple[str, ...]]] = {
    "Read amounts and dates": (
        ".gitignore",
        "pyproject.toml",
        "tally/__init__.py",
        "tally/amounts.py",
        "tally/dates.py",
    ),
    "Read rows and add them up by category": (
        "README.md",
        "tally/",
        "tests/test_amounts.py",
        "tests/test_cli.py",
        "tests/test_reader.py",
        "tests/test_summary.py",
    ),
    "Say by tests what 0.2 has to do": ("CHANGELOG.md", "tests/"),
    "Keep the codemods with the code": ("tools/",),
    "List the tasks of 0.2": (MANIFEST,),
}
"""The commits in their order: a message, and how the paths begin that it is the first to add."""


def create_project(folder: Path, python: str, git: Git) -> None:
    """Make the demo's project in ``folder``, on the branch ``main`` of a new repository.

    Args:
        folder: Empty, or not there yet.
        python: The interpreter that the manifest's commands call, as an absolute path; the one
            that this runs in, for which ``ruff`` and ``pytest`` are looked up.
        git: Runs git in ``folder``.

    Raises:
        MachineError: ``ruff`` or ``pytest`` is not installed.
        UsageError: ``folder`` holds something, or is no folder; it is left as it is.
    """
    require_tools()
    _refuse_used(folder)
    folder.mkdir(parents=True, exist_ok=True)
    git(["init", "--quiet", "--initial-branch=main"])
    left = dict(project_files(python))
    for message, prefixes in HISTORY.items():
        chosen = [name for name in left if name.startswith(prefixes)]
        for name in chosen:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(left.pop(name))
        git(["add", "--force", "--", *chosen])
        git([*_AUTHOR, "-c", "commit.gpgSign=false", "commit", "--quiet", "--message", message])


def require_tools() -> None:
    """Return if the demo's tools can be imported.

    Raises:
        MachineError: One of them cannot; says how to install it.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MachineError(
            f"the demo needs {' and '.join(missing)}, which this Python does not have; "
            "run: pip install 'loopctl-harness[demo]'"
        )


def project_files(python: str) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the project: its path in the project, with slashes, and what it holds."""
    for name, file in _walk(files("loopctl.demo").joinpath("project"), ""):
        content = file.read_bytes()
        if name == MANIFEST:
            content = content.replace(b"@PYTHON@", _in_toml(shlex.quote(python)).encode())
        yield _RENAMED.get(name, name), content


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_file():
            yield prefix + entry.name, entry
        elif entry.name[0] not in "._":
            yield from _walk(entry, f"{prefix}{entry.name}/")


def _in_toml(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _refuse_used(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is not an empty folder; name one that is, or a new one")
