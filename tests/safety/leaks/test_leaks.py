"""Twelve planted keys, whole runs, and every byte that these wrote or said."""

import base64
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from loopctl.cli.app import build
from loopctl.testing import HttpError, ScriptedCall, ScriptedModel, ScriptedReply

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("leak_search", HERE / "search.py")
assert _spec is not None
assert _spec.loader is not None
search = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(search)

PLACES = (
    *("worker", "verify", "trace", "setup", "message", "answer"),
    *("reply", "tool", "server", "provider", "waiting", "base64"),
)
KEYS = {
    place: f'{place[:3]}/Pl4nted+"{place}"k\u00e9y=9f{number:02}'
    for number, place in enumerate(PLACES)
}
# A header of HTTP takes no other letters.
KEYS["reply"] = KEYS["reply"].replace("\u00e9", "e")
MARKERS = {place: f"marker-in-{place}-that-is-no-secret" for place in PLACES}
NAMES = {place: f"PLANTED_{place.upper()}_TOKEN" for place in PLACES} | {"reply": "MINE"}
SHAPE = "ghp_" + "b2C3" * 9


@dataclass
class Ground:
    """A project whose user has keys, and files outside of it that hold them."""

    root: Path
    plants: Path
    env: dict[str, str]
    said: list[str] = field(default_factory=list)

    def plant(self, place: str) -> Path:
        return self.plants / place

    def print(self, place: str) -> str:
        return f"cat {self.plant(place)}"

    def git(self, *args: str) -> None:
        subprocess.run(
            ["git", *args], cwd=self.root, env=self.env, check=True, capture_output=True, timeout=60
        )

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, manifest: str, settings: str = "") -> None:
        self.write("tasks/ACTIVE.toml", f'schema = 1\n[goal]\ntext = "Words"\n{manifest}')
        self.write("loop.toml", settings)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "work")

    def loop(self, *words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-m", "loopctl", *words],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=100,
            check=False,
        )
        self.said += [done.stdout.decode(), done.stderr.decode()]
        return done.returncode

    def look(self) -> None:
        """Say all that there is to say of the newest run."""
        for words in (
            ["status"],
            ["report"],
            ["report", "--format", "md"],
            ["report", "--format", "html"],
            ["report", "--format", "json"],
            ["answer"],
            ["show", "T1"],
            ["metrics"],
            ["answer", f"{KEYS['answer']}", "x"],
        ):
            with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.root):
                for name, value in self.env.items():
                    patch.setenv(name, value)
                done = CliRunner().invoke(build(words), words, prog_name="loop")
            self.said += [done.stdout, done.stderr]

    def assert_clean(self, *places: str) -> None:
        """Assert that no key is anywhere, and that the marker beside each was written."""
        pieces = search.everything(self.root / ".local", *self.said)
        for place in places:
            assert search.holding(pieces, MARKERS[place]), f"nothing of {place} was written"
        found = {place: search.holding(pieces, key) for place, key in KEYS.items()}
        assert {place: where for place, where in found.items() if where} == {}
        assert search.holding(pieces, SHAPE) == set()
        assert _open_to_others(self.root / ".local") == {}


def _open_to_others(folder: Path) -> dict[str, str]:
    """Return what others than the owner may read or write, with its mode."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        look = path.lstat()
        # An object may be the user's own file under a second name; it and what libgit2 writes are in
        # folders that nobody else enters.
        is_object = path.is_file() and path.parent.parent.name == "objects"
        is_ref = folder / "git" / "refs" / "loop" in path.parents
        if not (path.is_symlink() or is_object or is_ref) and look.st_mode & 0o077:
            found[str(path)] = oct(look.st_mode)
    return found


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    root, home, plants = (tmp_path / name for name in ("project", "home", "plants"))
    for folder in (root, home, plants):
        folder.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Some One\n\temail = one@example.org\n")
    for place, key in KEYS.items():
        (plants / place).write_text(f"{MARKERS[place]} {key} {SHAPE}\n")
    encoded = base64.b64encode(f"xy{KEYS['base64']}".encode()).decode()
    forms = [encoded, quote(KEYS["base64"], safe=""), json.dumps(KEYS["base64"])]
    (plants / "base64").write_text(f"{MARKERS['base64']} {' '.join(forms)}\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "COLUMNS": "4000"}
    made = Ground(root, plants, env | {NAMES[place]: key for place, key in KEYS.items()})
    made.git("init", "-q", "-b", "main")
    return made


def _task(name: str, command: str, verify: str) -> str:
    fields = {"id": name, "title": f"Do {name}", "command": command, "verify_cmd": verify}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
    return f'[[task]]\nworker = "command"\n{lines}\n'


def _message(ground: Ground) -> str:
    """Return a command that asks a person, with a key in the question."""
    question = ground.plant("message").read_text()
    message = {"type": "defer", "reason": question, "decision_needed": question}
    ground.plant("question").write_text(json.dumps(message))
    return f'cp {ground.plant("question")} "$LOOP_OUTBOX/1.json"'


def test_no_byte_of_runs_of_command_workers_holds_a_key(ground: Ground) -> None:
    trace = f"raise ValueError(open({str(ground.plant('trace'))!r}).read())"
    ground.write("tests/test_trace.py", f"def test_trace():\n    {trace}\n")
    pytest_command = f"{sys.executable} -m pytest -q -p no:cacheprovider"
    ground.commit(
        _task("T1", f"{ground.print('worker')}; echo a > a", ground.print("verify"))
        + _task("T2", f"{ground.print('base64')}; echo b > b; exit 3", "true")
        + _task("T3", _message(ground), "true")
        + _task("T4", "echo d > d", pytest_command),
        "[budget]\nloops = 1\n",
    )
    assert ground.loop("run", "--no-sandbox") in {3, 4}
    ground.look()
    ground.loop("answer", "T3", f"{MARKERS['answer']} {KEYS['answer']} {SHAPE}")
    ground.look()
    ground.assert_clean("worker", "verify", "base64", "message", "trace", "answer")


def test_no_byte_of_a_run_whose_set_up_fails_holds_a_key(ground: Ground) -> None:
    setup = f"{ground.print('setup')}; exit 9"
    ground.commit(
        _task("T1", "echo a > a", "true"), f"[sandbox]\nsetup_cmd = {json.dumps(setup)}\n"
    )
    assert ground.loop("run", "--no-sandbox") == 3
    ground.look()
    ground.assert_clean("setup")


@pytest.fixture
def scripts(ground: Ground) -> Iterator[Any]:
    """Make the settings of a model that plays a script."""
    models: list[ScriptedModel] = []

    def made(script: list[Any], more: str = "") -> str:
        model = ScriptedModel(script)
        models.append(model)
        model.__enter__()
        server = json.dumps([sys.executable, str(HERE / "server.py"), str(ground.plant("server"))])
        return (
            f'{more}\n[mcp.s]\ncommand = {server}\n[models.standard]\nname = "openai/scripted"\n'
            f'api_base = "{model.url}"\napi_key_env = "{NAMES["reply"]}"\n'
            "max_output_tokens = 500\ninput_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n"
        )

    yield made
    for model in models:
        model.__exit__(None, None, None)


def _words(place: str) -> str:
    return f"{MARKERS[place]} {KEYS[place]} {SHAPE}"


MODEL_TASK = (
    '[[task]]\nid = "T1"\ntitle = "Do T1"\nworker = "graph"\nmode = "relay"\nverify_cmd = "true"\n'
)


def test_no_byte_of_runs_of_a_model_worker_holds_a_key(ground: Ground, scripts: Any) -> None:
    settings = scripts(
        [
            ScriptedReply(
                text=_words("reply"),
                calls=(
                    ScriptedCall("bash", {"command": ground.print("tool")}),
                    ScriptedCall("mcp__s__look", {}),
                    ScriptedCall("write_file", {"path": "a.txt", "content": _words("waiting")}),
                    ScriptedCall("bash", {"command": f"mv README '{_words('waiting')}'"}),
                    ScriptedCall("todo_done", {"summary": _words("reply")}),
                ),
            ),
            HttpError(400, f"{_words('provider')} {{key}}"),
        ],
        '[policy]\napprove = ["bash:mv *"]\n',
    )
    ground.write("README", "read me\n")
    ground.commit(MODEL_TASK, settings)
    assert ground.loop("run", "--no-sandbox") == 3
    ground.look()
    # The interrupted step lies in the database now, packed.
    ground.assert_clean("reply", "tool", "server", "waiting")
    ground.loop("answer", "T1", "--approve")
    ground.look()
    ground.assert_clean("reply", "tool", "server", "waiting")


def test_no_byte_of_a_run_whose_provider_quotes_a_key_holds_it(
    ground: Ground, scripts: Any
) -> None:
    fault = HttpError(400, f"{_words('provider')} {{key}}")
    ground.commit(MODEL_TASK, scripts([fault, fault, fault]))
    assert ground.loop("run", "--no-sandbox") != 0
    ground.look()
    ground.assert_clean("provider")


def test_the_search_finds_what_is_packed_and_encoded(ground: Ground) -> None:
    ground.commit(_task("T1", f"cp {ground.plant('worker')} a; printf 'a\\0b' > b", "true"))
    # What a worker puts into a file is kept as it is, and asked about before it lands.
    assert ground.loop("run", "--no-sandbox") == 3
    pieces = search.everything(ground.root / ".local", *ground.said)
    found = search.holding(pieces, KEYS["worker"])
    assert any(place.startswith("objects of") for place in found)
    own = ground.root / ".local" / "git"
    assert all(place.startswith((f"{own}/objects", f"objects of {own}")) for place in found)


def test_nothing_that_is_shown_moves_a_cursor_hides_or_reorders(ground: Ground) -> None:
    hostile = "\x1b[2J\x1b]0;t\x07 \u202euser\u2066 \x9b1m \u200b \r over \x00".replace("\x00", "")
    ground.plant("hostile").write_text(hostile)
    message = {"type": "defer", "reason": hostile, "decision_needed": hostile}
    ground.plant("question").write_text(json.dumps(message))
    tasks = (
        _task("T1", f"cat {ground.plant('hostile')}; exit 3", "true"),
        _task("T2", f'cp {ground.plant("question")} "$LOOP_OUTBOX/1.json"', "true"),
        _task("T3", "echo c > c", f"cat {ground.plant('hostile')}; exit 1"),
    )
    titled = "".join(tasks).replace("Do T", "\\u001b[2J\\u202eDo T")
    ground.commit(titled, "[budget]\nloops = 2\n")
    ground.loop("run", "--no-sandbox")
    ground.look()
    ground.loop("show", "T2")
    ground.loop("show", hostile)
    ground.loop(hostile)
    assert any("202e" in said.casefold() for said in ground.said), ground.said
    bad = re.compile(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]"
    )
    assert [(said[:200], found) for said in ground.said if (found := bad.findall(said))] == []
