"""The model worker's process loads its libraries without looking for garbage meanwhile."""

import gc
import sys
from types import ModuleType

import pytest

from loopctl.worker.__main__ import handlers


@pytest.mark.parametrize("fault", [None, ImportError("broken")])
def test_garbage_is_not_looked_for_while_libraries_load_and_is_after_it(
    monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    seen: list[bool] = []

    def load() -> None:
        seen.append(gc.isenabled())
        if fault is not None:
            raise fault

    slow = ModuleType("loopctl.worker.model.open")
    slow.__dict__["load"] = load
    monkeypatch.setitem(sys.modules, "loopctl.worker.model.open", slow)
    monkeypatch.setattr("loopctl.worker.model.open", slow, raising=False)
    monkeypatch.setitem(sys.modules, "loopctl.worker.work", ModuleType("loopctl.worker.work"))
    monkeypatch.setattr("loopctl.worker.work", ModuleType("work"), raising=False)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    if fault is None:
        handlers({}).load()
    else:
        with pytest.raises(ImportError, match="broken"):
            handlers({}).load()
    assert seen == [False]
    assert gc.isenabled()
