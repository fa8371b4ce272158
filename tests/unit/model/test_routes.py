import json
from collections.abc import Mapping
from typing import Any

import pytest

from loopctl.settings import ModelsSettings
from loopctl.worker.model.providers import ollama_base, searches_by_itself
from loopctl.worker.model.routes import (
    NOTHING,
    TIERS,
    Attempt,
    Price,
    Routes,
    routes_from_json,
    routes_of,
)

KEYS = {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "GEMINI_API_KEY": "sk-g"}


def routes(env: Mapping[str, str] | None = None, **tiers: Mapping[str, Any]) -> Routes:
    return routes_of(ModelsSettings.model_validate(tiers), KEYS if env is None else env)


def names(found: Routes) -> list[str]:
    return [found.of(tier)[0].model for tier in TIERS]


@pytest.mark.parametrize("tier", TIERS)
def test_one_configured_tier_serves_all_three(tier: str) -> None:
    found = routes(**{tier: {"name": "openai/x"}})
    assert found.is_there
    assert names(found) == ["openai/x"] * 3
    assert found.notice == ""


def test_tier_that_is_missing_is_served_by_the_nearest_the_cheaper_first() -> None:
    ends = routes(cheap={"name": "openai/c"}, premium={"name": "openai/p"})
    assert names(ends) == ["openai/c", "openai/c", "openai/p"]
    top = routes(standard={"name": "openai/s"}, premium={"name": "openai/p"})
    assert names(top) == ["openai/s", "openai/s", "openai/p"]


def test_settings_of_a_tier_are_all_carried() -> None:
    found = routes(
        {"MINE": "k"},
        cheap={
            "name": "openai/x",
            "api_base": "http://127.0.0.1:8000/v1",
            "api_key_env": "MINE",
            "max_output_tokens": 9,
            "input_usd_per_mtok": 1.0,
            "output_usd_per_mtok": 2.0,
        },
    )
    assert found.of("cheap") == (
        Attempt("openai/x", "http://127.0.0.1:8000/v1", "MINE", 9, Price(1.0, 2.0)),
    )


def test_fallback_of_the_same_provider_shares_its_endpoint_and_key_but_not_its_price() -> None:
    settings = {"name": "openai/x", "api_base": "http://h/v1", "api_key_env": "MINE"}
    price = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0}
    fallbacks = {"fallbacks": ["openai/y", "anthropic/z"], "max_output_tokens": 9}
    first, same, other = routes(KEYS | {"MINE": "k"}, cheap=settings | price | fallbacks).of(
        "cheap"
    )
    assert first.price == Price(1.0, 1.0)
    assert same == Attempt("openai/y", "http://h/v1", "MINE", 9)
    assert other == Attempt("anthropic/z", None, "ANTHROPIC_API_KEY", 9)


def test_key_of_a_provider_never_goes_to_another_endpoint_by_itself() -> None:
    (attempt,) = routes(cheap={"name": "openai/x", "api_base": "http://127.0.0.1:1/v1"}).of("cheap")
    assert attempt.key_name is None


def test_endpoint_that_the_provider_s_own_variable_names_is_taken_with_its_key() -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy/v1"}
    (attempt,) = routes(env, cheap={"name": "openai/x"}).of("cheap")
    assert (attempt.api_base, attempt.key_name) == ("http://proxy/v1", "OPENAI_API_KEY")


@pytest.mark.parametrize("env", [{}, {"MINE": ""}, {"MINE": "  "}])
def test_key_that_is_not_set_is_refused_before_the_run(env: dict[str, str]) -> None:
    found = routes(env, premium={"name": "openai/x", "api_key_env": "MINE"})
    assert not found.is_there
    assert found.reason == (
        "models.premium: openai/x needs a key, and MINE is not set; set it, or name the variable "
        "that holds the key in models.premium.api_key_env"
    )


def test_every_missing_key_is_named_once() -> None:
    found = routes(
        {}, cheap={"name": "openai/x", "fallbacks": ["gemini/y"]}, embed={"name": "voyage/e"}
    )
    assert [
        found.reason.count(f"{name}_API_KEY is") for name in ("OPENAI", "GEMINI", "VOYAGE")
    ] == [
        1,
        1,
        1,
    ]


def test_half_a_price_is_refused() -> None:
    found = routes(cheap={"name": "openai/x", "input_usd_per_mtok": 1.0})
    assert "set both" in found.reason
    embed = routes(
        cheap={"name": "openai/x"}, embed={"name": "openai/e", "input_usd_per_mtok": 1.0}
    )
    assert embed.embed is not None
    assert (embed.reason, embed.embed.price) == ("", Price(1.0, 0.0))


@pytest.mark.parametrize(
    "name",
    ["perplexity/sonar", "openai/gpt-4o-search-preview", "openrouter/openai/gpt-x:online"],
)
def test_model_that_searches_the_web_by_itself_is_refused(name: str) -> None:
    env = KEYS | {"OPENROUTER_API_KEY": "k"}
    assert "searches the web by itself" in routes(env, cheap={"name": name}).reason


def test_ordinary_models_do_not_search() -> None:
    ordinary = ["openai/gpt-6.1-sol", "anthropic/claude-sonnet-5-5", "openai/qwen3:8b"]
    assert [name for name in ordinary if searches_by_itself(name)] == []


def test_without_settings_the_first_known_key_picks_and_says_so() -> None:
    found = routes()
    assert found.is_there
    assert names(found) == [
        "anthropic/claude-haiku-5-5",
        "anthropic/claude-sonnet-5-5",
        "anthropic/claude-opus-5-5",
    ]
    assert found.notice == (
        "no model is configured; because of ANTHROPIC_API_KEY: cheap anthropic/claude-haiku-5-5, "
        "standard anthropic/claude-sonnet-5-5, premium anthropic/claude-opus-5-5"
    )
    assert found.key_names == {"ANTHROPIC_API_KEY"}


@pytest.mark.parametrize(
    ("env", "model"),
    [
        ({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "openai/gpt-6-luna"),
        ({"ANTHROPIC_API_KEY": " ", "GEMINI_API_KEY": "k"}, "gemini/gemini-flash-lite-latest"),
        ({"GOOGLE_API_KEY": "k"}, "gemini/gemini-flash-lite-latest"),
        ({"OPENROUTER_API_KEY": "k", "OLLAMA_HOST": "x"}, "openrouter/openrouter/auto"),
        ({"OLLAMA_HOST": "x"}, "openai/qwen3:8b"),
    ],
)
def test_order_in_which_keys_are_looked_for(env: dict[str, str], model: str) -> None:
    assert routes(env).of("cheap")[0].model == model


def test_local_ollama_needs_no_key_and_costs_nothing() -> None:
    found = routes({"OLLAMA_HOST": "0.0.0.0:11434"})
    assert found.of("premium") == (
        Attempt("openai/qwen3:8b", "http://127.0.0.1:11434/v1", price=Price(0.0, 0.0)),
    )
    assert "OLLAMA_HOST" in found.notice
    assert found.key_names == frozenset()
    (own,) = routes({}, cheap={"name": "ollama_chat/llama3"}).of("cheap")
    assert own == Attempt("ollama_chat/llama3", "http://127.0.0.1:11434", price=Price(0.0, 0.0))


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("localhost", "http://localhost:11434"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        (":5000", "http://127.0.0.1:5000"),
        ("http://box:11434/", "http://box:11434"),
        ("https://box/ollama", "https://box:443/ollama"),
        ("http://box", "http://box:80"),
        ("[::]:5000", "http://[::1]:5000"),
        ("[::1]", "http://[::1]:11434"),
    ],
)
def test_forms_of_ollama_host(host: str, base: str) -> None:
    assert ollama_base(host) == base


def test_nothing_at_all_says_what_to_set() -> None:
    found = routes({})
    assert (found.is_there, found.reason) == (False, NOTHING)
    assert found.of("cheap") == ()
    assert "OLLAMA_HOST" in NOTHING


def test_only_a_model_for_embeddings_is_no_model_for_the_rest() -> None:
    found = routes(KEYS, embed={"name": "openai/e"})
    assert found.embed == Attempt("openai/e", None, "OPENAI_API_KEY")
    assert found.of("cheap")[0].model.startswith("anthropic/")
    assert found.key_names == {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}


def test_variables_are_what_the_process_needs_and_keys_are_among_them() -> None:
    found = routes({}, cheap={"name": "bedrock/x"}, premium={"name": "azure/y"})
    assert found.key_names == {"AZURE_API_KEY"}
    assert {"AWS_SECRET_ACCESS_KEY", "AZURE_API_VERSION", "AZURE_API_KEY"} <= found.variables


def test_json_comes_back_as_it_was_and_has_no_key() -> None:
    cheap = {"name": "openai/x", "fallbacks": ["bedrock/y"]}
    for found in (routes(cheap=cheap, embed={"name": "openai/e"}), routes(), routes({})):
        assert routes_from_json(found.to_json()) == found
        json.loads(found.to_json())
        assert "sk-" not in found.to_json()


def test_address_is_told_without_what_may_be_secret_in_it() -> None:
    secret = Attempt("openai/x", "https://me:pass@host:1/v1?key=abc")
    assert secret.where == "https://host:1/v1"
    assert Attempt("openai/x").where == "openai"
