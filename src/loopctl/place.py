"""Where a command works: the checkout, its settings and its manifest. Reads no git."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from loopctl.manifest.toml import TomlManifest
from loopctl.redaction import Redactor
from loopctl.settings import LoadedSettings, Settings

if TYPE_CHECKING:
    from loopctl.ports import ManifestFile


class Own(StrEnum):
    """Where the tasks of a run come from that has a manifest of its own."""

    FIX = "test-debug-fix"
    EVOLVE = "evolve"


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
        own: ``file`` is the manifest that was made for one run, and what it was made by;
            ``None`` where it is the user's.
    """

    checkout: Path
    local: Path
    env: Mapping[str, str]
    loaded: LoadedSettings
    file: "ManifestFile"
    manifest_in_tree: str
    own: Own | None = None

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

    def of_run(self, run_id: str) -> "Place":
        """Return the place with the manifest that a run drives: its own where it has one."""
        for own in Own:
            path = self.own_manifest(run_id, own)
            if path.is_file():
                return replace(self, file=TomlManifest(path, str(path)), own=own)
        return self

    def own_manifest(self, run_id: str, own: Own) -> Path:
        """Return where the manifest of a run stands that was made for it."""
        return self.run_folder(run_id) / f"{own.value}.toml"
