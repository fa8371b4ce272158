"""Providers by the first part of a model string: whose variables hold the key, where it listens.

Only what has to be known before LiteLLM is there. Any provider of LiteLLM can be used; one that is
not in the table needs ``api_key_env`` in the settings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        prefix: The first part of its model strings.
        keys: Variables that may hold its key; the first that is set counts.
        bases: Variables that may hold its address.
        others: Variables besides, which its LiteLLM adapter reads by itself.
        defaults: Models for the tiers cheap, standard and premium, where the key is all there is.
        base: Its address, where that is not LiteLLM's to know.
    """

    prefix: str
    keys: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    defaults: tuple[str, str, str] | None = None
    base: str | None = None


_OLLAMA_BASES: Final = ("OLLAMA_API_BASE", "OLLAMA_HOST")
_OLLAMA_BASE: Final = "http://127.0.0.1:11434"
_OLLAMA_MODEL: Final = "qwen3:8b"

PROVIDERS: Final = (
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        defaults=("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"),
    ),
    Provider(
        "openai",
        ("OPENAI_API_KEY",),
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        defaults=("gpt-6-luna", "gpt-6.1-terra", "gpt-6.1-sol"),
    ),
    Provider(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        defaults=("gemini-flash-lite-latest", "gemini-flash-latest", "gemini-pro-latest"),
    ),
    Provider(
        "openrouter",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_API_BASE",),
        defaults=("openrouter/auto", "openrouter/auto", "openrouter/auto"),
    ),
    Provider(
        "mistral",
        ("MISTRAL_API_KEY",),
        ("MISTRAL_API_BASE",),
        defaults=("devstral-small-latest", "devstral-medium-latest", "mistral-medium-latest"),
    ),
    Provider(
        "deepseek",
        ("DEEPSEEK_API_KEY",),
        ("DEEPSEEK_API_BASE",),
        defaults=("deepseek-flash", "deepseek-v4-pro", "deepseek-v4-pro"),
    ),
    Provider(
        "xai",
        ("XAI_API_KEY",),
        ("XAI_API_BASE",),
        defaults=("grok-code-fast", "grok-4.3", "grok-4.7"),
    ),
    Provider(
        "groq",
        ("GROQ_API_KEY",),
        ("GROQ_API_BASE",),
        defaults=("openai/gpt-oss-20b", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
    ),
    Provider("ollama", bases=_OLLAMA_BASES, base=_OLLAMA_BASE),
    Provider("ollama_chat", bases=_OLLAMA_BASES, base=_OLLAMA_BASE),
    Provider("azure", ("AZURE_API_KEY",), ("AZURE_API_BASE",), ("AZURE_API_VERSION",)),
    Provider("cohere_chat", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cohere", ("COHERE_API_KEY", "CO_API_KEY")),
    Provider("cerebras", ("CEREBRAS_API_KEY",)),
    Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY")),
    Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY")),
    Provider("deepinfra", ("DEEPINFRA_API_KEY",)),
    Provider("moonshot", ("MOONSHOT_API_KEY",)),
    Provider("zai", ("ZAI_API_KEY",)),
    Provider("voyage", ("VOYAGE_API_KEY",)),
    Provider(
        "bedrock",
        others=(
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_REGION",
            "AWS_REGION_NAME",
        ),
    ),
    Provider(
        "vertex_ai",
        others=("GOOGLE_APPLICATION_CREDENTIALS", "VERTEXAI_PROJECT", "VERTEXAI_LOCATION"),
    ),
)
"""Those with defaults stand first, in the order in which a key is looked for."""

_BY_PREFIX: Final = {provider.prefix: provider for provider in PROVIDERS}
_UNKNOWN: Final = Provider("")

_SEARCHES: Final = re.compile(
    r"^perplexity/|search-preview|search-api|deep-research|:online\b|groq/compound|/sonar"
)


def provider_of(model: str) -> Provider:
    """Return the provider of a model string; one without variables where it is not known.

    A string without a prefix is OpenAI's, as LiteLLM takes it.
    """
    prefix, found, _ = model.partition("/")
    return _BY_PREFIX.get(prefix if found else "openai", _UNKNOWN)


def searches_by_itself(model: str) -> bool:
    """The model goes to the web on its own: what it read there nobody here could refuse."""
    return _SEARCHES.search(model) is not None


def is_set(name: str, env: Mapping[str, str]) -> bool:
    """The variable is there and is not blank."""
    return bool(env.get(name, "").strip())


def key_variable(provider: Provider, env: Mapping[str, str]) -> str | None:
    """Return the variable with the provider's key, its first one where none is set."""
    found = (name for name in provider.keys if is_set(name, env))
    return next(found, provider.keys[0] if provider.keys else None)


def base_of(provider: Provider, env: Mapping[str, str]) -> str | None:
    """Return the provider's address, where the environment or the table has one."""
    for name in provider.bases:
        if is_set(name, env):
            text = env[name].strip()
            return ollama_base(text) if name in _OLLAMA_BASES else text
    return provider.base


def ollama_base(host: str) -> str:
    """Return the address for a value of ``OLLAMA_HOST``: a host, a port, both, or a URL.

    The address to listen on, ``0.0.0.0``, becomes one that can be asked.
    """
    scheme, found, rest = host.rstrip("/").rpartition("://")
    place, slash, path = rest.partition("/")
    name, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
    if not colon:
        name, port = (place, "443" if scheme == "https" else "80" if found else "11434")
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)  # noqa: S104
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}"


def found_defaults(env: Mapping[str, str]) -> tuple[str, tuple[str, str, str], str | None] | None:
    """Return what the environment gives where no model is configured.

    Returns:
        The variable that was found, the model strings for cheap, standard and premium, and the
        address where one has to be named; ``None`` where there is neither a key nor an Ollama.
    """
    for provider in PROVIDERS:
        name = key_variable(provider, env)
        if provider.defaults is not None and name is not None and is_set(name, env):
            cheap, standard, premium = (f"{provider.prefix}/{name}" for name in provider.defaults)
            return name, (cheap, standard, premium), base_of(provider, env)
    for name in _OLLAMA_BASES:
        if is_set(name, env):
            # By its OpenAI form, which has calls of tools in streams.
            model = f"openai/{_OLLAMA_MODEL}"
            return name, (model, model, model), f"{ollama_base(env[name].strip())}/v1"
    return None
