"""Chooses what keeps the commands of a repository inside: the first mechanism that holds here."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import loopctl
from loopctl.errors import MachineError
from loopctl.ports import Confinement
from loopctl.sandbox.confine.bubblewrap import Bubblewrap
from loopctl.sandbox.confine.landlock import Landlock
from loopctl.sandbox.confine.limits import limits
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.confine.reach import Reach
from loopctl.sandbox.confine.trying import tried
from loopctl.sandbox.owned import Layout
from loopctl.settings import SandboxSettings


def choose(
    settings: SandboxSettings, checkout: Path, layout: Layout, env: Mapping[str, str]
) -> Confinement:
    """Return what keeps commands of the worktrees of a checkout inside.

    Raises:
        MachineError: Confinement is required, and nothing holds here; says what mends it.
    """
    if settings.confine == "off":
        return Unconfined()
    trial = tried(env)
    if not trial.is_holding:
        if settings.confine == "require":
            raise MachineError(
                f'sandbox.confine = "require", and {trial.why}; {trial.mend} '
                '(or set it to "auto": commands can do what you can then, which the report says)'
            )
        return Unconfined(f"{trial.why}; {trial.mend}")
    reach = Reach(
        checkout,
        layout.git_dir,
        layout.shim,
        env,
        own=_own_places(),
        share=settings.share,
        read=settings.read,
        write=settings.write,
        network=settings.network,
    )
    if trial.program:
        return Bubblewrap(trial.program, reach, limits(settings))
    return Landlock(trial.landlock, reach, limits(settings))


def _own_places() -> tuple[Path, ...]:
    """Return what ``loop`` itself runs from, which the ``loop`` of commands needs."""
    # Where its packages are looked for: an editable installation is not in the environment.
    packages = Path(loopctl.__file__).parent.parent
    return (Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.prefix)), packages)
