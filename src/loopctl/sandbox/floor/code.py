"""What the text of a program in another language does, as far as its words tell."""

import re
from typing import Final

from loopctl.sandbox.floor.paths import SECRET_TEXT
from loopctl.sandbox.floor.quoting import unescaped

_RUNS: Final = re.compile(
    r"\bos\s*\.\s*(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*)|\bsubprocess\b|\bpty\b|\bgetoutput\b"
    r"|child_process|\bexec\w*\b|\bspawn\w*\b|\bsystem\b|\bpopen\w*\b|\bpopen3\b|\bqx\b|Open3"
    r"|shell_exec|passthru|proc_open|\bProcess\b|`|%x\b|\|\s*['\"]|Deno\.(?:run|Command)"
)
_HIDES: Final = re.compile(
    r"__import__|\b(?:exec|eval|compile|execfile)\s*\(|\bctypes\b|\bmarshal\b|b64decode|\batob\b"
    r"|unhexlify|fromhex|rot.?13|\b__builtins__\b|\bglobals\s*\(|sys\s*\.\s*modules|fromCharCode"
    r"|\bunpack\b|\bpack\s*\(|Buffer\.from|getattr\s*\(\s*(?:os|shutil|subprocess|builtins)\b"
    r"|\bchr\s*\(|process\.(?:binding|dlopen)|\[\s*::\s*-1\s*\]|\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}"
    r"|\bimport_module\s*\(\s*(?!['\"])|\bmethod\s*\(|\.send\s*\(|\breverse\b|vars\s*\("
)
_REMOVES: Final = re.compile(
    r"rmtree|rmSync|\brm_rf?\b|rm_r\b|remove_tree|rimraf|\brmdir\w*|\bunlink\w*|\bos\s*\.\s*remove\w*"
    r"|\bfs\s*\.\s*(?:promises\s*\.\s*)?rm\b|FileUtils|File\.delete|delete_tree|deltree|\bremovedirs\b"
)
_LITERAL: Final = re.compile(
    r"'''(.*?)'''|\"\"\"(.*?)\"\"\"|'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`",
    re.DOTALL,
)
_JOINT: Final = re.compile(r"\s*[+.\\]?\s*")
_HOME: Final = re.compile(r"expanduser|Path\s*\.\s*home|homedir|Dir\.home|\bHOME\b|USERPROFILE")
_BARE: Final = re.compile(r"\b(?:system|exec|qx|unlink|rmdir)\b[\s(]*[{(/|]([^)}/|]*)")
SQL: Final = re.compile(
    r"\b(?:drop\s+(?:database|schema|table|user|role|owned|tablespace|keyspace|view)"
    r"|truncate\s+(?:table\s+)?\w|dropDatabase|dropAllUsers|flush(?:all|db)\b"
    r"|delete\s+from\s+[\w.\"`]+\s*(?:;|$|\"|'))|\.drop\s*\(|deleteMany\s*\(\s*\{\s*\}",
    re.IGNORECASE,
)
"""What destroys the data of a database."""


def hidden(text: str) -> str:
    """Return what in a program hides what it does; empty where nothing does."""
    match = _HIDES.search(text)
    return f"what it does is hidden by {match[0].strip()}" if match else ""


def secret(text: str) -> bool:
    """Return whether a program names key material."""
    return SECRET_TEXT.search(text) is not None


def literals(text: str) -> list[str]:
    """Return the texts within a program, those that are added to one another as one."""
    found: list[str] = []
    end = -1
    for match in _LITERAL.finditer(text):
        value = unescaped("".join(match.groups(default="")))
        if end >= 0 and _JOINT.fullmatch(text[end : match.start()]):
            found[-1] += value
        else:
            found.append(value)
        end = match.end()
    found += [match[1] for match in _BARE.finditer(text)]
    return [one for one in found if one.strip()]


def runs_programs(text: str) -> bool:
    """Return whether a program starts others."""
    return _RUNS.search(text) is not None


def removes_files(text: str) -> bool:
    """Return whether a program removes files."""
    return _REMOVES.search(text) is not None


def is_about_home(text: str) -> bool:
    """Return whether a program asks where the home folder is."""
    return _HOME.search(text) is not None
