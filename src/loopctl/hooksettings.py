"""``[hooks.NAME]``: a program of the user's that is asked about calls of tools, or told of them."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from loopctl.tomlsource.sections import Seconds, Section, Word

HookName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9](_?[A-Za-z0-9-])*$")]

TIMEOUT_S: Final = 60.0
EVERY: Final = "*"


def _matcher(text: str) -> str:
    try:
        re.compile("" if text == EVERY else text)
    except re.error as exc:
        raise ValueError(f"is no regular expression ({exc}) and would match no tool") from exc
    return text


class HookSettings(Section):
    """``[hooks.NAME]``: a command, the tools that it is for, and when it is run."""

    event: Literal["pre_tool_use", "post_tool_use"] = Field(
        default="pre_tool_use", description="pre_tool_use may block a call; post_tool_use is told."
    )
    match: Annotated[Word, AfterValidator(_matcher)] = Field(
        default=EVERY, description="A regular expression for the whole name of a tool; `*`: all."
    )
    command: Word = Field(description="Run by `sh` in your checkout; JSON on stdin.")
    timeout_s: Seconds = Field(
        default=TIMEOUT_S, description="Seconds; a hook that takes longer blocks the call."
    )
