"""Reads a command line into its simple commands, as a shell would split it. Runs nothing."""

import re
from dataclasses import dataclass, field
from typing import Final

from loopctl.sandbox.floor import marks
from loopctl.sandbox.floor.quoting import c_quoted, parameter

DEPTH: Final = 24
_OPEN: Final = 100
_ARITHMETIC: Final = 4_000
"""Letters of an arithmetic expression at most; a longer one is read as commands."""
_BREAKS: Final = frozenset(";&|\n()")
_HEREDOC: Final = re.compile(r"-?[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")
_GLOBS: Final = {"*": marks.STAR, "?": marks.ONE, "[": marks.SET}
_BRACES: Final = {"{": marks.OPEN, ",": marks.COMMA, "}": marks.CLOSE}
_PREFIX: Final = frozenset(
    {"then", "else", "do", "if", "while", "until", "elif", "!", marks.OPEN, "time", "coproc"}
)
_RESERVED: Final = _PREFIX | {"case", "esac", "for", "select", "function", "fi", "done", "in"}


class UnreadableError(Exception):
    """A command that no shell could read either, or that is nested too deep; says why."""


@dataclass(slots=True)
class Simple:
    """One simple command.

    Attributes:
        words: With marks, reserved words and assignments included.
        targets: Files of redirections that write; ``sources`` of those that read.
        given: The text of a here-document or here-string that is its input.
        is_piped: Its input comes from the command before it.
    """

    words: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    given: str | None = None
    is_piped: bool = False


@dataclass(frozen=True, slots=True)
class Bracket:
    """Where a subshell begins or ends; a substitution is one as well, and no part of a pipe."""

    is_open: bool
    is_substitution: bool = False


Item = Simple | Bracket


class Reader:
    """Reads one text, or the substitution that begins at ``at`` up to its end.

    Raises:
        UnreadableError: By :meth:`read`.
    """

    def __init__(self, text: str, depth: int = 0, at: int = 0, *, is_nested: bool = False) -> None:
        if depth > DEPTH:
            raise UnreadableError("it is nested too deep")
        self._text = text
        self._depth = depth
        self.at = at
        self._is_nested = is_nested
        self._items: list[Item] = []
        self._now = Simple()
        self._word: str | None = None
        self._takes: list[str] | None = None
        self._is_string = False
        self._heredocs: list[tuple[Simple, str, bool, bool]] = []
        self._cases: list[int] = []
        self._has_quotes = False
        self._open = 0

    def read(self) -> list[Item]:
        """Return the commands in their order, each after those of its substitutions."""
        while self.at < len(self._text):
            letter = self._text[self.at]
            self.at += 1
            if letter not in _BREAKS:
                self._take(letter)
            elif self._break(letter):
                break
        else:
            if self._is_nested:
                raise UnreadableError("a $( is not closed")
        self._end_command()
        return self._items

    def _break(self, letter: str) -> bool:
        """End a command; return whether the substitution ends here."""
        if letter == "(" and self._arithmetic(1):
            return False
        is_pipe = letter == "|" and self._peek() != "|"
        if letter == "|" and self._peek() in {"|", "&"}:
            self.at += 1
        self._end_word()
        if letter == ")" and self._ends_pattern():
            self._now = Simple()
            return False
        self._end_command()
        if letter == "\n":
            self._take_heredocs()
        if letter == "(":
            self._open += 1
            if self._open > _OPEN:
                raise UnreadableError("it is nested too deep")
            self._items.append(Bracket(is_open=True))
        elif letter == ")":
            self._open -= 1
            if self._open < 0 and self._is_nested:
                return True
            if self._open >= 0:
                self._items.append(Bracket(is_open=False))
            self._open = max(self._open, 0)
        self._now.is_piped = is_pipe
        return False

    def _ends_pattern(self) -> bool:
        """Return whether a bracket belongs to a pattern of ``case``, which is no command."""
        if _first(self._now.words) == "case":
            self._cases.append(self._open)
        return self._cases[-1:] == [self._open]

    def _peek(self) -> str:
        return self._text[self.at : self.at + 1]

    def _take(self, letter: str) -> None:
        if letter in " \t\r":
            self._end_word()
        elif letter == "#" and self._word is None:
            end = self._text.find("\n", self.at)
            self.at = len(self._text) if end < 0 else end
        elif letter in "<>":
            self._redirect(letter)
        else:
            if letter == "\\" and self._peek() == "\n":
                self.at += 1
                return
            is_first = not self._word
            piece = self._piece(letter)
            self._word = (self._word or "") + (marks.HOME if is_first and letter == "~" else piece)

    def _piece(self, letter: str, *, is_quoted: bool = False) -> str:
        """Return what a letter, or the quotes that it opens, add to a word."""
        self._has_quotes |= letter in "\\'\""
        if letter == "\\":
            return self._escaped(is_quoted=is_quoted)
        if letter == "`":
            text = re.sub(r"\\([`\\$])", r"\1", self._until_backtick())
            self._inside(Reader(text, self._depth + 1).read())
            return marks.COMPUTED
        if letter == "$":
            return self._dollar(is_quoted=is_quoted)
        if is_quoted:
            return letter
        if letter == "'":
            return self._until("'")
        if letter == '"':
            return self._quoted()
        return _GLOBS.get(letter) or _BRACES.get(letter) or letter

    def _inside(self, items: list[Item], *, is_substitution: bool = True) -> None:
        """Put the commands of a substitution before the one that it is part of."""
        begin, end = (Bracket(is_open, is_substitution) for is_open in (True, False))
        self._items += [begin, *items, end]

    def _escaped(self, *, is_quoted: bool) -> str:
        letter = self._peek()
        self.at += 1
        if letter == "\n":
            return ""
        return f"\\{letter}" if is_quoted and letter not in '$`"\\' else letter

    def _until(self, end: str) -> str:
        begin = self.at
        place = self._text.find(end, begin)
        if place < 0:
            raise UnreadableError(f"a {end} is not closed")
        self.at = place + 1
        return self._text[begin:place]

    def _until_backtick(self) -> str:
        begin = self.at
        while self.at < len(self._text) and self._text[self.at] != "`":
            self.at += 2 if self._text[self.at] == "\\" else 1
        if self.at >= len(self._text):
            raise UnreadableError("a ` is not closed")
        self.at += 1
        return self._text[begin : self.at - 1]

    def _quoted(self) -> str:
        found: list[str] = []
        while self.at < len(self._text):
            letter = self._text[self.at]
            self.at += 1
            if letter == '"':
                return "".join(found)
            found.append(self._piece(letter, is_quoted=True))
        raise UnreadableError('a " is not closed')

    def _dollar(self, *, is_quoted: bool) -> str:
        following = self._peek()
        if following == "(":
            self.at += 1
            if self._arithmetic(0):
                return "0"
            begin = self.at
            reader = Reader(self._text, self._depth + 1, begin, is_nested=True)
            items = reader.read()
            self.at = reader.at
            self._inside(items)
            return _output(self._text[begin : self.at - 1])
        if following == "'" and not is_quoted:
            text, self.at = c_quoted(self._text, self.at + 1)
            if self.at < 0:
                raise UnreadableError("a $' is not closed")
            return text
        if following == '"' and not is_quoted:
            return ""
        if following == "{":
            return self._braced(is_quoted=is_quoted)
        if following == "[" and not is_quoted:
            return marks.COMPUTED
        found, self.at = parameter(self._text, self.at, is_quoted=is_quoted)
        return found

    def _braced(self, *, is_quoted: bool) -> str:
        """Read ``${…}``; what is substituted in it runs too."""
        begin = self.at = self.at + 1
        plain = True
        while self.at < len(self._text):
            letter = self._text[self.at]
            self.at += 1
            if letter == "}":
                inside = self._text[begin : self.at - 1]
                word = parameter(inside, 0, is_quoted=is_quoted)[0]
                return word if plain and re.fullmatch(r"\w+", inside) else marks.COMPUTED
            if letter in "\\`$\"'" and (letter != "'" or not is_quoted):
                plain = False
                if letter == '"':
                    self._quoted()
                else:
                    self._piece(letter, is_quoted=is_quoted)
        raise UnreadableError("a ${ is not closed")

    def _arithmetic(self, further: int) -> bool:
        """Pass over ``((…))`` where it is arithmetic; what is substituted in it runs too.

        Args:
            further: Whether the first bracket has been taken by the caller as a break.
        """
        if self._peek() != "(":
            return False
        depth, place = 2, self.at + 1
        last = min(len(self._text), place + _ARITHMETIC)
        while place < last and depth > 0:
            depth += {"(": 1, ")": -1}.get(self._text[place], 0)
            place += 1
            if depth == 1 and self._text[place : place + 1] != ")":
                return False
        if depth > 0 or (further and self._word is not None):
            return False
        inside = self._text[self.at + 1 : place - 2]
        if "\n" in inside or "'" in inside or '"' in inside or ";" in inside.replace(";;", ""):
            is_loop = self._now.words[-1:] == ["for"]
            if not is_loop or "\n" in inside:
                return False
        reader = Reader(inside.replace('"', "") + '"', self._depth + 1)
        reader._quoted()
        self._items += reader._items
        self.at = place
        return True

    def _redirect(self, letter: str) -> None:
        if self._word is not None and (self._word.isdigit() or self._word == "&"):
            self._word = None
        self._end_word()
        if self._peek() == "(":
            reader = Reader(self._text, self._depth + 1, self.at + 1, is_nested=True)
            items, self.at = reader.read(), reader.at
            self._inside(items, is_substitution=letter == "<")
            self._word = marks.STREAM
            return
        following = self._text[self.at : self.at + 2]
        if letter == "<" and following.startswith("<"):
            self.at += 1
            if following == "<<":
                self.at += 1
                self._is_string = True
                self._takes = []
                return
            self._begin_heredoc()
            return
        is_writing = letter == ">" or following.startswith(">")
        while self._peek() and self._peek() in "<>|":
            self.at += 1
        if self._peek() == "&":
            self.at += 1
            if re.match(r"\d|-", self._peek()):
                is_writing = False
                self._takes = []
                return
        self._takes = self._now.targets if is_writing else self._now.sources

    def _begin_heredoc(self) -> None:
        match = _HEREDOC.match(self._text, self.at)
        if match is None:
            raise UnreadableError("a here-document has no end word")
        self.at = match.end()
        end = re.sub(r"\\(.)|['\"]", r"\1", match[1])
        is_plain = end == match[1]
        self._heredocs.append((self._now, end, match[0].startswith("-"), is_plain))
        self._now.given = ""

    def _take_heredocs(self) -> None:
        for command, end, has_tabs, is_plain in self._heredocs:
            lines: list[str] = []
            while self.at < len(self._text):
                stop = self._text.find("\n", self.at)
                stop = len(self._text) if stop < 0 else stop
                line = self._text[self.at : stop]
                self.at = stop + 1
                line = line.lstrip("\t") if has_tabs else line
                if line == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            if is_plain:
                body = self._expanded(body)
            command.given = body
        self._heredocs.clear()
        self.at = min(self.at, len(self._text))

    def _expanded(self, body: str) -> str:
        """Return the text of a here-document, in which substitutions run."""
        reader = Reader(body.replace('"', '\\"') + '"', self._depth + 1)
        text = reader._quoted()
        self._items += reader._items
        return text

    def _end_command(self) -> None:
        self._end_word()
        now, self._now = self._now, Simple()
        if not (now.words or now.targets or now.sources):
            return
        first = _first(now.words)
        if first == "case":
            self._cases.append(self._open)
        elif first == "esac" and self._cases:
            self._cases.pop()
        self._items.append(now)

    def _end_word(self) -> None:
        word, self._word = self._word, None
        has_quotes, self._has_quotes = self._has_quotes, False
        if word is None:
            return
        if has_quotes and word in _RESERVED:
            # Quoted, it is the name of a program and no word of the shell's grammar.
            word = f"./{word}"
        if self._takes is None:
            self._now.words.append(word)
        elif self._is_string:
            self._now.given = word
        else:
            self._takes.append(word)
        self._takes, self._is_string = None, False


def _first(words: list[str]) -> str:
    """Return the first word behind those that only begin a part of the grammar."""
    found = next((place for place, word in enumerate(words) if word not in _PREFIX), len(words))
    if words[found : found + 1] == ["function"]:
        return _first(words[found + 2 :])
    return words[found] if found < len(words) else ""


def _output(command: str) -> str:
    """Return what a substitution gives, where that is plain."""
    words = command.split()
    if words[:1] == ["mktemp"]:
        return "/tmp/made-by-mktemp"  # noqa: S108 - a name for what mktemp makes
    if words in (["pwd"], ["git", "rev-parse", "--show-toplevel"]):
        return "."
    if len(words) in {2, 3} and words[:-1] in (["which"], ["command", "-v"]):
        return words[-1] if re.fullmatch(r"[\w./+-]+", words[-1]) else marks.COMPUTED
    return marks.COMPUTED
