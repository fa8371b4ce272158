"""What the floor allows and what cannot be undone all the same: effects beyond this machine."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_PROGRAMS: Final = {
    "terraform": "apply import taint",
    "tofu": "apply import taint",
    "terragrunt": "apply run-all",
    "pulumi": "up",
    "cdk": "deploy",
    "sam": "deploy",
    "serverless": "deploy",
    "sls": "deploy",
    "kubectl": "apply create scale rollout patch edit annotate label exec cordon set",
    "helm": "install upgrade rollback",
    "flyctl": "deploy",
    "fly": "deploy",
    "vercel": "deploy promote",
    "netlify": "deploy",
    "wrangler": "deploy",
    "firebase": "deploy",
    "eb": "deploy",
    "cap": "deploy production",
    "heroku": "releases run config:set",
    "ansible-playbook": "",
    "mail": "",
    "mailx": "",
    "sendmail": "",
    "mutt": "",
    "scp": "",
    "sftp": "",
    "ftp": "",
    "lftp": "",
    "rclone": "copy sync move",
}
_GH: Final = re.compile(
    r"(?:pr (?:merge|create|close|comment|review)|release create|issue \w+|workflow run|repo \w+|gist create)"
)
_READS: Final = re.compile(r"(?:list|view|status|clone|diff|checks|--help|-h|--dry-run(?:=.*)?)")
_SENDS: Final = re.compile(
    r"(?:-X|--request|--method)[ =]?(?:POST|PUT|PATCH|DELETE)\b|(?:^| )(?:-d|--data\S*|-F|--form|-T|--upload-file|--json|--post-data\S*)\b"
)
_LOCAL: Final = re.compile(
    r"(?:https?://)?(?:localhost|127\.|\[::1\]|0\.0\.0\.0|[\w-]+\.(?:test|localhost|local)\b)"
)
_ADDRESS: Final = re.compile(r"https?://|^[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/|$)")
_REMOTE: Final = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\d+:).*|rsync://.*")
_VERB: Final = re.compile(
    r"(?:^|[.!?;:\n]\s*|\b(?:then|and|please|finally)\s+|^\s*[-*\d.]+\s+)"
    r"(?:deploy|publish|release|upload|push|force-push|ship|drop|delete|wipe|purge|truncate|destroy"
    r"|e-?mail|send|notify|pay|charge|refund|transfer|revoke|rotate|migrate|decommission|cancel)\b"
    r"(?P<rest>[^.!?\n]{0,120})",
    re.IGNORECASE | re.MULTILINE,
)
_TARGET: Final = re.compile(
    r"\b(?:to|in|on|from|of|the|all|our|every)\s+(?:\w+\s+){0,2}?(?:production|prod|pypi|npm(?:js)?|crates\.io|rubygems"
    r"|docker\s?hub|maven central|app store|play store|customers?|users|subscribers|live (?:site|system|database)"
    r"|origin|upstream|github|the remote|registry|staging)\b|\bproduction (?:database|data|server|cluster|keys?)\b",
    re.IGNORECASE,
)
TAGS: Final = frozenset({"irreversible", "production", "prod"})
"""Tags of tasks whose effects are said not to be undone."""


def outward(commands: Iterable[Sequence[str]]) -> str:
    """Return which command has an effect that nobody can take back; empty where none has."""
    for name, *rest in commands:
        if _is_outward(name, rest):
            return f"it cannot be undone: {' '.join([name, *rest])[:80]}"
    return ""


def _is_outward(name: str, rest: list[str]) -> bool:
    if any(_READS.fullmatch(word) for word in rest[:3] + rest[-1:]):
        return False
    plain = [word for word in rest if not word.startswith("-")]
    if name in _PROGRAMS:
        words = _PROGRAMS[name].split()
        return not words or bool(plain and plain[0] in words) or "--prod" in rest
    if name in {"gh", "glab"}:
        return _GH.match(" ".join(plain)) is not None or (plain[:1] == ["api"] and _sends(rest))
    if name in {"curl", "wget", "http", "https", "xh"}:
        return _sends(rest) and any(
            _ADDRESS.search(word) and not _LOCAL.match(word) for word in plain
        )
    if name == "rsync":
        return bool(plain) and _REMOTE.fullmatch(plain[-1]) is not None
    return name == "ssh" and len(plain) > 1


def _sends(rest: Sequence[str]) -> bool:
    return _SENDS.search(" ".join(rest)) is not None


def outward_text(text: str) -> str:
    """Return the words of a task that ask for an effect that nobody can take back."""
    for match in _VERB.finditer(text):
        if _TARGET.search(match["rest"]):
            return " ".join(match[0].split()).lstrip(".!?;: ")[:80]
    return ""
