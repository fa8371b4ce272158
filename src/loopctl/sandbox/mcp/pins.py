"""What the tools of one server are held to: their first listing, kept over runs and resumes."""

import threading
from collections.abc import Mapping
from typing import Final

from loopctl.sandbox.mcp.listing import ListedTool, change, kept, mark, taken_up, unseen
from loopctl.sandbox.mcp.texts import one_line
from loopctl.toolports import PinStore

_SHOWN: Final = 400
"""Characters of a new description that a person is shown."""


class Pins:
    """The tools of one server, by their names in this house, as they were pinned.

    A server that was never seen is believed: what it lists first is pinned. From then on a change
    of a tool is approved by a person, tool by tool, and so is a tool that it did not have before.

    Args:
        scope: Of the server in the store.
        store: Where the pins outlive the run.
    """

    def __init__(self, scope: str, store: PinStore) -> None:
        self._scope = scope
        self._store = store
        self._lock = threading.Lock()
        self._pinned: dict[str, ListedTool] = {}
        self._shown: dict[str, ListedTool] | None = None

    def take(self, listed: Mapping[str, ListedTool]) -> Mapping[str, ListedTool]:
        """Return the tools that this run shows: those of its first listing, as they were pinned."""
        with self._lock:
            if self._shown is None:
                self._pinned = self._known(listed)
                self._shown = {
                    name: self._pinned.get(name) or unseen(tool) for name, tool in listed.items()
                }
            return dict(self._shown)

    def change(self, name: str, now: ListedTool | None) -> str:
        """Return how a tool differs from its pin, in a few words; empty where it does not."""
        with self._lock:
            pinned = self._pinned.get(name)
        if pinned is None:
            return "its server did not have it before" if now else "it is not listed any more"
        return change(pinned, now)

    def question(self, name: str, now: ListedTool) -> str:
        """Return why a person is asked about a tool that has changed; empty where it has not.

        It begins with the hash of what the tool is now, which is all that an approval approves; the
        server's own words come last, where they can pass for no other hash.
        """
        changed = self.change(name, now)
        if not changed:
            return ""
        said = one_line(now.description, _SHOWN)
        return f"{_asked(now)}: {changed}; it says: {said}"

    def let(self, name: str, now: ListedTool, call_key: str) -> bool:
        """Pin a tool anew where a person has approved this call with exactly this tool."""
        if not self._store.is_let(call_key, f"{_asked(now)}: "):
            return False
        with self._lock:
            self._store.pin(self._scope, {name: kept(now)})
            self._pinned[name] = now
            if self._shown is not None:
                self._shown[name] = now
        return True

    def _known(self, listed: Mapping[str, ListedTool]) -> dict[str, ListedTool]:
        texts = self._store.pinned(self._scope)
        if not texts:
            self._store.pin(self._scope, {name: kept(tool) for name, tool in listed.items()})
            return dict(listed)
        found = {name: taken_up(text) for name, text in texts.items()}
        return {name: tool for name, tool in found.items() if tool is not None}


def _asked(now: ListedTool) -> str:
    return f"the tool is not what was pinned (it is {mark(now)})"
