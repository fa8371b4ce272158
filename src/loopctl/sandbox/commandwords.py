"""Which programs a shell command runs, with their words; for the policy.

It reads quotes, here-documents, substitutions, and commands that run others (``env``, ``sh -c``).
It cannot know what a variable holds or what a script does: the sandbox is the boundary, and this
says early and clearly what is not wanted.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

_DEPTH: Final = 8
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HEREDOC: Final = re.compile(r"-?[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([^\s;&|<>()'\"\\]+))")
_C_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_RESERVED: Final = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "time", "fi", "done"}
)
_RUNNERS: Final = frozenset(
    {
        *("env", "nice", "nohup", "exec", "command", "builtin", "stdbuf", "setsid", "timeout"),
        *("xargs", "ionice", "chroot", "busybox"),
    }
)
_TAKES_VALUE: Final = frozenset({"-n", "-u", "-k", "-s", "-C", "-I", "-P", "-L", "-c", "-S"})
_FIRST_IS_NO_PROGRAM: Final = frozenset({"timeout", "chroot"})
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_GIT_TAKES_VALUE: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_BREAKS: Final = frozenset(";&|\n()")


class UnreadableError(Exception):
    """A command that no shell could read either, or that is nested too deep; says why."""


def commands(text: str, depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the words of each simple command, program first and without its folder.

    Assignments, redirections and programs that only run what follows them are left out; what is
    in a substitution, and what a shell is given to run, comes as commands of its own.

    Raises:
        UnreadableError: It cannot be read.
    """
    for words in _Reader(text, depth).simple():
        yield from _plain(words, depth)


def _plain(words: list[str], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield a simple command without what comes before its program, and what that runs."""
    while words:
        name = PurePosixPath(words[0]).name
        if _ASSIGNMENT.match(words[0]) or words[0] in _RESERVED:
            words = words[1:]
        elif name in _RUNNERS:
            words = _without_options(words[1:], _TAKES_VALUE)
            words = words[name in _FIRST_IS_NO_PROGRAM :]
        else:
            break
    if not words:
        return
    name, rest = PurePosixPath(words[0]).name, words[1:]
    if name == "git":
        rest = _without_options(rest, _GIT_TAKES_VALUE)
    yield (name, *rest)
    if name == "eval":
        yield from commands(" ".join(rest), depth + 1)
    if name in _SHELLS:
        for index, word in enumerate(rest[:-1]):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                yield from commands(rest[index + 1], depth + 1)
                break


def _without_options(words: list[str], takes_value: frozenset[str]) -> list[str]:
    while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0])):
        words = words[2 if words[0] in takes_value else 1 :]
    return words


class _Reader:
    """Reads one command line, or the substitution that begins at ``at`` up to its end."""

    def __init__(self, text: str, depth: int, at: int = 0, *, is_nested: bool = False) -> None:
        if depth > _DEPTH:
            raise UnreadableError("it is nested too deep")
        self._text = text
        self._depth = depth
        self.at = at
        self._is_nested = is_nested
        self._word: str | None = None
        self._words: list[str] = []
        self._is_target = False
        self._heredocs: list[tuple[str, bool]] = []
        self._inner: list[list[str]] = []

    def simple(self) -> list[list[str]]:
        """Return the words of each simple command, those of substitutions last."""
        found: list[list[str]] = []
        open_ = 0
        while self.at < len(self._text):
            letter = self._text[self.at]
            self.at += 1
            if letter not in _BREAKS:
                self._take(letter)
                continue
            found.append(self._end_command())
            open_ += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "\n":
                self._skip_heredocs()
            if open_ < 0 and self._is_nested:
                break
        else:
            if self._is_nested:
                raise UnreadableError("a $( is not closed")
        found.append(self._end_command())
        return [words for words in (*found, *self._inner) if words]

    def _take(self, letter: str) -> None:
        if letter in " \t\r":
            self._end_word()
        elif letter == "#" and self._word is None:
            end = self._text.find("\n", self.at)
            self.at = len(self._text) if end < 0 else end
        elif letter in "<>":
            self._redirect(letter)
        else:
            self._word = (self._word or "") + self._piece(letter)

    def _piece(self, letter: str) -> str:
        """Return what a letter, or the quotes that it opens, add to a word."""
        if letter == "\\":
            self.at += 1
            return self._text[self.at - 1 : self.at].strip("\n")
        if letter == "'":
            return self._until("'")
        if letter == '"':
            return self._quoted()
        if letter == "`":
            text = self._until("`").replace("\\`", "`")
            self._inner += _Reader(text, self._depth + 1).simple()
            return ""
        if letter == "$":
            return self._dollar()
        return letter

    def _until(self, end: str) -> str:
        begin = self.at
        place = self._text.find(end, begin)
        while end == "`" and place > 0 and self._text[place - 1] == "\\":
            place = self._text.find(end, place + 1)
        if place < 0:
            raise UnreadableError(f"a {end} is not closed")
        self.at = place + 1
        return self._text[begin:place]

    def _quoted(self) -> str:
        found = ""
        while self.at < len(self._text):
            letter = self._text[self.at]
            self.at += 1
            if letter == '"':
                return found
            found += letter if letter == "'" else self._piece(letter)
        raise UnreadableError('a " is not closed')

    def _dollar(self) -> str:
        following = self._text[self.at : self.at + 1]
        if following == "(":
            reader = _Reader(self._text, self._depth + 1, self.at + 1, is_nested=True)
            self._inner += reader.simple()
            self.at = reader.at
            return ""
        if following == "'":
            match = _C_QUOTED.match(self._text, self.at)
            if match is None:
                raise UnreadableError("a $' is not closed")
            self.at = match.end()
            return match[1]
        return "" if following == '"' else "$"

    def _redirect(self, letter: str) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        if letter == "<" and self._text[self.at : self.at + 1] == "<":
            self.at += 1
            if self._text[self.at : self.at + 1] != "<":
                self._begin_heredoc()
                return
        if self._text[self.at : self.at + 1] == "(":
            return
        while self._text[self.at : self.at + 1] and self._text[self.at] in "<>&|":
            self.at += 1
        self._is_target = True

    def _begin_heredoc(self) -> None:
        match = _HEREDOC.match(self._text, self.at)
        if match is None:
            raise UnreadableError("a here-document has no end word")
        self.at = match.end()
        end = next(word for word in match.groups() if word)
        self._heredocs.append((end, match[0].startswith("-")))

    def _skip_heredocs(self) -> None:
        for end, has_tabs in self._heredocs:
            while self.at < len(self._text):
                stop = self._text.find("\n", self.at)
                stop = len(self._text) if stop < 0 else stop
                line = self._text[self.at : stop]
                self.at = stop + 1
                if (line.lstrip("\t") if has_tabs else line) == end:
                    break
        self._heredocs.clear()

    def _end_command(self) -> list[str]:
        self._end_word()
        words, self._words = self._words, []
        return words

    def _end_word(self) -> None:
        if self._word is not None:
            if not self._is_target:
                self._words.append(self._word)
            self._is_target = False
            self._word = None
