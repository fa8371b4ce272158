"""Reads the words of ``loop WORD…``: pure, so that every doubtful case is one row of a test.

A first word that names a command is that command; else words that are all ids of the manifest are
a subset; else one argument with white space in it is a goal; anything else is an error that names
the nearest id or command. ``loop run -- WORD…`` (ids only) and ``--goal TEXT`` settle the rest.
"""

import difflib
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from loopctl.domain import TaskId
from loopctl.errors import UsageError
from loopctl.report.escape import one_line

_CUTOFF = 0.75
"""A typo in a word of four letters is near; another word that shares a few letters is not."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Subset:
    """Tasks of the manifest; no ids mean all of it."""

    ids: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal in plain words, verbatim."""

    text: str


def read_words(
    words: Sequence[str],
    *,
    commands: Collection[str],
    ids: Collection[str] | None,
    goal: str | None = None,
    ids_only: bool = False,
) -> Subset | Goal:
    """Return what the words ask for.

    Args:
        words: Without options.
        commands: The names of all commands.
        ids: Of the manifest; ``None`` where there is no manifest.
        goal: The value of ``--goal``.
        ids_only: The words stood behind ``--``.

    Raises:
        UsageError: They can be read in no way, or in more than one.
    """
    if goal is not None:
        return _goal_option(goal, words)
    if not words:
        return Subset()
    if words[0] in commands and not ids_only:
        raise UsageError(_named_command(words[0], ids or ()))
    if all(word in (ids or ()) for word in words):
        return Subset(tuple(TaskId(word) for word in dict.fromkeys(words)))
    if len(words) == 1 and not ids_only and _has_space(words[0]):
        if not words[0].strip():
            raise UsageError("the goal is empty; say in words what is to be done")
        return Goal(words[0])
    raise UsageError(_unknown(words, commands=commands, ids=ids, ids_only=ids_only))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of ``known`` that was probably meant, if any is near."""
    by_fold = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), list(by_fold), 1, _CUTOFF)
    return by_fold[close[0]] if close else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: ``; did you mean 'T440'?``, or nothing."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def shown(word: str) -> str:
    """Return a word of the user's between quotes, harmless and not too long."""
    return f"'{one_line(word, _SHOWN)}'"


def _has_space(word: str) -> bool:
    return any(char.isspace() for char in word)


def _goal_option(goal: str, words: Sequence[str]) -> Goal:
    if words:
        raise UsageError(f"--goal and {shown(words[0])}: give a goal or task ids, not both")
    if not goal.strip():
        raise UsageError("the goal is empty; say in words what is to be done")
    return Goal(goal)


def _named_command(word: str, ids: Collection[str]) -> str:
    message = f"{shown(word)} is a command: write it first, its options behind it (loop {word} …)"
    if word in ids:
        message += f"; for the task of that name: loop run -- {word}"
    return f"{message}; for a goal: loop --goal {shlex.quote(word)}"


def _unknown(
    words: Sequence[str],
    *,
    commands: Collection[str],
    ids: Collection[str] | None,
    ids_only: bool,
) -> str:
    word = next(word for word in words if word not in (ids or ()))
    if not word.strip():
        return "a word is empty; name task ids"
    may_be_command = not ids_only and word == words[0]
    known = (*(ids or ()), *(commands if may_be_command else ()))
    kinds = (
        "no task of the manifest and no command" if may_be_command else "no task of the manifest"
    )
    if ids is None:
        kinds += " (there is no manifest here)"
    message = f"{shown(word)} is {kinds}{suggestion(word, known)}"
    if ids_only:
        goal = one_line(shlex.quote(" ".join(words)), _SHOWN)
        return f"{message} (behind -- only ids may stand; for a goal: loop --goal={goal})"
    return message
