"""Routes: which models serve a tier, in which order, where, with which variable's key.

Made by the engine from the settings and handed to the worker's process as JSON; no key is in it,
only the name of the variable that holds it. Knows nothing of LiteLLM.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from loopctl.settings import ModelSettings, ModelsSettings
from loopctl.worker.model.providers import (
    Provider,
    base_of,
    found_defaults,
    is_set,
    key_variable,
    provider_of,
    searches_by_itself,
)

TIERS: Final = ("cheap", "standard", "premium")

NETWORK_VARIABLES: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
)
"""What else the worker's process needs of the environment to reach a provider."""

NOTHING: Final = (
    "no model is configured and no key was found: set ANTHROPIC_API_KEY, OPENAI_API_KEY, "
    "GEMINI_API_KEY or OPENROUTER_API_KEY, or OLLAMA_HOST for a local Ollama, or write "
    "[models.standard] with a name into loop.toml"
)

_DEFAULT_OUTPUT_TOKENS: Final = 4096
_EMBED: Final = "embed"
# Where a tier is not configured, the nearest one serves it, the cheaper one before the dearer.
_STAND_INS: Final = {
    "cheap": ("cheap", "standard", "premium"),
    "standard": ("standard", "cheap", "premium"),
    "premium": ("premium", "standard", "cheap"),
}


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """One model of a route.

    Attributes:
        model: A LiteLLM model string.
        api_base: ``None``: the provider's own address.
        key_name: The variable that holds the key; ``None`` where none is sent.
        price: ``None``: LiteLLM's table says, or nobody.
        names: Further variables that the provider's adapter reads by itself.
    """

    model: str
    api_base: str | None = None
    key_name: str | None = None
    max_output_tokens: int = _DEFAULT_OUTPUT_TOKENS
    price: Price | None = None
    names: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The address without what may be secret in it; the provider's name where it has none."""
        if self.api_base is None:
            return self.model.partition("/")[0]
        scheme, found, rest = self.api_base.partition("?")[0].rpartition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{found}{host.rpartition('@')[2]}{slash}{path}"


@dataclass(frozen=True, slots=True)
class Routes:
    """The models of a run.

    Attributes:
        tiers: The models to be tried for each tier, in that order; empty where there is none.
        embed: The model for embeddings.
        notice: Which models were picked because of which variable; empty where they were set.
        reason: Why no model can be asked and what to set, one line; empty where one can.
    """

    tiers: Mapping[str, tuple[Attempt, ...]]
    embed: Attempt | None = None
    notice: str = ""
    reason: str = ""

    @property
    def is_there(self) -> bool:
        """There is a model for every tier, and what it needs is set."""
        return not self.reason

    def of(self, tier: str) -> tuple[Attempt, ...]:
        """Return what serves a tier; nothing for a word that is none."""
        return self.tiers.get(tier, ())

    @property
    def _attempts(self) -> tuple[Attempt, ...]:
        chats = tuple(attempt for attempts in self.tiers.values() for attempt in attempts)
        return chats if self.embed is None else (*chats, self.embed)

    @property
    def key_names(self) -> frozenset[str]:
        """The variables that hold keys: these, and no command in the sandbox may see them."""
        return frozenset(a.key_name for a in self._attempts if a.key_name is not None)

    @property
    def variables(self) -> frozenset[str]:
        """All that the worker's process needs of the environment because of its providers."""
        others = (name for attempt in self._attempts for name in attempt.names)
        return self.key_names.union(others)

    def to_json(self) -> str:
        """Return the routes for :func:`routes_from_json`, in another process."""
        return json.dumps(asdict(self), ensure_ascii=False)


def routes_from_json(text: str) -> Routes:
    """Return the routes that :meth:`Routes.to_json` wrote."""
    value = json.loads(text)
    tiers = {tier: tuple(map(_attempt_from, found)) for tier, found in value["tiers"].items()}
    embed = None if value["embed"] is None else _attempt_from(value["embed"])
    return Routes(tiers, embed, value["notice"], value["reason"])


def _attempt_from(value: Mapping[str, Any]) -> Attempt:
    price = None if value["price"] is None else Price(**value["price"])
    return Attempt(**{**value, "price": price, "names": tuple(value["names"])})


def routes_of(models: ModelsSettings, env: Mapping[str, str]) -> Routes:
    """Return the routes that the settings ask for, or that the environment gives.

    Args:
        models: ``[models]``.
        env: The process's environment; only looked up, nothing of it but addresses is kept.

    Returns:
        Routes whose ``reason`` says what is missing where something is.
    """
    found = {tier: getattr(models, tier) for tier in TIERS}
    faults: list[str] = []
    embed = None
    if models.embed is not None:
        embed, *_ = _configured(_EMBED, models.embed, env, faults)
    if not any(found.values()):
        return _picked(env, embed, faults)
    configured = {
        tier: _configured(tier, settings, env, faults)
        for tier, settings in found.items()
        if settings is not None
    }
    tiers = {
        tier: next(configured[name] for name in _STAND_INS[tier] if name in configured)
        for tier in TIERS
    }
    return Routes(tiers, embed, reason="; ".join(dict.fromkeys(faults)))


def _picked(env: Mapping[str, str], embed: Attempt | None, faults: list[str]) -> Routes:
    found = found_defaults(env)
    if found is None:
        return Routes({}, embed, reason="; ".join([NOTHING, *faults]))
    name, models, base = found
    key = None if base is not None and name.startswith("OLLAMA") else name
    price = Price(0.0, 0.0) if key is None else None
    tiers = {
        tier: (Attempt(model, base, key, price=price),)
        for tier, model in zip(TIERS, models, strict=True)
    }
    listed = ", ".join(f"{tier} {model}" for tier, model in zip(TIERS, models, strict=True))
    notice = f"no model is configured; because of {name}: {listed}"
    return Routes(tiers, embed, notice, "; ".join(faults))


def _configured(
    tier: str, settings: ModelSettings, env: Mapping[str, str], faults: list[str]
) -> tuple[Attempt, ...]:
    """Return the model of a tier and its fallbacks; add what is missing to ``faults``."""
    prefix = provider_of(settings.name).prefix
    attempts = [_attempt(settings.name, settings, env, is_first=True)]
    for name in settings.fallbacks:
        # The endpoint and the key are the provider's: a fallback of another one has its own.
        own = settings if provider_of(name).prefix == prefix else None
        attempts.append(_attempt(name, own, env, settings.max_output_tokens))
    given = settings.input_usd_per_mtok, settings.output_usd_per_mtok
    if tier != _EMBED and (given[0] is None) != (given[1] is None):
        faults.append(
            f"models.{tier}: one of input_usd_per_mtok and output_usd_per_mtok is set; set both"
        )
    for attempt in attempts:
        if searches_by_itself(attempt.model):
            faults.append(
                f"models.{tier}: {attempt.model} searches the web by itself, which nothing here "
                "could refuse; name a model that does not"
            )
        if attempt.key_name is not None and not is_set(attempt.key_name, env):
            faults.append(
                f"models.{tier}: {attempt.model} needs a key, and {attempt.key_name} is not set; "
                f"set it, or name the variable that holds the key in models.{tier}.api_key_env"
            )
    return tuple(attempts)


def _attempt(
    model: str,
    settings: ModelSettings | None,
    env: Mapping[str, str],
    output_tokens: int = _DEFAULT_OUTPUT_TOKENS,
    *,
    is_first: bool = False,
) -> Attempt:
    provider = provider_of(model)
    base = None if settings is None else settings.api_base
    key = None if settings is None else settings.api_key_env
    if key is None and base is None:
        key = key_variable(provider, env)
    # A key of the provider's own never goes to another address that the settings name.
    return Attempt(
        model,
        base or base_of(provider, env),
        key,
        output_tokens if settings is None else settings.max_output_tokens,
        _price(settings if is_first else None, provider),
        provider.others,
    )


def _price(settings: ModelSettings | None, provider: Provider) -> Price | None:
    if settings is not None and settings.input_usd_per_mtok is not None:
        return Price(settings.input_usd_per_mtok, settings.output_usd_per_mtok or 0.0)
    # What runs on a machine of one's own costs nothing by the token.
    return Price(0.0, 0.0) if provider.base is not None else None
