"""Which files of the tree a verify command runs: a task that could rewrite them judges itself.

Only what is run counts: a program named by its path, the script of an interpreter, the file of
rules of a tool like make, the test file of a test runner. What a command only reads (``grep x
README.md``) may well be the work itself. What a script runs in its turn is not looked into.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from loopctl.judges.shellwords import (
    PYTHON,
    RUNNERS,
    SHELLS,
    module,
    simple_commands,
    without_options,
    without_prefixes,
)

_RULES: Final = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"),
    "rake": ("rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"),
    "invoke": ("tasks.py", "tasks/__init__.py"),
    "doit": ("dodo.py",),
    "gulp": ("gulpfile.js", "gulpfile.mjs", "gulpfile.cjs", "gulpfile.ts"),
    "grunt": ("Gruntfile.js", "Gruntfile.cjs", "Gruntfile.ts"),
}
"""Tools, and the files of rules of which they take the first that is there."""

_ALIASES: Final = {"gmake": "make", "bmake": "make", "go-task": "task", "inv": "invoke"}
_RULES_OPTION: Final = re.compile(
    r"-f(.*)|--(?:file|makefile|justfile|taskfile|rakefile|gulpfile|gruntfile)(?:=(.*))?"
)
_FOLDER_OPTION: Final = re.compile(r"-[Cd](.*)|--(?:directory|dir|working-directory)(?:=(.*))?")
_INTERPRETERS: Final = re.compile(
    r"node|deno|tsx|ts-node|go|ruby|perl|php|lua|Rscript|awk|gawk|mawk|sed|tclsh|expect|julia"
    r"|pwsh|fish|osascript"
)
_READS_RULES: Final = frozenset({"awk", "gawk", "mawk", "sed"})
_TEST_RUNNERS: Final = frozenset(
    {"pytest", "py.test", "unittest", "bats", "jest", "vitest", "mocha", "ava", "tap", "prove"}
    | {"rspec", "phpunit", "behave", "nose2", "stestr", "cram", "shellspec"}
)
TEST_FILE: Final = re.compile(
    r"test_.*|.*[_.-](test|spec|tests)\.\w+|.*\.(bats|t|feature)", re.IGNORECASE
)
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "specs"})
_PACKAGE_RUNNERS: Final = frozenset({"npm", "yarn", "pnpm", "bun"})
_EXECUTORS: Final = frozenset(
    {"npx", "bunx", "uvx", "xargs", "bundle", "sudo", "doas", "setsid", "chronic"}
)
_PRELOAD_OPTION: Final = re.compile(r"-r|--(?:require|import|loader)(?:=(.*))?")
_SCRIPT: Final = re.compile(r".*\.(py|sh|[cm]?[jt]s|rb|pl)")
_VALUE_OPTION: Final = re.compile(r"[-+][a-zA-Z]*[oO]|--(rcfile|init-file)")
_WORD_ENDS: Final = re.compile(r"[\s$()`<>\"']+")
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)|`([^`]*)`|[<>]\(([^()]*)\)")
_HERE: Final = re.compile(r"(\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`)/")
_DEEPEST: Final = 5


@dataclass(frozen=True, slots=True)
class Runs:
    """What a command runs, as far as its words tell; paths are those of the tree.

    Attributes:
        files: Each is run where it is there.
        firsts: Of each group the first that is there is run, so that a new one may take the place
            of another.
        scripts: Of ``package.json``, by name.
    """

    files: frozenset[str] = frozenset()
    firsts: frozenset[tuple[str, ...]] = frozenset()
    scripts: frozenset[str] = frozenset()

    def is_run(self, path: str, is_there: Callable[[str], bool]) -> bool:
        """Return whether ``path`` is, or would come in the place of, what is run.

        Args:
            path: Of the tree.
            is_there: Whether the base has a path.
        """
        if path in self.files:
            return is_there(path)
        groups = (group for group in self.firsts if path in group)
        return any(is_there(other) for group in groups for other in group)


def is_of_tests(path: str) -> bool:
    """Return whether a file is a test by its name, or lies in a folder of tests."""
    parts = PurePosixPath(path).parts
    return TEST_FILE.fullmatch(parts[-1]) is not None or any(
        part.casefold() in _TEST_FOLDERS for part in parts[:-1]
    )


def runs(command: str) -> Runs:
    """Return what ``command`` runs; nothing where its quoting is broken."""
    reader = _Reader()
    reader.read(command)
    return Runs(frozenset(reader.files), frozenset(reader.firsts), frozenset(reader.scripts))


class _Reader:
    def __init__(self) -> None:
        self.files: set[str] = set()
        self.firsts: set[tuple[str, ...]] = set()
        self.scripts: set[str] = set()
        self._folders = {""}

    def read(self, command: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            return
        command = _HERE.sub("./", command)
        for found in _SUBSTITUTION.finditer(command):
            self.read("".join(filter(None, found.groups())), depth + 1)
        commands = [without_prefixes(words) for words in simple_commands(command)]
        for words in filter(None, commands):
            if words[0] in {"cd", "pushd"} and len(words) > 1:
                self._folders |= {posixpath.join(folder, words[1]) for folder in self._folders}
            elif not self._program(words, depth):
                # It runs what it is given on its standard input.
                for word in (word for each in commands for word in each):
                    for part in _WORD_ENDS.split(word):
                        self._file(part)

    def _program(self, words: list[str], depth: int) -> bool:
        """Take in what one simple command runs; return False where it reads its script."""
        name, rest = PurePosixPath(words[0]).name or words[0], words[1:]
        name = _ALIASES.get(name, name)
        if "/" in words[0]:
            self._file(words[0])
        if name in SHELLS or name in {".", "source", "eval"}:
            return self._shell(name, rest, depth)
        if PYTHON.fullmatch(name):
            return self._python(rest, depth)
        if name in _RULES:
            self._rules(_RULES[name], rest)
        elif name in _PACKAGE_RUNNERS:
            self._package(rest, depth)
        elif name in RUNNERS and name != "uvx":
            inner = rest[rest.index("run") + 1 :] if "run" in rest else []
            self._program_of(without_options(inner), depth)
        elif name in _EXECUTORS:
            inner = without_options(rest)
            self._program_of(inner[1:] if inner[:1] == ["exec"] else inner, depth)
        elif name in _TEST_RUNNERS:
            self._tests(name, rest)
        elif _INTERPRETERS.fullmatch(name) and not (name == "go" and rest[:1] != ["run"]):
            self._interpreter(name, rest)
        return True

    def _shell(self, name: str, words: list[str], depth: int) -> bool:
        if name == "eval":
            self.read(" ".join(words), depth + 1)
            return False
        for index, word in enumerate(words):
            if word.startswith("<"):
                return False
            is_option = name in SHELLS and word.startswith(("-", "+"))
            if is_option and "c" in word and not word.startswith("--"):
                self.read(" ".join(words[index + 1 : index + 2]), depth + 1)
                return True
            if not is_option and not _takes_value(words, index - 1):
                self._file(word)
                return True
        return False

    def _python(self, words: list[str], depth: int) -> bool:
        if name := module(words):
            place = name.replace(".", "/")
            self._first((f"{place}/__main__.py", f"{place}.py"))
            after = words[words.index(name) + 1 :] if name in words else []
            self._program([name, *after], depth + 1)
            return True
        rest = without_options(words)
        options = words[: len(words) - len(rest)]
        if any(re.fullmatch(r"-\w*c", option) for option in options):
            return True
        if not rest or rest[0] == "-" or rest[0].startswith("<"):
            return False
        self._file(rest[0])
        self._file(f"{rest[0]}/__main__.py")
        return True

    def _rules(self, names: tuple[str, ...], words: list[str]) -> None:
        folders = [".", *_values(_FOLDER_OPTION, words)]
        named = [*_values(_RULES_OPTION, words)]
        for folder in folders:
            for path in named:
                self._file(posixpath.join(folder, path))
            if not named:
                self._first(tuple(posixpath.join(folder, name) for name in names))

    def _package(self, words: list[str], depth: int) -> None:
        """Take in the scripts of a package that its runner may be told to run."""
        own = words[: words.index("--")] if "--" in words else words
        names = [word for word in own if not word.startswith("-")]
        if names[:1] in (["exec"], ["dlx"], ["x"]):
            self._program_of(without_options(names[1:]), depth)
        for name in names:
            self.scripts |= {name, f"pre{name}", f"post{name}"}

    def _program_of(self, words: list[str], depth: int) -> None:
        if words and depth <= _DEEPEST:
            if _SCRIPT.fullmatch(words[0]):
                self._file(words[0])
            self._program(words, depth + 1)

    def _tests(self, name: str, words: list[str]) -> None:
        for word in words:
            path = word.partition("::")[0]
            if TEST_FILE.fullmatch(PurePosixPath(path).name):
                self._file(path)
            parts = word.split(".") if name == "unittest" and "/" not in word else []
            for count in range(1, len(parts) + 1):
                self._file("/".join(parts[:count]) + ".py")

    def _interpreter(self, name: str, words: list[str]) -> None:
        if name in _READS_RULES:
            for path in _values(_RULES_OPTION, words):
                self._file(path)
            return
        for path in _values(_PRELOAD_OPTION, words):
            self._file(path)
        rest = without_options(words)
        rest = without_options(rest[1:]) if rest[:1] in (["run"], ["test"]) else rest
        for path in rest if "--test" in words else rest[:1]:
            self._file(path)

    def _file(self, word: str) -> None:
        self.files |= set(self._paths(word))

    def _first(self, words: tuple[str, ...]) -> None:
        groups = zip(*([*self._paths(word)] for word in words), strict=False)
        self.firsts |= set(groups)

    def _paths(self, word: str) -> Iterator[str]:
        for folder in sorted(self._folders):
            path = posixpath.normpath(posixpath.join(folder, word))
            if word and not path.startswith(("/", "..")):
                yield path


def _takes_value(words: list[str], index: int) -> bool:
    return index >= 0 and _VALUE_OPTION.fullmatch(words[index]) is not None


def _values(option: re.Pattern[str], words: list[str]) -> Iterator[str]:
    """Yield the values of an option, which may be a word of their own."""
    for index, word in enumerate(words):
        if found := option.fullmatch(word):
            value = next(filter(None, found.groups()), "")
            yield from [value] if value else words[index + 1 : index + 2]
