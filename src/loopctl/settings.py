"""All settings, each declared once; the model that ``loop.toml`` is read into.

Order of sources, the first that names a value wins: the command line, the environment
(``LOOP_SET_SECTION__KEY``), ``loop.toml``, ``[tool.loopctl]`` in ``pyproject.toml``, the default.
Every value keeps its origin, so that ``loop doctor`` can say where it came from. This is the
only module that reads the environment.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError, field_validator

from loopctl.domain import Baseline, Mode
from loopctl.errors import Fault, SettingsError
from loopctl.hooksettings import HookName, HookSettings
from loopctl.mcpsettings import McpServerSettings, ServerName
from loopctl.patterns import CALLS, STEPS, only
from loopctl.tomlsource import layers
from loopctl.tomlsource.sections import (
    Amount,
    Count,
    Positive,
    Seconds,
    Section,
    Text,
    Texts,
    Url,
    Variable,
    Word,
)
from loopctl.tomlsource.sources import Origin, Source, read_sources

__all__ = [
    "BACKGROUND",
    "LoadedSettings",
    "Origin",
    "Settings",
    "Source",
    "differences",
    "environment",
    "from_json",
    "load",
    "table",
]

BACKGROUND = "LOOP_BACKGROUND"
"""Set for the process of ``loop --bg`` that does the work; no setting."""


class LoopSettings(Section):
    """``[loop]``: how a run is driven."""

    jobs: Positive = Field(default=1, description="Tasks worked on at once.")
    mode: Mode = Field(default=Mode.AUTONOMOUS, strict=False, description="autonomous or relay.")
    worker: Word = Field(default="graph", description="The worker of a task that names none.")
    refills: Count = Field(
        default=20, description="Tasks proposed by workers that a manifest may come to hold."
    )


class BudgetSettings(Section):
    """``[budget]``: caps; 0 means that nothing may be spent."""

    run_usd: Amount = Field(default=10.0, description="For one run, in US dollars.")
    task_usd: Amount | None = Field(default=None, description="For one task, in US dollars.")
    run_tokens: Count | None = Field(default=None, description="For one run, in tokens.")
    task_tokens: Count = Field(default=200_000, description="For one task, in tokens.")
    loops: Count = Field(default=25, description="Steps of one task.")
    wall_s: Amount = Field(default=3600, description="Seconds that one task may take.")


class StallSettings(Section):
    """``[stall]``: when a task counts as stuck."""

    window: Positive = Field(default=3, description="Steps without progress.")
    replan_cap: Count = Field(default=4, description="Accepted re-plans.")
    stuck_steps: Positive = Field(
        default=6, description="Steps with the same tree, type errors or tool calls."
    )


class GateSettings(Section):
    """``[gate]``: what decides whether a result is accepted."""

    typecheck: Word = Field(default="auto", description="auto, off, or a command.")
    verify_cmd: Text = Field(
        default="", description="What `--test-debug-fix` makes green; empty: found by itself."
    )
    timeout_s: Seconds = Field(default=600, description="Seconds that one check may take.")
    protect: Texts = Field(
        default=("tests/**", "test/**", "**/conftest.py", ".github/**", ".ci/**"),
        description="Globs that a task may not change unless its may_edit names them.",
    )
    baseline: Baseline = Field(
        default=Baseline.STRICT, strict=False, description="strict or no-new-failures."
    )


class SandboxSettings(Section):
    """``[sandbox]``: where a task is worked on."""

    confine: Literal["auto", "require", "off"] = Field(
        default="auto",
        description="auto: bubblewrap, else Landlock, where one holds; require; or off.",
    )
    network: bool = Field(default=False, description="Commands may use the network.")
    setup_cmd: Text = Field(
        default="", description="Run in every new worktree before its first step."
    )
    share: Texts = Field(
        default=(".venv", "node_modules"),
        description="Folders of the checkout that worktrees see read-only.",
    )
    read: Texts = Field(
        default=(), description="More paths that may be read inside; `~` is your home."
    )
    write: Texts = Field(default=(), description="More paths that may be written inside.")
    memory_mb: Positive | None = Field(
        default=None,
        description="MiB that a confined command may use; else three quarters of the machine's.",
    )
    processes: Positive = Field(
        default=4096, description="Processes and threads that a confined command may have."
    )
    file_mb: Positive = Field(
        default=16384, description="MiB that a file may have which a confined command writes."
    )
    beam_width: Positive = Field(default=2, description="Candidates worked on at once.")


class LandSettings(Section):
    """``[land]``: where results go."""

    branch: Word = Field(default="loop/integration", description="The integration branch.")
    auto: bool = Field(default=False, description="Fast-forward the current branch at the end.")


class ContextSettings(Section):
    """``[context]``: what a worker is shown."""

    compaction_threshold_events: Count = Field(
        default=6, description="Events after which the context is compacted; 0: only when full."
    )
    window_tokens: Positive = Field(default=100_000, description="What the context may hold.")


class ModelSettings(Section):
    """``[models.TIER]``: which model serves a tier, and what it costs."""

    name: Word = Field(description="A LiteLLM model string: `openai/gpt-x-mini`.")
    api_base: Url | None = Field(default=None, description="The endpoint, where not the usual.")
    api_key_env: Variable | None = Field(
        default=None, description="The environment variable that holds the key."
    )
    fallbacks: Texts = Field(default=(), description="Models tried in turn when it cannot be had.")
    max_output_tokens: Positive = Field(
        default=4096, description="The output limit that is sent and reserved."
    )
    input_usd_per_mtok: Amount | None = Field(
        default=None, description="US dollars for a million prompt tokens, where not known."
    )
    output_usd_per_mtok: Amount | None = Field(
        default=None, description="US dollars for a million completion tokens, where not known."
    )


class ModelsSettings(Section):
    """``[models]``: the tiers; one that is configured serves all three."""

    cheap: ModelSettings | None = None
    standard: ModelSettings | None = None
    premium: ModelSettings | None = None
    embed: ModelSettings | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _nothing_in_it(cls, value: object) -> object:
        """Take an empty table, all of it commented out say, for one that is not there."""
        return None if value == {} else value


class PolicySettings(Section):
    """``[policy]``: what is refused, and what is asked about first."""

    deny: Annotated[
        tuple[Annotated[Word, AfterValidator(only(*CALLS))], ...], Field(strict=False)
    ] = Field(
        default=(),
        description="Refused: `mcp:SERVER:TOOL`, `bash:COMMAND`; besides the deny floor.",
    )
    approve: Annotated[
        tuple[Annotated[Word, AfterValidator(only(*CALLS, *STEPS))], ...], Field(strict=False)
    ] = Field(
        default=("mcp:*:destructive",),
        description="Asked about first: as `deny`, and `step:TASK`, `step:*`, `area:TAG`.",
    )
    approve_timeout_s: Seconds = Field(
        default=3600, description="Attended; then the call fails closed."
    )
    pre_tool_use: Texts = Field(
        default=(),
        description="Commands asked before every call: JSON on stdin; any exit but 0 blocks.",
    )


class StallOverrides(Section):
    """``[modes.MODE.stall]``: instead of ``[stall]``."""

    window: Positive | None = Field(default=None, description="Instead of `stall.window`.")
    replan_cap: Count | None = Field(default=None, description="Instead of `stall.replan_cap`.")
    stuck_steps: Positive | None = Field(
        default=None, description="Instead of `stall.stuck_steps`."
    )


class BudgetOverrides(Section):
    """``[modes.MODE.budget]``: instead of ``[budget]``."""

    loops: Count | None = Field(default=None, description="Instead of `budget.loops`.")


class ContextOverrides(Section):
    """``[modes.MODE.context]``: instead of ``[context]``."""

    compaction_threshold_events: Count | None = Field(
        default=None, description="Instead of `context.compaction_threshold_events`."
    )
    window_tokens: Positive | None = Field(
        default=None, description="Instead of `context.window_tokens`."
    )


class AutonomousOverrides(Section):
    """``[modes.autonomous]``: what differs in this mode."""

    stall: StallOverrides = StallOverrides()
    budget: BudgetOverrides = BudgetOverrides()
    context: ContextOverrides = ContextOverrides()


class RelayStall(StallOverrides):
    """``[modes.relay.stall]``: relay makes no new plans."""

    replan_cap: Count | None = Field(default=0, description="Instead of `stall.replan_cap`.")


class RelayContext(ContextOverrides):
    """``[modes.relay.context]``: relay compacts only when the window is full."""

    compaction_threshold_events: Count | None = Field(
        default=0, description="Instead of `context.compaction_threshold_events`."
    )


class RelayOverrides(Section):
    """``[modes.relay]``: what differs in this mode."""

    stall: RelayStall = RelayStall()
    budget: BudgetOverrides = BudgetOverrides()
    context: RelayContext = RelayContext()


class ModesSettings(Section):
    """``[modes.MODE]``: what differs by mode."""

    autonomous: AutonomousOverrides = AutonomousOverrides()
    relay: RelayOverrides = RelayOverrides()


class Settings(Section):
    """All settings of a run; frozen at its start."""

    loop: LoopSettings = LoopSettings()
    budget: BudgetSettings = BudgetSettings()
    stall: StallSettings = StallSettings()
    context: ContextSettings = ContextSettings()
    models: ModelsSettings = ModelsSettings()
    gate: GateSettings = GateSettings()
    sandbox: SandboxSettings = SandboxSettings()
    policy: PolicySettings = PolicySettings()
    hooks: dict[HookName, HookSettings] = Field(default_factory=dict)
    mcp: dict[ServerName, McpServerSettings] = Field(default_factory=dict)
    land: LandSettings = LandSettings()
    modes: ModesSettings = ModesSettings()

    def for_mode(self, mode: Mode) -> "Settings":
        """Return the settings with what differs in ``mode`` put in its place."""
        own = self.modes.relay if mode is Mode.RELAY else self.modes.autonomous
        changed = {
            section: getattr(self, section).model_copy(
                update=getattr(own, section).model_dump(exclude_none=True)
            )
            for section in ("stall", "budget", "context")
        }
        return self.model_copy(update=changed)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings with their origins, and the form in which a run keeps them.

    Attributes:
        origins: For each value, by dotted name.
        json: Canonical: equal settings give equal text. :func:`from_json` reads it. The run's cap in
            dollars is in it only where somebody has set it, for the caps of a user count for more.
        hash: SHA-256 of ``json``, hexadecimal.
    """

    settings: Settings
    origins: Mapping[str, Origin]
    json: str
    hash: str


def load(
    checkout: Path, overrides: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Return the settings of a checkout.

    Args:
        checkout: The folder that ``loop.toml`` and ``pyproject.toml`` are in; both may be missing.
        overrides: Values of the command line by dotted name; ``None`` means not given.
        environ: Instead of the process's environment.

    Raises:
        SettingsError: Some source has a name or a value that cannot be used; all such faults, in
            the order of the sources and lines.
    """
    environ = environment() if environ is None else environ
    values, origins = read_sources(Settings, checkout, environ, overrides)
    settings = Settings.model_validate(values)
    dump = settings.model_dump(mode="json")
    frozen = dump
    if "run_usd" not in settings.budget.model_fields_set:
        budget = {name: value for name, value in dump["budget"].items() if name != "run_usd"}
        frozen = dump | {"budget": budget}
    text = json.dumps(frozen, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return LoadedSettings(
        settings=settings,
        origins={
            ".".join(leaf): origins.get(leaf, Origin(Source.DEFAULT))
            for leaf in layers.leaves(dump)
        },
        json=text,
        hash=hashlib.sha256(text.encode()).hexdigest(),
    )


def from_json(text: str) -> Settings:
    """Return the settings that a run was begun with.

    Raises:
        SettingsError: This version of ``loop`` does not understand them.
    """
    try:
        return Settings.model_validate_json(text)
    except ValidationError as exc:
        raise SettingsError(
            *(
                Fault("settings of the run", 0, f"{layers.dotted(error['loc'])}: {error['msg']}")
                for error in exc.errors(include_url=False)
            )
        ) from exc


def differences(frozen: str, now: str) -> tuple[str, ...]:
    """Return what differs between two settings: ``gate.timeout_s = 300 (at its start 600)``.

    Both as :attr:`LoadedSettings.json`; a setting that an older ``loop`` lacks has its default.

    Raises:
        SettingsError: This version of ``loop`` does not understand one of them.
    """
    before, after = (from_json(text).model_dump(mode="json") for text in (frozen, now))
    return tuple(
        f"{name} = {new} (at its start {old})"
        for name, old, new in layers.differences(before, after)
    )


def environment() -> Mapping[str, str]:
    """Return a copy of the process's environment, for those who may not read it themselves."""
    return dict(os.environ)


def table() -> list[tuple[str, str, str]]:
    """Return every setting: dotted name, default as TOML (empty for none), description."""
    return layers.table(Settings)
