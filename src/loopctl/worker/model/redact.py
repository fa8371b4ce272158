"""Takes keys out of texts: providers echo them, and so do libraries."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST: Final = 4
"""A value of fewer characters is no key, and would tear words apart."""

MASK: Final = "[key]"


class Redactor:
    """Replaces every known key in a text by ``[key]``: raw, quoted for URLs, in base64.

    Args:
        env: The environment; read anew for each text.
        names: Variables with keys, besides those that are called so.
    """

    def __init__(self, env: Mapping[str, str], names: Iterable[str]) -> None:
        self._env = env
        self._names = frozenset(names)

    def __call__(self, text: str) -> str:
        """Return the text without keys."""
        values = (
            value.strip()
            for name, value in self._env.items()
            if name in self._names or _SECRET.search(name)
        )
        forms = {form for value in values if len(value) >= _SHORTEST for form in _forms(value)}
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, MASK)
        return text


def _forms(value: str) -> tuple[str, ...]:
    encoded = base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    return value, quote(value, safe="", errors="surrogateescape"), encoded
