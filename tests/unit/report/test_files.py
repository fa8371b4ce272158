import json
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loopctl.clock import SystemClock
from loopctl.domain import RunStatus
from loopctl.events import AnyEvent, RunEnded, RunResumed, dump
from loopctl.report.files import RunFiles
from loopctl.report.fold import summarize
from loopctl.report.summary import to_document
from loopctl.testing import StillClock

Number = Callable[[Sequence[AnyEvent]], tuple[AnyEvent, ...]]
Story = tuple[AnyEvent, ...]
NAMES = ["report.html", "report.md", "run.json"]


def _log(folder: Path, events: Sequence[AnyEvent]) -> None:
    lines = (json.dumps(dump(event)) for event in events)
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_files_follow_the_run(tmp_path: Path, story: Story) -> None:
    folder = tmp_path / "run"
    files = RunFiles(folder, clock=StillClock())
    for seen, event in enumerate(story, 1):
        files(event)
        document = json.loads((folder / "run.json").read_text())
        if event.type in {"task_stopped", "task_landed", "decision_raised", "run_ended"}:
            assert document == to_document(summarize(story[:seen]))
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert files.fault is None


def test_files_are_for_their_owner_alone(tmp_path: Path, story: Story) -> None:
    folder = tmp_path / "run"
    files = RunFiles(folder)
    for event in story:
        files(event)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_continued_run_keeps_its_history(tmp_path: Path, story: Story, number: Number) -> None:
    again: list[AnyEvent] = [
        RunResumed(reason="resume", tasks=(("A1", "Fix imports"),)),
        RunEnded(status=RunStatus.COMPLETE, exit_code=0, head="c2" * 20),
    ]
    whole = number([*story, *again])
    _log(tmp_path, whole)
    files = RunFiles(tmp_path)
    for event in whole[len(story) :]:
        files(event)
    assert json.loads((tmp_path / "run.json").read_text()) == to_document(summarize(whole))


def test_a_torn_line_of_the_history_is_passed_over(tmp_path: Path, story: Story) -> None:
    _log(tmp_path, story[:-1])
    with (tmp_path / "events.jsonl").open("a") as log:
        log.write('{"type": "run_en')
    RunFiles(tmp_path)(story[-1])
    document = json.loads((tmp_path / "run.json").read_text())
    assert document["tasks"][0]["landed"] == "c1" * 20


class Slow(SystemClock):
    """A clock by which everything takes ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return self.looks * self.seconds


def test_where_writing_is_dear_the_files_follow_a_little_later(
    tmp_path: Path, story: Story
) -> None:
    files = RunFiles(tmp_path, clock=Slow(0.06))
    for event in story[:-1]:
        files(event)
    seen = json.loads((tmp_path / "run.json").read_text())
    assert seen != to_document(summarize(story[:-1]))
    assert files._timer is not None
    files._timer.join(60)
    assert json.loads((tmp_path / "run.json").read_text()) == to_document(summarize(story[:-1]))


@pytest.mark.parametrize("is_ended", [True, False])
def test_the_end_of_a_run_is_written_at_once_however_dear(
    tmp_path: Path, story: Story, *, is_ended: bool
) -> None:
    files = RunFiles(tmp_path, clock=Slow(1000.0))
    told = story if is_ended else story[:-1]
    for event in told:
        files(event)
    if not is_ended:
        files.close()
    assert json.loads((tmp_path / "run.json").read_text()) == to_document(summarize(told))
    files.close()


def test_a_full_disk_ends_no_run_and_leaves_the_last_good_file(
    tmp_path: Path, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = RunFiles(tmp_path)
    files(story[0])
    before = (tmp_path / "run.json").read_bytes()

    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    files(story[-1])
    assert files.fault is not None
    assert "No space left on device" in files.fault
    monkeypatch.undo()
    assert (tmp_path / "run.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
