"""What ``loop doctor`` says of models: whether the tiers can be asked, and how pasts are kept short."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopctl.report.summary import IN_LINE_MARK
from loopctl.settings import Settings
from loopctl.worker.model.routes import TIERS, Routes, routes_of


@dataclass(frozen=True, slots=True)
class Remark:
    """One line of the doctor's; a warning keeps no run from its work."""

    name: str
    text: str
    is_warning: bool = False


def remarks(settings: Settings, env: Mapping[str, str], local: Path) -> tuple[Remark, ...]:
    """Return what there is to say of the models, and of the newest run.

    Asks no model and starts nothing. A run's document that cannot be read is passed over.

    Args:
        settings: Those of the checkout.
        env: The caller's environment; only looked up.
        local: ``.local`` of the checkout.
    """
    routes = routes_of(settings.models, env)
    return (_models(routes), *_compactions(_newest(local)))


def _models(routes: Routes) -> Remark:
    if routes.reason:
        return Remark("models", routes.reason, is_warning=True)
    if routes.notice:
        return Remark("models", routes.notice)
    return Remark("models", ", ".join(f"{tier} {routes.of(tier)[0].model}" for tier in TIERS))


def _newest(local: Path) -> Mapping[str, Any]:
    for file in sorted((local / "runs").glob("*/run.json"), reverse=True):
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def _compactions(run: Mapping[str, Any]) -> Iterator[Remark]:
    notices = run.get("notices")
    for text in notices if isinstance(notices, list) else ():
        if IN_LINE_MARK in str(text):
            yield Remark("compaction", f"in run {run.get('run_id')} {text}", is_warning=True)
