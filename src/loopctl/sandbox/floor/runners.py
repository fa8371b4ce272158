"""Programs that run others: what they run, as words, as a shell's text, or as another language's."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from loopctl.sandbox.floor import marks
from loopctl.sandbox.floor.wrappers import ACTION_WORD, PLAIN, RUN_VALUES, RUN_WORD


@dataclass(frozen=True, slots=True)
class Runs:
    """What a program runs.

    Attributes:
        words: Commands, program first.
        texts: Texts for a shell.
        code: Texts in other languages.
        reads_input: What it runs is its input.
        appends_input: Its input becomes further words of ``words``.
    """

    words: list[list[str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    reads_input: bool = False
    appends_input: bool = False


SHELL: Final = re.compile(r"(?:ba|da|k|mk|pdk|z|a|fi|c|tc|r?ba)?sh|yash|xonsh|nu|pwsh|rbash|rzsh")
LANGUAGE: Final = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|deno|bun|tclsh|Rscript|osascript|ipython|jython|wish|expect)"
    r"[\d.]*(?:-dbg)?"
)
_LOADER: Final = re.compile(r"ld-linux[\w.-]*|ld-musl[\w.-]*|ld\.so[\w.-]*|ld-\d[\d.]*\.so")
_CODE: Final = {
    "python": "c", "pypy": "c", "ipython": "c", "jython": "c", "perl": "eE", "ruby": "e",
    "node": "ep", "nodejs": "ep", "php": "rBRE", "lua": "e", "luajit": "e", "bun": "e",
    "Rscript": "e", "osascript": "e", "expect": "c",
}  # fmt: skip
_CODE_WORDS: Final = frozenset({"--eval", "--print", "--run", "--execute"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_XARGS_VALUES: Final = frozenset({"-n", "-I", "-P", "-L", "-s", "-d", "-E", "-a", "--max-args"})
_ESCAPES: Final = re.compile(r"(?:vim?|nvim|ex|view|ed|less|more|man|emacs|nano|gdb|ftp|mutt|rvim)")
_ACTION: Final = re.compile(
    r"--(?:checkpoint-action=exec|to-command|use-compress-program|rsh|rmt-command|info-script"
    r"|new-volume-script|pre|unzip-command|eval|init-command)=(.*)",
    re.DOTALL,
)


def without_options(
    words: Sequence[str], takes_value: frozenset[str] = frozenset(), *, is_text: bool = False
) -> list[str]:
    """Return the words behind options, and behind assignments where no shell's text follows."""
    rest = list(words)
    while rest and (rest[0].startswith(("-", "+")) or (not is_text and _ASSIGNMENT.match(rest[0]))):
        if rest[0] == "--":
            return rest[1:] if is_text else without_assignments(rest[1:])
        rest = rest[2 if rest[0] in takes_value else 1 :]
    return rest


def without_assignments(words: Sequence[str]) -> list[str]:
    """Return the words behind assignments."""
    rest = list(words)
    while rest and _ASSIGNMENT.match(rest[0]):
        rest = rest[1:]
    return rest


def runs(name: str, rest: Sequence[str]) -> Runs:
    """Return what a program runs that is called with ``rest``."""
    if SHELL.fullmatch(name):
        return _shell(rest)
    if LANGUAGE.fullmatch(name):
        return _language(re.sub(r"[\d.]*(?:-dbg)?$", "", name), rest)
    if _LOADER.fullmatch(name):
        return Runs(words=[without_options(rest, frozenset({"--library-path", "--preload"}))])
    special = _SPECIAL.get(name)
    found = special(rest) if special is not None else Runs()
    if name in PLAIN and special is None:
        values, before = PLAIN[name]
        found = Runs(words=[without_options(rest, values)[before:]])
    if name in RUN_WORD and RUN_WORD[name] in rest[:3]:
        tail = rest[list(rest).index(RUN_WORD[name]) + 1 :]
        found.words.append(without_options(tail, RUN_VALUES))
    if _ESCAPES.fullmatch(name):
        found.texts.extend(_escapes(rest))
    found.texts.extend(_actions(name, rest))
    return found


def _shell(rest: Sequence[str]) -> Runs:
    at = 0
    while at < len(rest):
        word = rest[at]
        if word in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}:
            at += 2
        elif word in {"-", "--"}:
            at += 1
            break
        elif word.startswith("--command"):
            return Runs(texts=[rest[at + 1] if at + 1 < len(rest) else ""])
        elif word.startswith("-") and not word.startswith("--") and "c" in word:
            following = [one for one in rest[at + 1 :] if not re.match(r"[-+]\w", one)]
            return Runs(texts=following[:1])
        elif word in {"--version", "--help"} or ("n" in word and re.fullmatch(r"-\w+", word)):
            return Runs()
        elif word.startswith("-s") or (re.fullmatch(r"-\w+", word) and "s" in word):
            return Runs(reads_input=True)
        elif word.startswith(("-", "+")):
            at += 1
        else:
            break
    return _script(rest[at : at + 1])


def _script(words: Sequence[str]) -> Runs:
    if not words or words[0] in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}:
        return Runs(reads_input=True)
    if marks.STREAM in words[0] or words[0].startswith(("/dev/fd/", "/proc/self/fd/")):
        return Runs(texts=[marks.COMPUTED])
    return Runs(texts=[marks.COMPUTED] if marks.COMPUTED in words[0] else [])


def _language(name: str, rest: Sequence[str]) -> Runs:
    letters = _CODE.get(name, "c")
    if name == "deno" and rest[:1] == ["eval"]:
        return Runs(code=[*rest[1:]])
    takes = {"python": "WXQ", "perl": "IMm", "ruby": "IrCE"}.get(name, "")
    code: list[str] = []
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "-":
        word = rest[at]
        head, _, value = word.partition("=")
        if head in _CODE_WORDS:
            code.append(value or _next(rest, at))
            at += 1 if value else 2
            continue
        if word == "-m" or (name == "python" and re.fullmatch(r"-[a-zA-Z]*m\S*", word)):
            module = word.partition("m")[2] or _next(rest, at)
            behind = rest[at + (1 if word.partition("m")[2] else 2) :]
            return Runs(words=[[module.split(".")[0], *behind]])
        place = next((i for i, one in enumerate(word[1:], 1) if one in letters), 0)
        if place and not word.startswith("--") and word[1] not in takes:
            code.append(word[place + 1 :] or _next(rest, at))
            if name in {"python", "pypy"}:
                return Runs(code=code)
            at += 1 if word[place + 1 :] else 2
            continue
        at += 2 if word[1:] and word[1:] in takes else 1
    if code:
        return Runs(code=code)
    if rest and rest[0] in {"--version", "-V", "-v", "-h", "--help", "--test"}:
        return Runs()
    found = _script(rest[at : at + 1])
    return Runs(code=found.texts, reads_input=found.reads_input)


def _next(rest: Sequence[str], at: int) -> str:
    return rest[at + 1] if at + 1 < len(rest) else ""


def _env(rest: Sequence[str]) -> Runs:
    values = PLAIN["env"][0]
    for index, word in enumerate(rest):
        if word in {"-S", "--split-string"} or re.match(r"-[a-z]*S$", word):
            return Runs(texts=[" ".join(rest[index + 1 :])])
        if word.startswith("--split-string=") or re.match(r"-[a-z]*S.", word):
            head = re.split(r"S|--split-string=", word, maxsplit=1)[1]
            return Runs(texts=[" ".join([head.removeprefix("="), *rest[index + 1 :]])])
        if not word.startswith("-") and "=" not in word and rest[index - 1] not in values:
            break
    return Runs(words=[without_options(rest, values)])


def _xargs(rest: Sequence[str]) -> Runs:
    words = without_options(rest, _XARGS_VALUES)
    mark = next((_next(rest, i) for i, one in enumerate(rest) if one == "-I"), "")
    mark = mark or next((one[2:] for one in rest if re.match(r"-[Ii].", one)), "")
    if "-i" in rest:
        mark = "{}"
    if mark and words:
        return Runs(words=[[one.replace(mark, marks.COMPUTED) for one in words]])
    if any(re.match(r"-a|--arg-file", one) for one in rest):
        return Runs(words=[[*(words or ["echo"]), marks.COMPUTED]])
    return Runs(words=[words or ["echo"]], appends_input=True)


def _parallel(rest: Sequence[str]) -> Runs:
    words = without_options(rest, frozenset({"-j", "-N", "-n", "-a", "-S", "--jobs"}), is_text=True)
    split = next((i for i, one in enumerate(words) if one.startswith(":::")), len(words))
    command, given = words[:split], [one for one in words[split:] if not one.startswith(":::")]
    if not command:
        return Runs(texts=given, reads_input=not given)
    if not given:
        return Runs(texts=[" ".join([*command, marks.COMPUTED])])
    return Runs(
        texts=[
            " ".join(one.replace("{}", value) for one in command)
            + ("" if any("{}" in one for one in command) else f" {value}")
            for value in given
        ]
    )


def _find(rest: Sequence[str]) -> Runs:
    first = next((i for i, one in enumerate(rest) if one.startswith(("-", "(", "!"))), len(rest))
    root = rest[0] if first else "."
    found: list[list[str]] = []
    for index, word in enumerate(rest):
        if word in {"-exec", "-execdir", "-ok", "-okdir"}:
            behind = list(rest[index + 1 :])
            stop = next((i for i, one in enumerate(behind) if one in {";", "+"}), len(behind))
            roots = rest[:first] or [root]
            found += [
                [one.replace("{}", f"{start}/found") for one in behind[:stop]] for start in roots
            ]
    return Runs(words=found)


def _ssh(rest: Sequence[str]) -> Runs:
    takes = frozenset(f"-{letter}" for letter in "bcDEeFIiJLlmOoPpQRSWw")
    texts = [
        one.partition("=")[2] or one.partition(" ")[2]
        for one in rest
        if re.match(
            r"(?:-o)?(?:proxycommand|localcommand|knownhostscommand)[= ]", one, re.IGNORECASE
        )
    ]
    words = without_options(without_options(rest, takes)[1:], takes, is_text=True)
    return Runs(texts=[*texts, *([" ".join(words)] if words else [])])


def _joined(rest: Sequence[str]) -> Runs:
    return Runs(texts=[" ".join(rest)])


def _watch(rest: Sequence[str]) -> Runs:
    return _joined(without_options(rest, frozenset({"-n", "--interval"}), is_text=True))


def _script_command(rest: Sequence[str]) -> Runs:
    found = [_next(rest, i) for i, one in enumerate(rest) if re.fullmatch(r"-\w*c", one)]
    found += [one.partition("=")[2] for one in rest if one.startswith("--command=")]
    found += [_next(rest, i) for i, one in enumerate(rest) if one == "--command"]
    return Runs(texts=found)


def _flock(rest: Sequence[str]) -> Runs:
    values, before = PLAIN["flock"]
    behind = without_options(rest, values)[before:]
    if behind[:1] in (["-c"], ["--command"]):
        return Runs(texts=behind[1:2])
    return Runs(words=[behind])


def _trap(rest: Sequence[str]) -> Runs:
    behind = without_options(rest, is_text=True)
    return Runs(texts=behind[:1] if len(behind) > 1 and behind[0] != "-" else [])


def _alias(rest: Sequence[str]) -> Runs:
    return Runs(texts=[one.partition("=")[2] for one in rest if "=" in one])


def _command(rest: Sequence[str]) -> Runs:
    if rest and re.fullmatch(r"-p?[vV]p?", rest[0]):
        return Runs()
    return Runs(words=[without_options(rest, frozenset())])


def _awk(rest: Sequence[str]) -> Runs:
    return Runs(code=[one for one in rest if "{" in one or "(" in one])


def _sed(rest: Sequence[str]) -> Runs:
    found: list[str] = []
    for one in rest:
        if match := re.search(r"(?:^|[;{}\n\d$/])\s*e\s+(\S.*)", one, re.DOTALL):
            found.append(match[1])
        if match := re.match(
            r"(?:.*;)?\s*(?:\d+|\$|/.*/)?s(\W)(.*)\1(.*)\1[gpiImM\d]*e[gpiImM]*$", one, re.DOTALL
        ):
            found += [match[3], marks.COMPUTED]
    return Runs(texts=found)


def _source(rest: Sequence[str]) -> Runs:
    return _script(rest[:1] or ["none"])


def _escapes(rest: Sequence[str]) -> list[str]:
    """Return what editors and pagers are told to run: behind ``!`` in a command of theirs."""
    found = []
    for one in rest:
        match = re.match(r"[-+:\w\s%=.,']*!+(.*)", one, re.DOTALL)
        if match and (one.startswith(("+", ":", "!", "-")) or "!" in one):
            found.append(match[1])
        if match := re.search(r"(?:shell|system\(|py3? import)\s*['\"]?(.*)", one):
            found.append(match[1].strip("'\")"))
    return found


def _actions(name: str, rest: Sequence[str]) -> list[str]:
    found = [match[1] for one in rest if (match := _ACTION.match(one))]
    for option in ACTION_WORD.get(name, ()):
        found += [_next(rest, i) for i, one in enumerate(rest) if one == option]
        is_short = not option.startswith("--")
        found += [one[len(option) :] for one in rest if is_short and one.startswith(option)]
        found += [one.partition("=")[2] for one in rest if one.startswith(f"{option}=")]
    return [one.partition(":")[2] if name in {"make", "gmake"} else one for one in found if one]


_SPECIAL: Final[dict[str, Callable[[Sequence[str]], Runs]]] = {
    "env": _env,
    "xargs": _xargs,
    "gxargs": _xargs,
    "parallel": _parallel,
    "find": _find,
    "gfind": _find,
    "ssh": _ssh,
    "eval": _joined,
    "watch": _watch,
    "script": _script_command,
    "flock": _flock,
    "trap": _trap,
    "alias": _alias,
    "command": _command,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "sed": _sed,
    "gsed": _sed,
    "source": _source,
    ".": _source,
}
