"""What the model worker's process may know of the caller's environment: its keys, and no others."""

from collections.abc import Iterable, Mapping
from typing import Final

_ALLOWED: Final = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        # The engine's own Python was found by these, and the child's is the same.
        "PYTHONPATH",
        "PYTHONHOME",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        # The way to the endpoints.
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
    ]
)
_PROXIES: Final = frozenset(["http_proxy", "https_proxy", "all_proxy", "no_proxy"])


def child_environment(caller: Mapping[str, str], keys: Iterable[str] = ()) -> dict[str, str]:
    """Return the whole environment of the model worker's process.

    Args:
        caller: The harness's own.
        keys: The names of the variables that hold its keys, and of others that its endpoints need.
    """
    wanted = _ALLOWED | _PROXIES | frozenset(keys)
    passed = {
        name: value for name, value in caller.items() if name in wanted or name.startswith("LC_")
    }
    return {"LANG": "C.UTF-8", **passed}
