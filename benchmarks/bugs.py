"""How many small bugs a real model mends with ``loop --test-debug-fix``, and in a single shot.

``LOOP_TEST_GGUF`` names a small instruct model in GGUF form, ``LOOP_TEST_GGUF_PYTHON`` a Python
with xllamacpp; ``LOOP_TEST_BUGS`` how many of the ten are tried. The single shot is one prompt
with the module, its tests and the failure; the answer's code block takes the module's place. The
ratio is single shot over loop, each with one added.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loopctl.testing.tinybugs import BUGS, RUNNER, TinyBug

NAME: Final = "small bugs that a single shot mends / that loop mends"
LIMIT: Final = 1.0
ONLY_WHEN_NAMED: Final = True
TRIED: Final = 10
VERIFY: Final = f"'{sys.executable}' -SB tests/run.py"
LIMIT_S: Final = 600

_SERVE: Final = """
import os, sys, xllamacpp
given = xllamacpp.CommonParams()
given.model.path = sys.argv[1]
given.hostname, given.port = "127.0.0.1", 0
given.n_ctx, given.n_parallel, given.warmup, given.use_jinja = 8192, 1, False, True
server = xllamacpp.Server(given)
print(server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
"""
_SETTINGS: Final = """
[models.standard]
name = "openai/local"
api_base = "{url}"
api_key_env = "LOCAL_KEY"
max_output_tokens = 600
[context]
window_tokens = 7000
[budget]
loops = 8
task_tokens = 200000
"""
_BLOCK: Final = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)


@contextmanager
def serving() -> Iterator[str]:
    """Serve the model; yield the address of its API."""
    gguf = os.environ.get("LOOP_TEST_GGUF", "")
    if not Path(gguf).is_file():
        sys.exit("LOOP_TEST_GGUF must name a model in GGUF form")
    python = os.environ.get("LOOP_TEST_GGUF_PYTHON", sys.executable)
    server = subprocess.Popen(
        [python, "-c", _SERVE, gguf],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield f"{server.stdout.readline().strip()}/v1"
    finally:
        server.kill()
        server.communicate()


def project(folder: Path, bug: TinyBug, env: Mapping[str, str], settings: str) -> None:
    """Make a committed project of a bug."""
    files = {**bug.files, "tests/run.py": RUNNER, "loop.toml": settings}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    identity = ("-c", "user.name=B", "-c", "user.email=b@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "bug")):
        subprocess.run(["git", *words], cwd=folder, env=env, check=True)


def by_loop(folder: Path, env: Mapping[str, str]) -> bool:
    """Return whether loop lands a mending."""
    words = ("--test-debug-fix", "--verify", VERIFY, "--no-sandbox", "--land")
    done = subprocess.run(
        [sys.executable, "-m", "loopctl", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0 and verify(folder).returncode == 0


def verify(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Return how the tests end."""
    return subprocess.run(
        ["/bin/sh", "-c", VERIFY], cwd=folder, capture_output=True, text=True, check=False
    )


def by_single_shot(folder: Path, bug: TinyBug, url: str) -> bool:
    """Return whether one answer of the model makes the tests green."""
    asked = (
        f"{bug.name}.py:\n```python\n{bug.broken}```\n\nIts tests:\n```python\n{bug.tests}```\n\n"
        f"They fail:\n{verify(folder).stdout}\n"
        f"Reply with the whole mended {bug.name}.py in one code block."
    )
    body = {"messages": [{"role": "user", "content": asked}], "max_tokens": 600, "temperature": 0}
    request = urllib.request.Request(  # noqa: S310 - our own server on loopback
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:  # noqa: S310
        text = json.load(reply)["choices"][0]["message"]["content"]
    found = _BLOCK.search(text)
    if found is None:
        return False
    (folder / f"{bug.name}.py").write_text(found[1])
    return verify(folder).returncode == 0


def run() -> dict[str, float]:
    """Return the ratio and the two counts, which are no seconds."""
    tried = BUGS[: int(os.environ.get("LOOP_TEST_BUGS", TRIED))]
    counts = {"loop": 0, "single shot": 0}
    with tempfile.TemporaryDirectory() as scratch, serving() as url:
        env = {"PATH": os.environ["PATH"], "HOME": scratch, "LOCAL_KEY": "none"}
        for bug in tried:
            for how in counts:
                folder = Path(scratch) / how.replace(" ", "-") / bug.name
                project(folder, bug, env, _SETTINGS.format(url=url))
                is_green = (
                    by_loop(folder, env) if how == "loop" else by_single_shot(folder, bug, url)
                )
                counts[how] += is_green
                print(f"    {bug.name}, {how}: {'green' if is_green else 'red'}", flush=True)
    ratio = (counts["single shot"] + 1) / (counts["loop"] + 1)
    return {"ratio": ratio, **{name: float(count) for name, count in counts.items()}}
