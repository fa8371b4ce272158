"""The frontier over 10,000 tasks, from bytes to the first task, against ``tomllib`` alone."""

import gc
import random
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from loopctl.manifest.frontier import Frontier
from loopctl.manifest.toml import TomlManifest

NAME = "frontier of 10,000 tasks / tomllib.loads of the same bytes"
LIMIT = 1.5
TASKS = 10_000
ROUNDS = 3


def manifest_text(tasks: int = TASKS, seed: int = 1) -> str:
    """Return a manifest as a large project would have it: prompts, deps, commands, caps."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable text, no secret
    statuses = ("todo", "todo", "todo", "done", "done", "backlog", "stuck")
    goal = '[goal]\ntext = "Move every module"\ndone_when = [{ check = "python -m pytest -q" }]\n'
    parts = [f'schema = 1\n\n{goal}\n[defaults]\nmodel = "standard"\n']
    for number in range(tasks):
        earlier = {f'"T{chance.randrange(number)}"' for _ in range(min(number, 3))}
        parts.append(
            f'\n[[task]]  # module {number}\nid = "T{number}"\n'
            f'title = "Move module_{number} to the new interface"\n'
            f'status = "{chance.choice(statuses)}"\narea = ["core", "part-{number % 40}"]\n'
            f"deps = [{', '.join(sorted(earlier))}]\npriority = {number % 5}\n"
            f'verify_cmd = "python -m pytest -q tests/test_module_{number}.py"\n'
            f'prompt = """\nReplace the old calls in src/module_{number}.py by the new ones.\n'
            'Keep the public names. Say in the module\'s docstring what has changed.\n"""\n'
            'accept = ["no call of the old interface is left", "all tests of the module pass"]\n'
            "budget = { tokens = 200000, usd = 1.5, loops = 25 }\n"
        )
    return "".join(parts)


def run() -> dict[str, float]:
    """Return the ratio and the best of some rounds of both, in seconds."""
    text = manifest_text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ACTIVE.toml"
        path.write_text(text, encoding="utf-8")
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(ROUNDS):  # by turns, so that a busy machine is busy for both
            bare.append(_seconds(lambda: tomllib.loads(path.read_text(encoding="utf-8"))))
            ours.append(_seconds(lambda: Frontier(TomlManifest(path, "m").load()).next()))
    return {"ratio": min(ours) / min(bare), "loop": min(ours), "tomllib": min(bare)}


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun
