import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.context.brain import LocalBrain
from loopctl.context.capsule import parse, render
from loopctl.errors import MachineError
from loopctl.records import Capsule, DeferredTask

# What a TOML file, where goals come from, can hold: any text but lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
capsules = st.builds(
    Capsule,
    goal=st.text(st.characters(exclude_categories=["Cs"]), max_size=2000),
    current_step=texts,
    key_decisions=st.lists(texts, max_size=3).map(tuple),
    verify_cmd=texts,
    deferred_tasks=st.lists(
        st.builds(
            DeferredTask,
            task_id=texts,
            question=texts,
            best_guess=texts,
            answer=st.none() | texts,
        ),
        max_size=3,
    ).map(tuple),
    open_questions=st.lists(texts, max_size=2).map(tuple),
    assumptions=st.lists(texts, max_size=2).map(tuple),
)


@given(capsules)
def test_capsule_survives_a_round_trip_and_the_goal_is_byte_identical(capsule: Capsule) -> None:
    again = parse(render(capsule))
    assert again == capsule
    assert again.goal.encode() == capsule.goal.encode()


def test_goal_that_looks_like_the_fence_is_kept() -> None:
    goal = "a\n```\n```toml\ngoal = 'other'\n```\n"
    assert parse(render(Capsule(goal=goal))).goal == goal


def test_brain_begins_with_the_goal_where_there_is_no_readable_capsule(tmp_path: Path) -> None:
    brain = LocalBrain(tmp_path, "the goal")
    assert brain.boot() == Capsule(goal="the goal")
    (tmp_path / "context.md").write_text("half a ca")
    assert brain.boot() == Capsule(goal="the goal")


def test_capsule_is_private_and_no_draft_of_it_stays(tmp_path: Path) -> None:
    brain = LocalBrain(tmp_path, "g")
    brain.carry(Capsule(goal="g", current_step="do it"))
    assert brain.boot().current_step == "do it"
    assert [path.name for path in tmp_path.iterdir()] == ["context.md"]
    assert stat.S_IMODE((tmp_path / "context.md").stat().st_mode) == 0o600


def test_capsule_that_cannot_be_written_leaves_the_one_before_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = LocalBrain(tmp_path, "g")
    brain.carry(Capsule(goal="g", current_step="first"))

    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(MachineError, match="the disk is full"):
        brain.carry(Capsule(goal="g", current_step="second"))
    assert [path.name for path in tmp_path.iterdir()] == ["context.md"]
    assert brain.boot().current_step == "first"
    (tmp_path / "context.tmp").write_text("half a ca")
    assert LocalBrain(tmp_path, "g").boot().current_step == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["context.md"]


def test_text_says_the_next_step_and_what_is_open() -> None:
    text = render(
        Capsule(
            goal="g",
            current_step="T2, step 1",
            deferred_tasks=(DeferredTask("T1", "Which?", answer="blue"), DeferredTask("T3", "?")),
        )
    )
    assert "Next: T2, step 1" in text
    assert "- T1: Which? (answered: blue)" in text
    assert "- T3: ? (open)" in text
