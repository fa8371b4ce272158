"""What a command does to files: removing, overwriting and reading what is not the worktree's."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from loopctl.sandbox.floor import marks
from loopctl.sandbox.floor.effects import DISK, KEYS, PRIVILEGE, SANDBOX
from loopctl.sandbox.floor.paths import Place, is_disk, is_secret, place, resolved

REMOVES: Final = "removes what is {}"
OVERWRITES: Final = "writes to what is {}"

_REMOVERS: Final = frozenset(
    {"rm", "rmdir", "unlink", "shred", "srm", "truncate", "rimraf", "trash"}
)
_MENTIONS: Final = frozenset({"echo", "printf", "ls", "stat", "test", "[", "[[", "which", "export"})
_LISTS_DISKS: Final = frozenset(
    {"ls", "stat", "file", "lsblk", "df", "echo", "printf", "test", "["}
)
_TAKES_ALL: Final = frozenset({"tar", "zip", "cp", "rsync", "scp", "grep", "rg", "7z", "cpio"})
_EDITS: Final = frozenset(
    {"tee", "cp", "mv", "ln", "install", "rm", "truncate", "sed", "perl", "chmod"}
)
_OWN: Final = re.compile(r"(?:loop\.toml|\.local(?:/.*)?)")
_SETUID: Final = re.compile(r"(?:[ugoa]*u[ugoa]*|[ug]+|a)?[+=][rwxXt]*s[rwxXst]*|0?[4-7][0-7]{3}")
_ROOT: Final = re.compile(r"(?:root|0|\+0)(?:[:.].*)?")

_WHOLE: Final = re.compile(r"~|/[^/]*|(?:\.\./)*\.\.")
"""A link to this is a link to somebody's whole tree."""

Where = Callable[[str], Place]


def file_refusal(name: str, rest: Sequence[str], cwd: str, roots: Sequence[str]) -> str:
    """Return why a command may not do to files what it does; empty where it may."""

    def where(word: str) -> Place:
        return place(word, cwd, roots)

    words = [word for word in rest if not word.startswith("-")]
    return (
        _of_secrets(name, rest, cwd)
        or _of_removal(name, rest, words, where)
        or _of_rights(name, rest, words, where)
        or _of_own(name, rest, cwd)
    )


def target_refusal(word: str, cwd: str, roots: Sequence[str]) -> str:
    """Return why nothing may be written to a file; empty where it may."""
    if is_disk(word, cwd):
        return DISK
    if _OWN.fullmatch(resolved(word, cwd)):
        return SANDBOX
    found = place(word, cwd, roots)
    if found is Place.OUTSIDE or (found is Place.REPOSITORY and "hooks" in word):
        return OVERWRITES.format(found.value)
    return ""


def removal_refusal(word: str, cwd: str, roots: Sequence[str]) -> str:
    """Return why a file or folder may not be removed; empty where it may."""
    return _bad(place(word, cwd, roots))


def _bad(found: Place) -> str:
    is_bad = found in {Place.OUTSIDE, Place.UNKNOWN, Place.REPOSITORY}
    return REMOVES.format(found.value) if is_bad else ""


def _of_secrets(name: str, rest: Sequence[str], cwd: str) -> str:
    if name not in _MENTIONS:
        for word in rest:
            value = re.split(r"^-[^=]*=|^if=|^@|^[\w-]+=@?", word)[-1] if word else word
            if is_secret(word, cwd) or is_secret(value, cwd):
                return KEYS
        if name in _TAKES_ALL and any(resolved(word, cwd) in {"~", "/root"} for word in rest):
            return KEYS
    if name not in _LISTS_DISKS:
        for word in rest:
            if is_disk(word, cwd) or (word.startswith("of=") and is_disk(word[3:], cwd)):
                return DISK
    return ""


def _of_removal(name: str, rest: Sequence[str], words: Sequence[str], where: Where) -> str:
    if name in _REMOVERS:
        return _of_remover(name, rest, words, where)
    if name in {"find", "gfind"} and "-delete" in rest:
        return _of_find(rest, where)
    if name == "rsync" and any(word.startswith(("--delete", "--remove")) for word in rest):
        return _bad(where(words[-1])) if words else ""
    if name == "mv" and {Place.OUTSIDE, Place.REPOSITORY} & set(map(where, words[:-1])):
        return REMOVES.format(Place.OUTSIDE.value)
    if name == "ln":
        return _of_link(words[:-1], where)
    targets = {
        "tee": words,
        "cp": words[-1:],
        "install": words[-1:],
        "dd": [word[3:] for word in rest if word.startswith("of=")],
    }.get(name, ())
    is_out = any(where(word) is Place.OUTSIDE for word in targets)
    return OVERWRITES.format(Place.OUTSIDE.value) if is_out else ""


def _of_remover(name: str, rest: Sequence[str], words: Sequence[str], where: Where) -> str:
    is_deep = name in {"rm", "rimraf", "srm"} and _is_recursive(rest)
    for word in words[1:] if name == "truncate" and "-s" in rest else words:
        found = where(word)
        is_file_of_git = found is Place.REPOSITORY and not is_deep
        if not is_file_of_git and (why := _bad(found)):
            return why
    return ""


def _of_link(sources: Sequence[str], where: Where) -> str:
    """Refuse a link to a whole tree elsewhere: what is removed through it is that tree's."""
    for word in sources:
        path = resolved(word, ".")
        if where(word) is Place.UNKNOWN or _WHOLE.fullmatch(path):
            return SANDBOX
    return ""


def _of_find(rest: Sequence[str], where: Where) -> str:
    roots: list[str] = []
    for word in rest:
        if word.startswith(("-", "(", "!")) and word not in {"-H", "-L", "-P"}:
            break
        if not word.startswith("-"):
            roots.append(word)
    return next((why for word in roots if (why := _bad(where(word)))), "")


def _of_rights(name: str, rest: Sequence[str], words: Sequence[str], where: Where) -> str:
    if name == "chmod" and any(_SETUID.fullmatch(word) for word in rest[:3]):
        return PRIVILEGE
    if name in {"chown", "chgrp"} and any(_ROOT.fullmatch(word) for word in words[:1]):
        return PRIVILEGE
    if name == "install" and "-m" in rest:
        mode = rest[list(rest).index("-m") + 1 :][:1]
        if mode and _SETUID.fullmatch(mode[0]):
            return PRIVILEGE
    if name in {"chmod", "chown", "chgrp", "chattr"}:
        changed = [word for word in words[1:] if where(word) in {Place.OUTSIDE, Place.UNKNOWN}]
        if changed and (_is_recursive(rest) or where(changed[0]) is Place.OUTSIDE):
            return OVERWRITES.format(Place.OUTSIDE.value)
    return ""


def _of_own(name: str, rest: Sequence[str], cwd: str) -> str:
    """Refuse to change loop's settings and its records of runs."""
    if name not in _EDITS or (
        name in {"sed", "perl"} and not any(re.match(r"-\w*i", one) for one in rest)
    ):
        return ""
    words = rest[-1:] if name in {"cp", "install", "ln"} else rest
    is_own = any(_OWN.fullmatch(resolved(word, cwd)) for word in words if word)
    return SANDBOX if is_own else ""


def _is_recursive(rest: Sequence[str]) -> bool:
    return any(
        re.fullmatch(r"-[a-zA-Z]*[rR][a-zA-Z]*", word) or word.startswith("--r") for word in rest
    ) or any(marks.is_unknown(word) for word in rest)
