"""Settles a fork of scope from the goal: by rule first, by a judge second. Pure, the judge aside.

A goal that says MVP takes the narrower option, one that says full the wider, and one that names an
option takes that one. A sentence with a negation in it is not read by rule, nor is one that is not
English, whose negations are not known here; where the words of the goal speak for both ways it is
silent.
"""

import re
from typing import Final

from loopctl.domain import Goal, Option, Task
from loopctl.engine.buckets import extent
from loopctl.engine.work import Choose
from loopctl.steps import ForkRaised

Chosen = tuple[Option | None, str]
"""The option that the goal asks for, ``None`` where it is silent, and why."""

_MVP: Final = re.compile(
    r"\b(?:mvps?|minimum viable|minimal|prototypes?|proof of concept|poc|as little as possible"
    r"|bare[ -]bones|just enough)\b",
    re.IGNORECASE,
)
_FULL: Final = re.compile(
    r"\b(?:full(?!-|[ -](?:text|names?|stack|paths?|time|screen|width|page|url))|fully"
    r"|comprehensive|exhaustive|feature[ -]complete|a to z|a-z)\b",
    re.IGNORECASE,
)
_NEGATION: Final = re.compile(
    r"\b(?:not?|never|without|nor|neither|instead|rather|except|avoid|cannot|beyond|more than)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_FOREIGN: Final = re.compile(
    r"[^\W\d_a-zA-Z]"  # a letter that English does without
    r"|\b(?:und|oder|nicht|kein\w*|ohne|mit|f(?:ue|\u00fc)r|eine?[nmrs]?|das|sondern|statt"
    r"|les?|des|une?|pas|sans|avec|pour|plut[o\u00f4]t|jamais"
    r"|el|los|las|una|sin|con|para|nunca|mas|del|il|gli|senza|invece|per|della"
    r"|uma|sem|com|nem|het|een|niet|geen|zonder|voor|och|inte|utan|ikke|uden|uten|nie|bez)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[.;!?\n]+(?=\s|$)")
_LEAST_NAME: Final = 3
"""Letters of an option's name that a goal can be said to name."""


def settle(raised: ForkRaised, goal: Goal, task: Task, choose: Choose | None) -> Chosen:
    """Return the option that the goal asks for, and why; or why it asks for none.

    Args:
        raised: A fork of scope.
        goal: With its done-criteria.
        task: Pays for the judge.
        choose: The judge; ``None`` where no model can be asked.
    """
    option, why = by_rule(raised, goal)
    if option is not None or choose is None:
        return option, why
    name, said = choose(raised, task)
    chosen = next((one for one in raised.options if one.name == name), None)
    return chosen, said


def by_rule(raised: ForkRaised, goal: Goal) -> Chosen:
    """Return what the goal's own words ask for, by rule alone."""
    sentences = [
        sentence
        for text in (goal.text, *(criterion.criterion or "" for criterion in goal.done_when))
        for sentence in _SENTENCE.split(text)
        if sentence.strip() and not _NEGATION.search(sentence) and not _FOREIGN.search(sentence)
    ]
    named = [one for one in raised.options if any(_names(text, one.name) for text in sentences)]
    if len(named) == 1:
        return named[0], f'the goal names "{named[0].name}"'
    if named:
        return None, "the goal names several of the options"
    mvp = next((found[0] for text in sentences if (found := _MVP.search(text))), "")
    full = next((found[0] for text in sentences if (found := _FULL.search(text))), "")
    if bool(mvp) == bool(full):
        return None, "the goal says nothing of how far to go" if not mvp else _BOTH
    wanted = "narrow" if mvp else "wide"
    option = _reaching(raised.options, wanted)
    if option is None:
        return None, f'the goal says "{mvp or full}", but not which option that is'
    return option, f'the goal says "{mvp or full}", and "{option.name}" is {_EXTENTS[wanted]}'


_EXTENTS: Final = {"narrow": "the narrower way", "wide": "the wider way"}
_BOTH: Final = "the goal speaks of a narrow result and of a full one"


def _names(text: str, name: str) -> bool:
    words = r"\W+".join(re.escape(word) for word in re.findall(r"\w+", name))
    is_enough = len(name) >= _LEAST_NAME and not extent(name)
    return is_enough and re.search(rf"\b{words}\b", text, re.IGNORECASE) is not None


def _reaching(options: tuple[Option, ...], wanted: str) -> Option | None:
    """Return the one option that goes as far as wanted; of two it may be told from the other."""
    extents = [extent(option.name) for option in options]
    if extents.count(wanted) == 1:
        return options[extents.index(wanted)]
    is_pair = len(options) == 2 and wanted not in extents  # noqa: PLR2004 - one and the other
    if is_pair and extents.count("") == 1:
        return options[extents.index("")]
    return None
