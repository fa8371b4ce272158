"""Judges a command by what it and all that it runs would do. Pure: nothing is run or looked up."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from posixpath import basename
from typing import Final

from loopctl.sandbox.floor import code, expand, marks
from loopctl.sandbox.floor.effects import (
    DATABASE,
    HISTORY,
    KEYS,
    SANDBOX,
    refused_name,
    refused_words,
)
from loopctl.sandbox.floor.feeding import EMPTY, UNKNOWN, Feed, output
from loopctl.sandbox.floor.gitwords import GitCall
from loopctl.sandbox.floor.paths import Place, place, resolved
from loopctl.sandbox.floor.reader import DEPTH, Bracket, Item, Reader, Simple, UnreadableError
from loopctl.sandbox.floor.removal import REMOVES, file_refusal, removal_refusal, target_refusal
from loopctl.sandbox.floor.runners import LANGUAGE, SHELL, Runs, runs
from loopctl.sandbox.floor.special import special_refusal, unknown_command

LETTERS: Final = 200_000
"""A longer command is not read."""

_WORDS: Final = 20_000
_VALUES: Final = 24
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?(\+?)=(.*)", re.DOTALL)
_RESERVED: Final = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "fi", "done", "esac"}
)
_DECLARES: Final = frozenset({"export", "declare", "local", "readonly", "typeset"})
_READS: Final = frozenset({"read", "mapfile", "readarray", "getopts"})
_RUN_BY_OTHERS: Final = re.compile(
    r"(?:\w*_COMMAND|\w*EDITOR|VISUAL|\w*PAGER|BASH_ENV|ENV|BROWSER|GIT_EXTERNAL_DIFF|\w*ASKPASS"
    r"|GIT_SSH|RSYNC_RSH|LESSOPEN|LESSCLOSE|PS[0-4]|MAKE|SHELL)"
)
_SETTINGS: Final = re.compile(r"LOOP_(?!TASK$|RUN$|STEP_GOAL$|ANSWER$|OBSERVATION$|OUTBOX$)\w+")
_CLIENTS: Final = frozenset(
    {"psql", "mysql", "mariadb", "mongo", "mongosh", "redis-cli", "cqlsh", "sqlcmd", "clickhouse"}
    | {"clickhouse-client", "sqlplus", "cockroach", "bq", "snowsql", "influx", "duckdb", "mycli"}
    | {"pgcli", "usql", "wp", "rails", "heroku", "docker", "kubectl", "supabase", "prisma"}
)
_BOMB: Final = re.compile(
    r"([^\s(){}|&;]{1,40})\s{0,9}\(\)\s{0,9}\{[^}]{0,99}\1\s{0,9}\|\s{0,9}\1\s{0,9}&"
)


class RefusedError(Exception):
    """What is refused, in a few words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of a command.

    Attributes:
        refusal: Why it is refused; empty where the floor has nothing against it.
        commands: The simple commands that were read, program first and without its folder.
    """

    refusal: str = ""
    commands: tuple[tuple[str, ...], ...] = ()


def judge(command: str, roots: Sequence[str] = ()) -> Finding:
    """Return what a shell's command comes to; never raises.

    Args:
        command: As it would be given to ``bash -c``.
        roots: Absolute paths that are the worktree, or the sandbox's own scratch folder.
    """
    if len(command) > LETTERS:
        return Finding("it is too long to be read")
    if "\0" in command or marks.holds_mark(command):
        return Finding("it holds letters that no command needs")
    walk = _Walk(roots)
    try:
        if _BOMB.search(command):
            raise RefusedError("starts processes without end")  # noqa: TRY301
        walk.text(command, 0)
        if walk.values:
            # What a function does may rest on what is set after it.
            walk.commands.clear()
            walk.count = 0
            walk.text(command, 0)
    except RefusedError as refused:
        return Finding(str(refused), tuple(walk.commands))
    except UnreadableError as error:
        return Finding(f"the command cannot be read: {error}", tuple(walk.commands))
    except (RecursionError, OverflowError):
        return Finding("the command cannot be read: it is too large", tuple(walk.commands))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the reader must refuse
        return Finding(f"the command cannot be read: {type(error).__name__}", tuple(walk.commands))
    return Finding("", tuple(walk.commands))


@dataclass(slots=True)
class _Level:
    cwd: str
    last: Feed = UNKNOWN


@dataclass(slots=True)
class _Walk:
    roots: Sequence[str]
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    commands: list[tuple[str, ...]] = field(default_factory=list)
    cwd: str = "."
    count: int = 0

    def text(self, text: str, depth: int, feed: Feed = UNKNOWN) -> None:
        """Judge a text for a shell."""
        if depth > DEPTH:
            raise UnreadableError("it is nested too deep")
        if marks.COMPUTED in text and not text.strip(f" \n{marks.COMPUTED}"):
            raise RefusedError("runs what is only known when it is run")
        self.items(Reader(text, depth).read(), depth, feed)

    def items(self, items: Sequence[Item], depth: int, feed: Feed) -> None:
        """Judge commands in their order."""
        stack: list[_Level] = []
        last = UNKNOWN
        outer = feed
        for item in items:
            if isinstance(item, Bracket):
                if item.is_open:
                    stack.append(_Level(self.cwd, last))
                    outer = outer if item.is_substitution else UNKNOWN
                elif stack:
                    level = stack.pop()
                    self.cwd = level.cwd
                    last = level.last if item.is_substitution else UNKNOWN
                continue
            given = Feed(item.given) if item.given is not None else None
            now = given or (last if item.is_piped else UNKNOWN if item.sources else outer)
            last = self.simple(item, now, depth)

    def simple(self, item: Simple, feed: Feed, depth: int) -> Feed:
        """Judge one simple command; return what it writes."""
        ways = expand.combinations([*item.words, *item.targets, *item.sources], self.values)
        if ways is None:
            raise OverflowError
        written = UNKNOWN
        for way in ways:
            words, targets = self._expanded(item, way)
            written = self.run(words, feed, depth)
            self._write(targets, written)
        return written

    def _expanded(self, item: Simple, way: dict[str, str]) -> tuple[list[str], list[str]]:
        """Expand a command, keep what it assigns, and judge where its output goes."""
        words = list(item.words)
        while words and (words[0] in _RESERVED or words[0] in {marks.OPEN, marks.CLOSE}):
            words = words[1:]
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            self._assign(match[1], match[3], way, is_added=bool(match[2]))
            words = words[1:]
        if words[:1] in (["for"], ["select"]) and len(words) > 1:
            for word in words[3:] or [marks.COMPUTED]:
                self._loop(words[1], expand.fields(word, way))
            words = []
        if words[:1] in (["case"], ["function"]):
            words = words[words.index("in") + 2 :] if "in" in words else words[2:]
            return self._expanded(Simple(words, item.targets, item.sources), way)
        targets = [one for word in item.targets for one in expand.fields(word, way)]
        for target in targets:
            if why := target_refusal(target, self.cwd, self.roots):
                raise RefusedError(f"{why} ({marks.shown(target)})")
        sources = [one for word in item.sources for one in expand.fields(word, way)]
        if why := file_refusal("cat", sources, self.cwd, self.roots):
            raise RefusedError(why)
        return [one for word in words for one in expand.fields(word, way)], targets

    def _loop(self, name: str, found: Sequence[str]) -> None:
        for value in found:
            self._set(name, value)

    def _assign(self, name: str, word: str, way: dict[str, str], *, is_added: bool = False) -> None:
        value = expand.joined(word, way)
        if _SETTINGS.fullmatch(name):
            raise RefusedError(f"{SANDBOX} ({name})")
        if _RUN_BY_OTHERS.fullmatch(name) and value and name not in {"SHELL", "MAKE", "PS4"}:
            self.text(value, DEPTH // 2)
        for before in self.values.get(name, ("",)) if is_added else ():
            self._set(name, before + value)
        if not is_added:
            self._set(name, value)

    def _set(self, name: str, value: str) -> None:
        known = self.values.get(name, ())
        if value not in known:
            known = (*known, value)
        self.values[name] = known if len(known) <= _VALUES else (marks.COMPUTED,)

    def _write(self, targets: Sequence[str], written: Feed) -> None:
        """Remember what the command line itself writes to a file that it may run later."""
        for target in targets:
            path = resolved(target, self.cwd)
            if written.text is not None and not marks.is_unknown(path):
                self.files[path] = f"{self.files.get(path, '')}\n{written.text}"

    def run(self, words: Sequence[str], feed: Feed, depth: int) -> Feed:
        """Judge a command whose words are known; return what it writes."""
        if depth > DEPTH:
            raise UnreadableError("it is nested too deep")
        self.count += 1 + len(words)
        if self.count > _WORDS:
            raise OverflowError
        words = list(words)
        while words and (words[0] in _RESERVED or _ASSIGNMENT.fullmatch(words[0])):
            match = _ASSIGNMENT.fullmatch(words[0])
            if match:
                self._assign(match[1], match[3], {}, is_added=bool(match[2]))
            words = words[1:]
        if not words or not words[0]:
            return UNKNOWN
        name, rest = _name(words[0]), words[1:]
        call = GitCall(rest) if name == "git" else None
        plain = [call.command, *call.rest] if call is not None else rest
        self.commands.append((name, *map(marks.shown, plain)))
        self._refuse(name, rest, call)
        self._states(name, rest)
        found = runs(name, rest)
        self._inner(name, found, feed, depth + 1)
        if call is not None:
            for text in call.runs:
                self.text(text, depth + 1)
        self._code_of_files(words[0], name, rest, depth + 1)
        self._data(name, rest, feed)
        return output([name, *rest], feed, self._where)

    def _where(self, word: str) -> Place:
        return place(word, self.cwd, self.roots)

    def _refuse(self, name: str, rest: Sequence[str], call: GitCall | None) -> None:
        why = refused_name(name) or refused_words(name, rest)
        why = why or file_refusal(name, rest, self.cwd, self.roots)
        if call is not None:
            why = why or call.refusal() or self._git_elsewhere(call)
        command = call.command if call is not None else None
        why = why or special_refusal(name, rest) or unknown_command(name, rest, command)
        if why:
            raise RefusedError(f"{why} ({marks.shown(' '.join([name, *rest]))[:80]})")

    def _git_elsewhere(self, call: GitCall) -> str:
        is_removal = call.command in {"clean", "reset", "checkout", "restore", "rm", "gc", "stash"}
        is_out = self._where(call.folder) in {Place.OUTSIDE, Place.UNKNOWN}
        is_away = self._where(".") is Place.OUTSIDE and call.command in {"clean", "reset"}
        return HISTORY if is_removal and (is_out or is_away) else ""

    def _states(self, name: str, rest: Sequence[str]) -> None:
        """Keep what a command changes for those after it: the folder, and variables."""
        plain = [word for word in rest if not word.startswith("-") or word == "-"]
        if name in {"cd", "pushd", "chdir"}:
            self._enter(plain[0] if plain else marks.HOME)
        elif name in _DECLARES:
            self._declare(rest)
        elif name in _READS:
            for word in plain:
                self._set(word, marks.COMPUTED)
        elif name == "printf" and rest[:1] == ["-v"] and len(rest) > 1:
            self._set(rest[1], output(["printf", *rest[2:]], EMPTY, self._where).text or "")

    def _enter(self, to: str) -> None:
        is_unknown = to == "-" or to[:1] in {marks.GIVEN, marks.COMPUTED}
        self.cwd = f"/{marks.COMPUTED}" if is_unknown else resolved(to, self.cwd)
        for root in self.roots:
            if self.cwd == root or self.cwd.startswith(f"{root}/"):
                self.cwd = self.cwd[len(root) + 1 :] or "."

    def _declare(self, rest: Sequence[str]) -> None:
        for word in rest:
            if match := _ASSIGNMENT.fullmatch(word):
                self._assign(match[1], match[3], {}, is_added=bool(match[2]))
            elif "n" in word[:3] and word.startswith("-"):
                raise RefusedError("names one variable by another")

    def _inner(self, name: str, found: Runs, feed: Feed, depth: int) -> None:
        for words in found.words:
            if found.appends_input:
                self._with_input(words, feed, depth)
            else:
                self.run(words, feed, depth)
        for text in found.texts:
            cwd = self.cwd
            self.text(text, depth, feed)
            if name not in {"eval", "source", "."}:
                self.cwd = cwd
        for text in found.code:
            self._code(name, text, depth)
        if found.reads_input:
            if feed.text is None:
                raise RefusedError(f"{name} runs an input that is only known when it is run")
            if LANGUAGE.fullmatch(name):
                self._code(name, feed.text, depth)
            else:
                self.text(feed.text, depth)

    def _with_input(self, words: Sequence[str], feed: Feed, depth: int) -> None:
        if feed.text is not None:
            self.run([*words, *feed.text.split()], EMPTY, depth)
        elif feed.is_listing:
            self.run([*words, "a-file-of-the-worktree"], EMPTY, depth)
        else:
            self.run([*words, marks.COMPUTED], EMPTY, depth)

    def _code(self, name: str, text: str, depth: int) -> None:
        """Judge a program in another language by the words and texts in it."""
        if marks.COMPUTED in text:
            raise RefusedError(f"{name} runs what is only known when it is run")
        if code.secret(text):
            raise RefusedError(f"{KEYS} ({name})")
        if code.SQL.search(text) and re.search(
            r"connect|execute|client|query|mongo", text, re.IGNORECASE
        ):
            raise RefusedError(f"{DATABASE} ({name})")
        is_awk = name.endswith("awk")
        if (why := code.hidden(text)) and not is_awk:
            raise RefusedError(why)
        literals = code.literals(text)
        if code.removes_files(text):
            self._removed(text, literals)
        if code.runs_programs(text):
            if not literals and not is_awk:
                raise RefusedError(f"{name} runs a program that is only known when it is run")
            for literal in [*literals, " ".join(literals)]:
                self._literal(literal, depth)

    def _removed(self, text: str, literals: Sequence[str]) -> None:
        if code.is_about_home(text) or not literals:
            raise RefusedError(REMOVES.format(Place.UNKNOWN.value))
        for literal in literals:
            word = literal.replace("~", marks.HOME, 1) if literal.startswith("~") else literal
            if " " not in word and (why := removal_refusal(word, self.cwd, self.roots)):
                raise RefusedError(why)

    def _literal(self, literal: str, depth: int) -> None:
        """Judge a text that may be given to a shell; one that is no command is passed over."""
        try:
            self.text(literal, depth)
        except UnreadableError:
            for word in literal.split():
                if refused_name(basename(word)):
                    raise RefusedError(refused_name(basename(word))) from None

    def _code_of_files(self, first: str, name: str, rest: Sequence[str], depth: int) -> None:
        """Judge a script that this command line has written itself."""
        is_reader = SHELL.fullmatch(name) or name in {"source", "."}
        plain = [word for word in rest if not word.startswith("-")]
        path = resolved(plain[0] if is_reader and plain else first, self.cwd)
        if is_reader or "/" in first:
            if text := self.files.get(path):
                self.text(text, depth)
        elif LANGUAGE.fullmatch(name) and plain:
            text = self.files.get(resolved(plain[0], self.cwd), "")
            self._code(name, text, depth)

    def _data(self, name: str, rest: Sequence[str], feed: Feed) -> None:
        if name in _CLIENTS:
            text = " ".join([*rest, feed.text or ""])
            if code.SQL.search(text):
                raise RefusedError(f"{DATABASE} ({name})")


def _name(word: str) -> str:
    """Return the name of a program without its folder; refuse one that nobody can know."""
    last = basename(word.rstrip("/")).removeprefix("=")
    if marks.is_unknown(last) or marks.STREAM in word:
        raise RefusedError("which program it runs is only known when it is run")
    is_listed = word[:1] not in {marks.GIVEN, marks.COMPUTED} and " " not in word
    if marks.COMPUTED in word or (marks.GIVEN in word and is_listed and marks.has_glob(word)):
        raise RefusedError("which program it runs is only known when it is run")
    if marks.has_glob(last) and last.strip(marks.SET) != "" and last != marks.SET:
        raise RefusedError(f"which program it runs is a pattern ({marks.shown(word)})")
    folded = unicodedata.normalize("NFKC", last)
    found = "".join(one for one in folded if unicodedata.category(one) not in {"Cf", "Cc", "Mn"})
    if found.lower() in {"rm", "git"} or refused_name(found.lower()):
        return found.lower()
    return marks.shown(found) if marks.holds_mark(found) else found
