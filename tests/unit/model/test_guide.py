import re
import tomllib
from pathlib import Path

import pytest

from loopctl import testing
from loopctl.settings import Settings
from loopctl.worker.model.patience import Patience
from loopctl.worker.model.providers import PROVIDERS
from loopctl.worker.model.routes import routes_of

GUIDE = Path(__file__).parents[3] / "docs/guide"
PAGE = (GUIDE / "models.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
KEYS = {name: "sk-x" for provider in PROVIDERS for name in provider.keys}


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_of_the_guide_gives_routes(text: str) -> None:
    settings = Settings.model_validate(tomllib.loads(text))
    env = KEYS | {"WORK_OPENAI_KEY": "k", "TEAM_PROXY_KEY": "k"}
    assert routes_of(settings.models, env).reason == ""


def test_guide_has_the_defaults_in_their_order() -> None:
    rows = re.findall(
        r"^\| `([A-Z_]+)`.*? \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE
    )
    known = [(p.keys[0], *p.defaults) for p in PROVIDERS if p.defaults is not None]
    assert rows[:-1] == known
    assert rows[-1][0] == "OLLAMA_API_BASE"


def test_guide_names_every_provider_whose_variables_are_known() -> None:
    assert [p.prefix for p in PROVIDERS if not p.defaults and f"`{p.prefix}" not in PAGE] == [
        "cohere_chat"
    ]


def test_guide_tells_the_bounds_as_they_are() -> None:
    bounds = Patience()
    assert f"up to {bounds.tries} times and {bounds.total_s / 60:.0f} minutes" in PAGE
    assert f"… {bounds.longest_wait_s:.0f} seconds" in PAGE


def test_page_on_scripts_names_all_that_can_be_played() -> None:
    page = (GUIDE / "scripted-model.md").read_text(encoding="utf-8")
    plays = [play.__name__ for play in testing.Play.__args__]
    plays += [
        "rate_limited",
        "wrong_key",
        "overflow",
        "MemoryTill",
        "ScriptedModel",
        "ScriptedCall",
    ]
    assert [name for name in plays if f"{name}(" not in page and f"`{name}`" not in page] == []
    assert [name for name in plays if name not in testing.__all__] == []
