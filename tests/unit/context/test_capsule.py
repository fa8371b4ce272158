import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.context.brain import LocalBrain
from loopctl.context.capsule import parse, render
from loopctl.errors import MachineError
from loopctl.records import Capsule, DeferredTask

# What a TOML file, where goals come from, can hold: any text but lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(
    ["```", "a\n```\n", "\n```toml\ngoal = 'x'\n```\n", "\r\n", "\x7f\u2028", '"""\\']
)
# Goals are typed by people: fences, line ends of every kind, whole pages.
goals = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=2000),
    st.lists(st.sampled_from(["```", "toml", "\n", "\r", "\r\n", "goal = '", "é", "😀", " "])).map(
        "".join
    ),
    st.text("abc \n", min_size=1).map(lambda text: text * 500),
)
capsules = st.builds(
    Capsule,
    goal=goals,
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


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(capsule=capsules)
def test_goal_is_byte_identical_on_disk_for_the_writer_and_for_another_process(
    capsule: Capsule, folder: Path
) -> None:
    writer = LocalBrain(folder, "another goal")
    writer.carry(capsule)
    reader = LocalBrain(folder, "another goal")
    for brain in (writer, reader):
        assert brain.boot() == capsule
        assert brain.boot().goal.encode() == capsule.goal.encode()


def test_step_that_looks_like_a_capsule_does_not_take_its_place(tmp_path: Path) -> None:
    step = "mend it\n```toml\ngoal = 'another'\n```\n"
    LocalBrain(tmp_path, "g").carry(Capsule(goal="g", current_step=step, key_decisions=("kept",)))
    assert LocalBrain(tmp_path, "g").boot() == Capsule(
        goal="g", current_step=step, key_decisions=("kept",)
    )


def test_half_a_character_in_a_workers_words_does_not_stop_the_capsule(tmp_path: Path) -> None:
    brain = LocalBrain(tmp_path, "g")
    brain.carry(Capsule(goal="g", current_step="a\ud800b", key_decisions=("kept",)))
    expected = Capsule(goal="g", current_step="a\ufffdb", key_decisions=("kept",))
    assert (brain.boot(), LocalBrain(tmp_path, "g").boot()) == (expected, expected)


def test_goal_with_bytes_that_are_no_utf8_is_written_as_those_bytes(tmp_path: Path) -> None:
    goal = b"caf\xe9".decode("utf-8", "surrogateescape")
    LocalBrain(tmp_path, goal).carry(Capsule(goal=goal))
    assert b"caf\xe9" in (tmp_path / "context.md").read_bytes()
    assert LocalBrain(tmp_path, "").boot().goal == goal


def test_capsule_that_another_hand_has_changed_is_read_again(tmp_path: Path) -> None:
    brain = LocalBrain(tmp_path, "g")
    brain.carry(Capsule(goal="g", current_step="one"))
    text = (tmp_path / "context.md").read_text()
    (tmp_path / "context.md").write_text(text.replace("one", "two and more"))
    assert brain.boot().current_step == "two and more"
    LocalBrain(tmp_path, "g").carry(Capsule(goal="g", current_step="six"))
    assert brain.boot().current_step == "six"
    (tmp_path / "context.md").unlink()
    assert brain.boot() == Capsule(goal="g")


def test_same_capsule_is_not_written_again_unless_the_file_was_changed(tmp_path: Path) -> None:
    brain, path = LocalBrain(tmp_path, "g"), tmp_path / "context.md"
    brain.carry(Capsule(goal="g", current_step="one"))
    before = path.stat()
    brain.update(lambda capsule: capsule)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    path.write_text("half a ca")
    brain.carry(Capsule(goal="g", current_step="one"))
    assert LocalBrain(tmp_path, "g").boot().current_step == "one"
    path.unlink()
    brain.carry(Capsule(goal="g", current_step="one"))
    assert path.exists()


def test_every_capsule_is_synced_before_it_takes_the_place_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain, synced = LocalBrain(tmp_path, "g"), []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append((tmp_path / "context.md").exists())
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    brain.carry(Capsule(goal="g"))
    brain.update(lambda capsule: replace(capsule, current_step="two"))
    assert synced == [False, True]
