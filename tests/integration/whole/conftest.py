"""A small repository, a scripted model on loopback, and `loop` as a process of its own."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
class Attended:
    """`loop` with somebody at its standard input, who reads what stands on standard error."""

    process: "subprocess.Popen[bytes]"
    keyboard: int
    said: str = ""
    read: int = 0

    def until(self, text: str) -> str:
        """Read on until a text has come; return what came up to its end."""
        while text not in self.said[self.read :]:
            more = self._more()
            assert more, f"waited for {text!r}, and then it ended:\n{self.said}"
            self.said += more
        begun, self.read = self.read, self.said.index(text, self.read) + len(text)
        return self.said[begun : self.read]

    def type(self, line: str) -> None:
        os.write(self.keyboard, f"{line}\n".encode())

    def _more(self) -> str:
        assert self.process.stderr is not None
        stderr = self.process.stderr.fileno()
        assert select.select([stderr], [], [], TIMEOUT_S)[0], f"nothing more came:\n{self.said}"
        return os.read(stderr, 1 << 16).decode()

    def ended(self) -> Ended:
        """Return how it ended, once it has."""
        while more := self._more():
            self.said += more
        code = self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.seek(0)
        return Ended(code, self.process.stdout.read().decode(), self.said)


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

    @contextmanager
    def attended(self, *words: str) -> Iterator[Attended]:
        """Run it at a terminal of its own; only its standard input is one."""
        keyboard, stdin = os.openpty()
        out = self.root.parent / "stdout"
        try:
            with (
                out.open("w+b") as stdout,
                subprocess.Popen(
                    [sys.executable, "-m", "loopctl", *words, "--json"],
                    cwd=self.root,
                    env=self.env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                ) as process,
            ):
                process.stdout = stdout
                try:
                    yield Attended(process, keyboard)
                finally:
                    process.kill()
        finally:
            os.close(keyboard)
            os.close(stdin)

    @contextmanager
    def begun(self, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run it with nobody there, and do not wait for its end."""
        with subprocess.Popen(
            [sys.executable, "-m", "loopctl", *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

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
