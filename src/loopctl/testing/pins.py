"""A double for the pins: kept in memory, with what a person has let."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class MemoryPins:
    """The port ``PinStore``, forgotten with the process.

    Attributes:
        scopes: What is pinned.
        let: Keys of approved calls, each with the reason for which a person was asked.
    """

    scopes: dict[str, dict[str, str]] = field(default_factory=dict)
    let: dict[str, str] = field(default_factory=dict)

    def pinned(self, scope: str) -> Mapping[str, str]:
        """Return what is pinned in a scope, by name."""
        return dict(self.scopes.get(scope, {}))

    def pin(self, scope: str, contents: Mapping[str, str]) -> None:
        """Pin contents under their names."""
        self.scopes.setdefault(scope, {}).update(contents)

    def is_let(self, call_key: str, mark: str) -> bool:
        """Return whether that call was let for a reason that begins with ``mark``."""
        return self.let.get(call_key, "").startswith(mark)
