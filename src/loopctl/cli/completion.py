"""What the shell offers: ids and tags of the manifest in the current folder, ids of runs.

Reads with the standard library alone and offers nothing on any doubt.
"""

import tomllib
from pathlib import Path
from typing import Any


def _tasks() -> list[dict[str, Any]]:
    here = Path.cwd()
    for folder in (here, *here.parents):
        path = folder / "tasks" / "ACTIVE.toml"
        if path.is_file():
            break
    else:
        return []
    try:
        tasks = tomllib.loads(path.read_text("utf-8-sig")).get("task", [])
    except (OSError, ValueError):
        return []
    return [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []


def task_ids(incomplete: str) -> list[str]:
    """Return the ids that begin so."""
    ids = (task.get("id") for task in _tasks())
    return [key for key in ids if isinstance(key, str) and key.startswith(incomplete)]


def areas(incomplete: str) -> list[str]:
    """Return the tags that begin so."""
    tags = (tag for task in _tasks() for tag in _listed(task.get("area")))
    return sorted({tag for tag in tags if isinstance(tag, str) and tag.startswith(incomplete)})


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def run_ids(incomplete: str) -> list[str]:
    """Return the runs that begin so, the newest first."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        runs = folder / ".local" / "runs"
        if runs.is_dir():
            names = (path.name for path in runs.iterdir())
            return sorted((name for name in names if name.startswith(incomplete)), reverse=True)
    return []
