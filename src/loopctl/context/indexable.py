"""Which files of a tree are worth an index, and may be in one; pure."""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from loopctl.trees import TreeFile

FILE_BYTES: Final = 256 << 10
"""A longer file is data, or made by a program."""

FILES: Final = 20_000
"""Of one tree, the first ones by path."""

_SECRET_FILES: Final = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.ovpn"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.asc", "*.gpg"),
    *(".git-credentials", "credentials", "credentials.*", "*credentials.json", "*.tfvars"),
    *("*.tfstate", "*.tfstate.*", "secret", "secret.*", "secrets", "secrets.*", "*.secret"),
    *("*_secret.*", "*-secret.*", "*_secrets.*", "*-secrets.*", "service-account*.json"),
    *(".dockercfg", "kubeconfig", "*.kubeconfig", ".pgpass", ".my.cnf", "*token.json"),
)
_SECRET_FOLDERS: Final = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube", "secrets"})
_NOISE: Final = (
    *("*.lock", "*-lock.json", "*-lock.yaml", "*.min.js", "*.min.css", "*.map", "*.svg"),
    "go.sum",
)
_KEY_MARK: Final = b"PRIVATE KEY-----"
_LOOKED_AT: Final = 8192


def is_indexable(file: TreeFile) -> bool:
    """Return whether a file may be read for the index, by its name and size."""
    if not 0 < file.size_bytes <= FILE_BYTES or not _is_storable(file.path):
        return False
    path = PurePosixPath(file.path.lower())
    if not _SECRET_FOLDERS.isdisjoint(path.parent.parts):
        return False
    return not any(fnmatchcase(path.name, pattern) for pattern in (*_SECRET_FILES, *_NOISE))


def text_of(content: bytes) -> str | None:
    """Return what a file says; ``None`` where it is no text, or holds a private key."""
    if b"\0" in content[:_LOOKED_AT] or _KEY_MARK in content:
        return None
    return content.decode("utf-8", "replace").replace("\0", " ")


def _is_storable(path: str) -> bool:
    """Return whether a path is UTF-8: another could not be shown to a model either."""
    return path.isascii() or not any("\ud800" <= char <= "\udfff" for char in path)
