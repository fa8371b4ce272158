"""The file of ``loop answer --file``: written by ``--template``, filled in, read back."""

import json
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from loopctl.cli.answers import CAPS, Given
from loopctl.cli.words import shown, suggestion
from loopctl.domain import Decision
from loopctl.errors import AnswerError, Fault, FaultsError
from loopctl.report.escape import visible
from loopctl.report.wording import decision_word

_HEAD: Final = """\
# Answers for `loop answer --file`: fill in `answer`; one that stays empty is left open.
# Caps of a budget decision may be raised with: budget = { usd = 2.0, loops = 50 }
# An approval is answered with "approve" or "reject"; a budget may be "reject" too.
"""
_KEYS: Final = ("id", "answer", "budget")


def template(decisions: Iterable[Decision], ids: Collection[str] = ()) -> str:
    """Return a file with every decision, what is asked as comments, no answer given.

    Args:
        decisions: Those that are open.
        ids: Of the manifest's tasks, from which the decisions' ids are kept apart.
    """
    entries = (_entry(decision, decision_word(decision, ids)) for decision in decisions)
    return _HEAD + "".join(entries)


def _entry(decision: Decision, word: str) -> str:
    told = [("", f"{decision.id} [{decision.kind.value}] {decision.question}")]
    told += [("why: ", decision.reason), ("best guess: ", decision.best_guess)]
    told += [("option: ", option) for option in decision.options]
    comment = "\n".join(_comment(name + text) for name, text in told if text)
    return f'\n{comment}\n[[answer]]\nid = {json.dumps(word)}\nanswer = ""\n'


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in visible(text).split("\n"))


def read_answers(text: str, name: str) -> list[Given]:
    """Return the answers of a file, those left empty not among them.

    Args:
        text: The file's contents.
        name: As the user would name it.

    Raises:
        FaultsError: It is no such file; all its faults.
        AnswerError: It holds no answer at all.
    """
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise FaultsError(Fault(name, 0, str(error))) from error
    entries = document.get("answer", [])
    faults = [Fault(name, 0, f"unknown key {key!r}") for key in document if key != "answer"]
    if not isinstance(entries, list):
        raise FaultsError(Fault(name, 0, "answers are written as [[answer]] tables"))
    for number, entry in enumerate(entries, 1):
        faults.extend(Fault(name, 0, f"answer {number}: {why}") for why in _faults(entry))
    if faults:
        raise FaultsError(*faults)
    given = [_given(entry) for entry in entries]
    filled = [one for one in given if one.text.strip() or one.budget]
    if not filled:
        raise AnswerError(f"{name} holds no answer: fill in `answer` where you want to give one")
    return filled


def _faults(entry: Any) -> list[str]:
    if not isinstance(entry, dict):
        return ["not a table"]
    faults = [f"unknown key {key!r}{suggestion(key, _KEYS)}" for key in entry if key not in _KEYS]
    if not isinstance(entry.get("id"), str):
        faults.append("`id` is missing or no text")
    if not isinstance(entry.get("answer", ""), str):
        faults.append("`answer` is no text")
    budget = entry.get("budget", {})
    if not isinstance(budget, dict):
        return [*faults, "`budget` is no table such as { usd = 2.0 }"]
    for name, value in budget.items():
        if name not in CAPS:
            faults.append(f"no cap is called {shown(name)}{suggestion(name, CAPS)}")
        elif not _is_cap(value):
            faults.append(f"the cap {name} is no number of 0 or more")
    return faults


def _is_cap(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and bool(0 <= value < float("inf"))


def _given(entry: dict[str, Any]) -> Given:
    budget = {name: float(value) for name, value in entry.get("budget", {}).items()}
    return Given(entry["id"], entry.get("answer", ""), budget or None)


def read_file(name: str, stdin: Iterable[str]) -> list[Given]:
    """Return the answers of the file ``name``; ``-`` is stdin.

    Raises:
        AnswerError: It cannot be read.
    """
    if name == "-":
        return read_answers("".join(stdin), "stdin")
    try:
        return read_answers(Path(name).read_text("utf-8"), name)
    except OSError as error:
        raise AnswerError(f"--file {shown(name)}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AnswerError(f"--file {shown(name)}: it is no UTF-8 text") from error
