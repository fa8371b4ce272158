"""What a shell command runs, as far as its words tell: whether it is plainly pytest or unittest."""

import re
import shlex
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final

_SEPARATORS: Final = frozenset({"&&", "||", ";", "|", "&", "|&", "(", ")", "{", "}", "\n", "!"})
_REDIRECTION: Final = re.compile(r"\d*[<>]&[\d-]|&>>?")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*t?")
SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
RUNNERS: Final = frozenset({"uv", "poetry", "pdm", "pipenv", "rye", "hatch", "uvx", "micromamba"})
_PYTEST: Final = frozenset({"pytest", "py.test"})
_UNITTEST: Final = frozenset({"unittest"})
_PREFIXES: Final = frozenset(
    {
        "env",
        "time",
        "nice",
        "nohup",
        "exec",
        "command",
        "timeout",
        "stdbuf",
        "xvfb-run",
        "then",
        "do",
        "else",
        "if",
        "elif",
        "while",
        "until",
    }
)
_TAKES_VALUE: Final = frozenset(
    {
        *(
            "-W",
            "-X",
            "-n",
            "-k",
            "-s",
            "-u",
            "-p",
            "-C",
            "--with",
            "--python",
            "--group",
            "--extra",
        ),
        *("--project", "--directory", "--only-group", "--env-file", "--rcfile", "--source"),
        *("--package", "--from", "--index", "--data-file", "--omit", "--include", "--context"),
    }
)


def simple_commands(command: str) -> list[list[str]]:
    """Return the words of each simple command; none where the quoting is broken."""
    plain = _REDIRECTION.sub(" ", command.replace("\\\n", " "))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="();&|\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS or set(word) <= set("();&|\n"):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words]


def runs_pytest(command: str) -> bool:
    """Return whether one of the simple commands is plainly a pytest."""
    return _runs(command, _PYTEST)


def runs_unittest(command: str) -> bool:
    """Return whether one of the simple commands is plainly Python's own unittest."""
    return _runs(command, _UNITTEST)


def _runs(command: str, names: frozenset[str]) -> bool:
    return any(_is_one(words, names) for words in simple_commands(command))


def is_only_pytest(command: str) -> bool:
    """Return whether the exit code of ``command`` is that of one pytest, and no other's.

    Commands before it may be joined by ``&&`` alone, and none may follow.
    """
    commands = simple_commands(command)
    if re.search(r"[;|\n()`]|\$\(|(?<!&)&(?!&)", _REDIRECTION.sub(" ", _unquoted(command))):
        return False
    are = [_is_one(words, _PYTEST) for words in commands]
    return are.count(True) == 1 and are[-1]


def _unquoted(command: str) -> str:
    return re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", "q", command.strip(), flags=re.DOTALL)


def _is_one(words: list[str], names: frozenset[str]) -> bool:
    words = without_prefixes(words)
    if not words:
        return False
    program, rest = PurePosixPath(words[0]).name, words[1:]
    if program in names:
        return True
    if program in SHELLS:
        return _shell_runs(rest, names)
    if PYTHON.fullmatch(program):
        return module(rest) in names or _is_coverage(rest, names)
    if program in {"coverage", "coverage3"}:
        return _covers(rest, names)
    if program in RUNNERS:
        inner = rest if program == "uvx" else rest[rest.index("run") + 1 :] if "run" in rest else []
        return _is_one(without_options(inner), names)
    return False


def without_prefixes(words: list[str]) -> list[str]:
    """Return a simple command without assignments, and programs that run what follows them."""
    while words:
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
            continue
        name = PurePosixPath(words[0]).name
        if name not in _PREFIXES:
            break
        if name == "command" and words[1:2] in (["-v"], ["-V"]):
            return []
        words = without_options(words[1:])
        if name == "timeout":
            words = words[1:]
    return words


def without_options(words: list[str]) -> list[str]:
    """Return the words from the first on that is no option and no value of one."""
    while words and words[0].startswith("-"):
        takes = words[0] in _TAKES_VALUE
        words = words[2 if takes else 1 :]
    return words


def _shell_runs(words: list[str], names: frozenset[str]) -> bool:
    for index, word in enumerate(words):
        if not word.startswith("-"):
            return False
        if not word.startswith("--") and "c" in word:
            return index + 1 < len(words) and _runs(words[index + 1], names)
    return False


def module(words: list[str]) -> str:
    """Return what ``python -m`` is told to run, empty where there is no ``-m``."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        word = words[index]
        if not word.startswith("--") and "m" in word:
            after = word.partition("m")[2]
            return after or (words[index + 1] if index + 1 < len(words) else "")
        index += 2 if word in {"-W", "-X"} else 1
    return ""


def _is_coverage(words: list[str], names: frozenset[str]) -> bool:
    return module(words) == "coverage" and _covers(words[words.index("coverage") + 1 :], names)


def _covers(words: list[str], names: frozenset[str]) -> bool:
    return words[:1] == ["run"] and any(
        flag == "-m" and name in names for flag, name in pairwise(words)
    )
