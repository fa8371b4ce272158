"""A small repository, a scripted model on loopback, and `loop` as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopctl.testing import ScriptedModel

KEY = "sk-never-to-be-seen-4f1c9d"
TIMEOUT_S = 200

TASK = """
[[task]]
id = "{id}"
title = "Write {id}"
worker = "graph"
mode = "{mode}"
prompt = "Write the word into {id}.txt"
verify_cmd = "grep -q word {id}.txt"
"""


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    def task(self, name: str) -> dict[str, Any]:
        return next(one for one in self.document["tasks"] if one["id"] == name)


@dataclass
class Whole:
    """The repository and its model."""

    root: Path
    model: ScriptedModel
    env: dict[str, str] = field(default_factory=dict)

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=self.env, check=True, capture_output=True, timeout=60
        )
        return done.stdout.decode()

    def manifest(self, *tasks: str, mode: str = "relay", goal: str = "Write words") -> None:
        text = "".join(TASK.format(id=task, mode=mode) for task in tasks)
        (self.root / "tasks").mkdir(exist_ok=True)
        (self.root / "tasks" / "ACTIVE.toml").write_text(
            f'schema = 1\n[goal]\ntext = "{goal}"\n{text}'
        )

    def settings(self, more: str = "", *, price: bool = True) -> None:
        prices = "input_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n" if price else ""
        (self.root / "loop.toml").write_text(
            f'{more}\n[models.standard]\nname = "openai/scripted"\napi_base = "{self.model.url}"\n'
            f'api_key_env = "SCRIPTED_KEY"\nmax_output_tokens = 500\n{prices}'
        )

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "work")

    def loop(
        self,
        *words: str,
        env: dict[str, str] | None = None,
        start: tuple[str, ...] = ("-m", "loopctl"),
    ) -> Ended:
        done = subprocess.run(
            [sys.executable, *start, *words],
            cwd=self.root,
            env=self.env | (env or {}),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run(self, *words: str, **env: str) -> Ended:
        return self.loop(*words, "--no-sandbox", "--json", env=env)

    def on_branch(self, name: str) -> str:
        return self.git("show", f"loop/integration:{name}")


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Callable[..., Whole]]:
    """Make the repository with a model that plays a script."""
    with ExitStack() as stack:

        def made(script: Any, **options: Any) -> Whole:
            model = stack.enter_context(ScriptedModel(script, key=KEY, **options))
            root = tmp_path / "project"
            home = tmp_path / "home"
            for folder in (root, home):
                folder.mkdir()
            (home / ".gitconfig").write_text(
                "[user]\n\tname = Some One\n\temail = one@example.org\n"
            )
            env = {
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "LANG": "C.UTF-8",
                "SCRIPTED_KEY": KEY,
            }
            one = Whole(root, model, env)
            one.git("init", "-q", "-b", "main")
            (root / "README").write_text("words\n")
            one.manifest("T1")
            one.settings()
            one.commit()
            return one

        yield made
