"""Where a command works: the checkout, its settings and its manifest. Reads no git."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loopctl.redaction import Redactor
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

    def redactor(self) -> Redactor:
        """Return what takes the user's keys out of all that is written."""
        settings = self.settings
        models = settings.models
        tiers = (models.cheap, models.standard, models.premium, models.embed)
        names = {tier.api_key_env for tier in tiers if tier is not None and tier.api_key_env}
        for server in settings.mcp.values():
            names |= {*server.env, *server.headers_env.values()}
        return Redactor(self.env, names)

    def run_folder(self, run_id: str) -> Path:
        """Return ``.local/runs/<run_id>``."""
        return self.local / "runs" / run_id
