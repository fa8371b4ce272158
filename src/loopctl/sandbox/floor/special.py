"""What single programs may not be told, where a table of words does not say it."""

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from loopctl.sandbox.floor import marks
from loopctl.sandbox.floor.effects import (
    INFRASTRUCTURE,
    PUBLISH,
    SANDBOX,
    refused_name,
    refused_words,
)

_SUBCOMMANDS: Final = frozenset(
    {"git", "npm", "docker", "kubectl", "cargo", "terraform", "aws", "gcloud", "gh", "helm", "loop"}
    | {"pnpm", "yarn", "gem", "poetry", "uv", "az", "busybox", "toybox"}
)
_MOUNT: Final = re.compile(
    r"(?:-v|--volume=)?(?:~|/|/etc|/root|/home|/var/run/docker\.sock|/run/docker\.sock|/proc|/sys)(?::.*)?"
    r"|.*(?:source|src)=/(?:,.*|etc.*|root.*|home.*)?|--(?:pid|ipc|userns|net|network)=host|--cap-add.*"
)
_LOCAL: Final = re.compile(r"(?:https?://)?(?:localhost|127\.|\[::1\]|0\.0\.0\.0)")


def special_refusal(name: str, rest: Sequence[str]) -> str:
    """Return why a program may not be run with these words; empty where it may."""
    if name in {"docker", "podman", "nerdctl"}:
        is_escape = any(_MOUNT.fullmatch(marks.shown(word)) for word in rest[1:])
        return SANDBOX if is_escape else PUBLISH if "--push" in rest else ""
    if name in {"loop", "loopctl"}:
        return SANDBOX if "--no-sandbox" in rest else refused_words("loop", rest)
    if name in {"make", "gmake"} and any(marks.STREAM in word for word in rest):
        return "runs what is only known when it is run"
    if name in {"curl", "http", "wget", "xh", "https"}:
        return _deletes(rest)
    if name in {"kill", "pkill", "killall"}:
        return _kills(name, rest)
    if name in {"ln", "cp", "install"}:
        sources = [basename(word) for word in rest if not word.startswith("-")][:-1]
        return next((found for one in sources if (found := refused_name(one))), "")
    return ""


def unknown_command(name: str, rest: Sequence[str], command: str | None) -> str:
    """Return why a program is refused whose subcommand cannot be known; empty where it can.

    Args:
        name: The program.
        rest: Its words.
        command: The subcommand; ``None`` where it is the first word that is no option.
    """
    if name not in _SUBCOMMANDS:
        return ""
    if command is None:
        command = next((word for word in rest if word[:1] != "-"), "")
    if marks.is_unknown(command) or marks.has_glob(command):
        return f"which command of {name} it is, is only known when it is run"
    return ""


def _deletes(rest: Sequence[str]) -> str:
    text = " ".join(rest)
    asks = re.search(r"(?:-X\s*|--request[ =]|--method[ =]|^)DELETE\b", text)
    return INFRASTRUCTURE if asks and not any(_LOCAL.match(word) for word in rest) else ""


def _kills(name: str, rest: Sequence[str]) -> str:
    if name == "kill":
        targets = [word for word in rest if not re.match(r"-[A-Za-z]", word)]
        targets = (
            targets[1:]
            if targets[:1] and re.fullmatch(r"-\d+", targets[0]) and len(targets) > 1
            else targets
        )
        is_bad = any(word in {"-1", "1", "0"} for word in targets)
        return SANDBOX if is_bad else ""
    return SANDBOX if any("loop" in word for word in rest) else ""
