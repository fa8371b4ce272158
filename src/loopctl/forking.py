"""What a plan knows of its forks: the one that is being tried, and how others were settled."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from loopctl.domain import Option


class Bucket(StrEnum):
    """Who settles a fork: the gate, the goal, or a person."""

    QUALITY = "quality"
    SCOPE = "scope"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork whose options are being tried against each other.

    Attributes:
        number: The iteration of the step that has raised it: no other fork of the candidate's
            session has it.
        options: Those that are tried, in order.
        left_out: Names of those that are not.
    """

    number: int
    question: str
    options: tuple[Option, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settled:
    """A fork that was settled without a trial: which option is taken, and why."""

    question: str
    option: str
    prompt: str
    reason: str


@dataclass(frozen=True, slots=True)
class Forks:
    """All forks of one plan.

    Attributes:
        tried: The one that is being tried; ``None`` while none is.
        fruitless: Trials in which no option has passed.
        settled: The newest last; each question once.
    """

    tried: Fork | None = None
    fruitless: int = 0
    settled: tuple[Settled, ...] = ()


def decode_forks(body: Mapping[str, Any]) -> Forks:
    """Return the forks that ``dataclasses.asdict`` has made JSON values of.

    Raises:
        TypeError, KeyError: They are something else.
    """
    tried = body["tried"]
    return Forks(
        tried=None if tried is None else _fork(tried),
        fruitless=body["fruitless"],
        settled=tuple(Settled(**one) for one in body["settled"]),
    )


def _fork(raw: Mapping[str, Any]) -> Fork:
    return Fork(
        number=raw["number"],
        question=raw["question"],
        options=tuple(Option(**option) for option in raw["options"]),
        left_out=tuple(raw["left_out"]),
    )
