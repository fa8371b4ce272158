"""What is pinned is there for the next process, and an approval lets what it was asked about."""

from pathlib import Path

from loopctl.domain import (
    APPROVED,
    REJECTED,
    DecisionDraft,
    DecisionKind,
    Limits,
    RunStatus,
    Scope,
    Sha,
)
from loopctl.records import RunRecord
from loopctl.store.stores import Stores


def test_pins_outlive_the_process_and_are_replaced_by_name(tmp_path: Path) -> None:
    with Stores(tmp_path) as stores:
        stores.pins.pin("mcp:a", {"x": "1", "y": "1"})
        stores.pins.pin("mcp:b", {"x": "3"})
    with Stores(tmp_path) as stores:
        stores.pins.pin("mcp:a", {"y": "2"})
        assert stores.pins.pinned("mcp:a") == {"x": "1", "y": "2"}
        assert stores.pins.pinned("mcp:b") == {"x": "3"}
        assert stores.pins.pinned("mcp:c") == {}


def test_only_an_approval_of_that_call_for_that_reason_lets_it(tmp_path: Path) -> None:
    record = RunRecord(
        id="r1",
        status=RunStatus.RUNNING,
        goal="g",
        base=Sha("c1"),
        branch="b",
        started="2026-01-02T03:04:05.000Z",
        scope=Scope(),
        settings_json="{}",
        settings_hash="h",
    )
    with Stores(tmp_path) as stores:
        stores.runs.create_run(record)
        for key, kind, answer in (
            ("approved", DecisionKind.APPROVAL, APPROVED),
            ("rejected", DecisionKind.APPROVAL, REJECTED),
            ("other", DecisionKind.OUTCOME, APPROVED),
            ("open", DecisionKind.APPROVAL, ""),
        ):
            draft = DecisionDraft(
                kind, f"{key}?", reason="it is abc: changed; it says: it is abd: ", call_key=key
            )
            raised = stores.decisions.raise_decision("r1", "T1", draft)
            if answer:
                stores.decisions.answer_decision(raised.id, answer, "now", Limits())
        assert stores.pins.is_let("approved", "it is abc: ")
        assert not stores.pins.is_let("approved", "it is abd: ")
        for key in ("rejected", "other", "open", "nobody"):
            assert not stores.pins.is_let(key, "it is abc: ")
