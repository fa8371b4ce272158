"""What a git command does: its subcommand behind its options, and the commands that it runs."""

import re
from collections.abc import Sequence
from typing import Final

from loopctl.sandbox.floor import marks
from loopctl.sandbox.floor.effects import HISTORY, PUSH

_TAKES_VALUE: Final = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"}
    | {"--super-prefix", "--attr-source"}
)
_REFUSED: Final = {
    **dict.fromkeys(("push", "send-pack", "http-push", "p4", "svn", "send-email"), PUSH),
    **dict.fromkeys(("filter-branch", "filter-repo", "replace", "fast-import", "prune"), HISTORY),
}
_WITH: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("reflog", re.compile(r"expire|delete")),
    ("update-ref", re.compile(r"-d|--delete|--stdin|-z")),
    ("gc", re.compile(r"--prune=.*")),
    ("branch", re.compile(r"-[a-zA-Z]*D[a-zA-Z]*")),
    ("stash", re.compile(r"clear")),
    ("symbolic-ref", re.compile(r"-d|--delete")),
    ("lfs", re.compile(r"push|migrate")),
    ("annex", re.compile(r"sync|drop|copy")),
    ("subtree", re.compile(r"push")),
    ("bundle", re.compile(r"unbundle")),
    ("worktree", re.compile(r"remove|prune")),
)
_RUNS_VALUE: Final = re.compile(
    r"(?:alias\..*|core\.(?:sshcommand|pager|editor|fsmonitor|askpass|alternaterefscommand)"
    r"|sequence\.editor|diff\.external|gpg(?:\..*)?\.program|credential(?:\..*)?\.helper"
    r"|(?:filter|diff|merge|difftool|mergetool|pager|remote|browser|man|trailer|tar|interactive)"
    r"\..*|uploadpack\..*|web\.browser)",
    re.IGNORECASE,
)
_EXECS: Final = {
    "rebase": ("-x", "--exec"),
    "difftool": ("-x", "--extcmd"),
    "clone": ("-u", "--upload-pack"),
}


class GitCall:
    """One call of git.

    Attributes:
        folder: Where it is run, beside the command's own folder; ``.`` where nothing is said.
        command: The subcommand; empty where there is none.
        rest: The words after it.
        runs: Texts that it gives to a shell.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.folder = "."
        self.runs: list[str] = []
        self._aliases: dict[str, str] = {}
        at = 0
        while at < len(words) and words[at].startswith("-"):
            name, has_value, value = words[at].partition("=")
            if name in _TAKES_VALUE and not (has_value and name.startswith("--")):
                value = words[at + 1] if at + 1 < len(words) else ""
                name, at = words[at], at + 1
            self._option(name, value)
            at += 1
        self.command = words[at] if at < len(words) else ""
        self.rest = list(words[at + 1 :])
        self._read()

    def _option(self, name: str, value: str) -> None:
        if name in {"-C", "--work-tree", "--git-dir"}:
            self.folder = value if name != "--git-dir" else value.removesuffix("/.git")
        elif name == "-c":
            key, _, setting = value.partition("=")
            self._setting(key, setting)
            if key.lower().startswith("alias."):
                self._aliases[key[6:]] = setting
        elif name == "--exec-path" and value:
            self.runs.append(marks.COMPUTED)

    def _setting(self, key: str, value: str) -> None:
        if marks.is_unknown(key):
            self.runs.append(marks.COMPUTED)
        if not _RUNS_VALUE.fullmatch(key):
            return
        is_alias = key.lower().startswith("alias.")
        if value.startswith("!"):
            self.runs.append(value[1:])
        elif is_alias:
            self.runs.append(f"git {value}")
        elif " " in value or re.fullmatch(r"[\w./-]*", value):
            self.runs.append(value)

    def _read(self) -> None:
        rest = self.rest
        if self.command in self._aliases and not self._aliases[self.command].startswith("!"):
            self.runs.append(" ".join(["git", self._aliases[self.command], *rest]))
        if self.command == "config":
            key, *values = [*(word for word in rest if not word.startswith("-")), ""]
            if key in {"set", "add"}:
                key, *values = values
            self._setting(key, values[0] if values else "")
        elif self.command == "bisect" and rest[:1] == ["run"]:
            self.runs.append(" ".join(rest[1:]))
        elif self.command == "submodule" and "foreach" in rest:
            words = rest[rest.index("foreach") + 1 :]
            self.runs.append(" ".join(word for word in words if word != "--recursive"))
        for option in _EXECS.get(self.command, ()):
            self._option_that_runs(option)

    def _option_that_runs(self, option: str) -> None:
        is_short = not option.startswith("--")
        for index, word in enumerate(self.rest):
            if word == option and index + 1 < len(self.rest):
                self.runs.append(self.rest[index + 1])
            elif word != option and word.startswith(option if is_short else f"{option}="):
                self.runs.append(word[len(option) :].removeprefix("="))

    def refusal(self) -> str:
        """Return why the subcommand is refused; empty where it is not."""
        if why := _REFUSED.get(self.command):
            return why
        for command, pattern in _WITH:
            if command == self.command and any(pattern.fullmatch(word) for word in self.rest):
                return HISTORY
        is_forced = bool({"-f", "--force"} & {*self.rest})
        is_removal = bool({"-d", "--delete"} & {*self.rest})
        if self.command == "branch" and is_forced and is_removal:
            return HISTORY
        return ""
