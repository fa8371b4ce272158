import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.testing import ScriptedModel, ScriptedReply
from loopctl.worker.model.providers import PROVIDERS

HERE = Path(__file__).parent
LIGHT = """
import sys
import loopctl.worker.model.open, loopctl.worker.model.routes, loopctl.testing
print(sorted({"litellm", "openai", "httpx", "tiktoken", "jsonschema"} & set(sys.modules)))
"""


def run(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *argv],
        env=kept | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    with ScriptedModel([ScriptedReply("fine")]) as server:
        done = run(str(HERE / "sockets.py"), server.url, SCRIPTED_KEY="sk-canary-1234")
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert [request.key for request in server.requests] == ["sk-canary-1234"] * 2
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {"port": server.port}


def test_only_the_configured_endpoint_is_ever_contacted(seen: dict[str, Any]) -> None:
    place = "127.0.0.1"
    assert set(seen["all"]) == {f"resolve {place}", f"connect {(place, seen['port'])}"}


def test_import_counting_and_prices_stay_off_the_network(seen: dict[str, Any]) -> None:
    assert (seen["loaded"], seen["counted"]) == ([], [])


def test_reply_and_vectors_came_and_hold_no_key(seen: dict[str, Any]) -> None:
    assert "text='fine'" in seen["reply"]
    assert seen["vectors"] == 1
    assert "sk-canary" not in json.dumps(seen)


def test_defaults_are_models_of_known_price(seen: dict[str, Any]) -> None:
    names = [
        f"{provider.prefix}/{name}" for provider in PROVIDERS for name in provider.defaults or ()
    ]
    unknown = {name for name in names if not seen["prices"][name]}
    # A router's price is that of the model it picks.
    assert unknown == {"openrouter/openrouter/auto"}


def test_what_nobody_prices_is_not_taken_for_free(seen: dict[str, Any]) -> None:
    assert seen["prices"]["nobody/x"] is None


def test_import_of_the_part_is_light() -> None:
    done = run("-c", LIGHT)
    assert done.stdout.strip() == "[]", done.stderr
