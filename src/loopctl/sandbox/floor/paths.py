"""Where a path leads: inside the worktree, to scratch space, or to what no worker touches."""

import re
from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase
from posixpath import join, normpath
from typing import Final

from loopctl.sandbox.floor import marks


class Place(Enum):
    """Where a path leads."""

    INSIDE = "inside"
    REPOSITORY = "the repository's own folder"
    SCRATCH = "scratch"
    DEVICE = "a harmless device"
    OUTSIDE = "outside of the worktree"
    UNKNOWN = "a place that is only known when it is run"


_SCRATCH: Final = re.compile(r"/(?:tmp|var/tmp|dev/shm|private/tmp)/[\w@%+=:,.-]")
_HARMLESS: Final = frozenset(
    {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/full"}
)
_DISK: Final = re.compile(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mapper|dm-|loop|md\d|mem|kmem|port|block)"
)
_AT_HOME: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".git-credentials", ".pypirc"),
    *(".npmrc", ".password-store", ".docker/config.json", ".config/gh", ".config/gcloud"),
    *(".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".vault-token"),
    *(".pgpass", ".my.cnf", ".terraform.d", ".gem/credentials", ".mozilla", ".bash_history"),
    *(".local/share/keyrings", ".claude", ".codex", ".config/op", ".boto", ".s3cfg"),
)
_SECRETS: Final = (
    *(f"{home}/{path}" for home in ("~", "/root", "/home/*", "/Users/*") for path in _AT_HOME),
    *("/proc/*/environ", "/proc/*/task/*/environ", "/proc/*/mem", "/proc/kcore", "/etc/shadow"),
    *("/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/run/secrets", "/var/run/secrets"),
    *("/var/run/docker.sock", "/run/docker.sock", "/etc/ssh/ssh_host_*"),
)
_SECRET_PARTS: Final = tuple(tuple(path.split("/")) for path in _SECRETS)
SECRET_TEXT: Final = re.compile(
    r"(?:^|[\s/~\"'])\.(?:ssh|gnupg|aws|azure|kube|netrc|git-credentials|pypirc|pgpass)(?:$|[\s/\"'])"
    r"|/proc/[\w*$@{}…-]+/(?:environ|mem)\b|/etc/(?:g?shadow|sudoers)\b|\bid_(?:rsa|ed25519|ecdsa)\b"
)
"""What names key material in the text of a program."""


def resolved(word: str, cwd: str) -> str:
    """Return a path in its shortest form; relative to the worktree where it is not absolute."""
    word = f"\\{word}" if word.startswith("~") else word
    word = word.replace(marks.HOME, "~", 1) if word.startswith(marks.HOME) else word
    word = "".join(marks.GLOBS.get(letter, letter) for letter in word)
    path = normpath(join(cwd, word) if not word.startswith(("/", "~")) else word)
    return path.replace("//", "/", 1) if path.startswith("//") else path


def place(word: str, cwd: str, roots: Sequence[str] = ()) -> Place:
    """Return where a path leads.

    Args:
        word: With marks.
        cwd: Where the command stands, as :func:`resolved` gives it.
        roots: Absolute paths of the worktree.
    """
    if word[:1] in {marks.GIVEN, marks.COMPUTED} or marks.COMPUTED in word + cwd:
        return Place.UNKNOWN
    path = resolved(word.replace(marks.GIVEN, "x"), cwd)
    for root in roots:
        if path == root or path.startswith(f"{root}/"):
            path = path[len(root) + 1 :] or "."
    return _kind(path)


def _kind(path: str) -> Place:
    if path in _HARMLESS or path.startswith("/dev/fd/"):
        return Place.DEVICE
    if _SCRATCH.match(path):
        return Place.SCRATCH
    if path == ".." or path.startswith(("/", "~", "../")):
        return Place.OUTSIDE
    first = path.split("/", maxsplit=1)[0]
    is_git = first == ".git" or (first.startswith(".") and fnmatchcase(".git", first))
    return Place.REPOSITORY if is_git else Place.INSIDE


def is_secret(word: str, cwd: str) -> bool:
    """Return whether a path may name key material, or a folder of it."""
    if not word or any(letter in word for letter in "\n "):
        return False
    path = resolved(word, cwd)
    if not path.startswith(("/", "~")):
        return False
    parts = path.split("/")
    return any(_fits(parts, secret) for secret in _SECRET_PARTS)


def _fits(parts: list[str], secret: tuple[str, ...]) -> bool:
    """Return whether all parts of a secret's path are there, where either may be a pattern."""
    if len(parts) < len(secret):
        return False
    return all(
        fnmatchcase(there, here) or fnmatchcase(here, there) or marks.is_unknown(here)
        for here, there in zip(parts, secret, strict=False)
        if here != there
    ) and (parts[0] == secret[0])


def is_disk(word: str, cwd: str) -> bool:
    """Return whether a path names a disk, or the machine's memory."""
    path = resolved(word, cwd) if word and "\n" not in word else ""
    return _DISK.match(path) is not None
