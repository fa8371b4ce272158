"""All settings, each declared once; the model that ``loop.toml`` is read into.

Order of sources, the first that names a value wins: the command line, the environment
(``LOOP_SET_SECTION__KEY``), ``loop.toml``, ``[tool.loopctl]`` in ``pyproject.toml``, the default.
Every value keeps its origin, so that ``loop doctor`` can say where it came from. This is the
only module that reads the environment.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from loopctl.domain import Baseline, Mode

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A frozen table of settings; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LoopSettings(Section):
    """``[loop]``: how a run is driven."""

    jobs: Annotated[int, Field(ge=1)] = Field(default=1, description="Tasks worked on at once.")
    mode: Mode = Field(default=Mode.AUTONOMOUS, strict=False, description="autonomous or relay.")
    worker: str = Field(default="graph", description="The worker of a task that names none.")


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

    window: Annotated[int, Field(ge=1)] = Field(default=3, description="Steps without progress.")
    replan_cap: Count = Field(default=4, description="Accepted re-plans.")
    stuck_steps: Annotated[int, Field(ge=1)] = Field(
        default=6, description="Steps with the same tree, type errors or tool calls."
    )


class GateSettings(Section):
    """``[gate]``: what decides whether a result is accepted."""

    typecheck: str = Field(default="auto", description="auto, off, or a command.")
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=600, description="Seconds that one check may take."
    )
    protect: tuple[str, ...] = Field(
        default=("tests/**", "test/**", "**/conftest.py", ".github/**", ".ci/**"),
        strict=False,
        description="Globs that a task may not change unless its may_edit names them.",
    )
    baseline: Baseline = Field(
        default=Baseline.STRICT, strict=False, description="strict or no-new-failures."
    )


class SandboxSettings(Section):
    """``[sandbox]``: where a task is worked on."""

    confine: Literal["auto", "require", "off"] = Field(
        default="auto", description="auto, require or off."
    )
    network: bool = Field(default=False, description="Commands may use the network.")
    setup_cmd: str = Field(
        default="", description="Run in every new worktree before its first step."
    )
    share: tuple[str, ...] = Field(
        default=(".venv", "node_modules"),
        strict=False,
        description="Folders of the checkout that worktrees see read-only.",
    )
    read: tuple[str, ...] = Field(
        default=(), strict=False, description="More that may be read inside."
    )
    write: tuple[str, ...] = Field(
        default=(), strict=False, description="More that may be written inside."
    )
    beam_width: Annotated[int, Field(ge=1)] = Field(
        default=2, description="Candidates worked on at once."
    )


class LandSettings(Section):
    """``[land]``: where results go."""

    branch: str = Field(default="loop/integration", description="The integration branch.")
    auto: bool = Field(default=False, description="Fast-forward the current branch at the end.")


class Settings(Section):
    """All settings of a run; frozen at its start."""

    loop: LoopSettings = LoopSettings()
    budget: BudgetSettings = BudgetSettings()
    stall: StallSettings = StallSettings()
    gate: GateSettings = GateSettings()
    sandbox: SandboxSettings = SandboxSettings()
    land: LandSettings = LandSettings()
