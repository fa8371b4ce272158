"""Where a command works: the checkout, its settings and its manifest. Reads no git."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loopctl.settings import LoadedSettings, Settings

if TYPE_CHECKING:
    from loopctl.ports import ManifestFile


@dataclass(frozen=True, slots=True)
class Place:
    """A checkout as a command found it.

    Attributes:
        local: ``.local`` in it.
        env: The caller's environment.
        loaded: The settings as they are now, with their origins.
        file: The manifest.
        manifest_in_tree: The manifest's path in the tree, with slashes; empty where it is
            outside of it.
    """

    checkout: Path
    local: Path
    env: Mapping[str, str]
    loaded: LoadedSettings
    file: "ManifestFile"
    manifest_in_tree: str

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self.loaded.settings

    def run_folder(self, run_id: str) -> Path:
        """Return ``.local/runs/<run_id>``."""
        return self.local / "runs" / run_id
