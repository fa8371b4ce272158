"""Met criteria end a run, an empty frontier does not; proposed tasks serve an open criterion."""

import tomllib
from typing import Any

import pytest

from tests.integration.whole.mind import CLEAR, Make, Mind, backlog, begun, manifest, todo


def test_a_criterion_that_hangs_is_bounded(whole: Make) -> None:
    one = begun(whole, Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "sleep 600"}])))
    ended = one.run("Write words", LOOP_SET_GATE__TIMEOUT_S="1")
    assert ended.code == 2
    assert "done_when: `sleep 600` could not be judged" in ended.err


def test_met_criteria_end_the_run_with_tasks_left(whole: Make) -> None:
    three = backlog(todo("A"), todo("B", "A"), todo("C", "B"))
    one = begun(whole, Mind(CLEAR, three))
    ended = one.run("Write words")
    assert ended.code == 0, ended.err
    assert [task["status"] for task in ended.document["tasks"]] == ["done", "done", "todo"]


def test_an_empty_frontier_with_the_goal_unmet_is_no_success(whole: Make) -> None:
    one = begun(whole, Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "test -e Z.txt"}])))
    ended = one.run("Write words")
    assert ended.code != 0
    assert ended.task("A")["status"] == "done"


SENTENCE = [{"criterion": "every word is there"}]


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        ({"met": "yes", "why": "so", "quotes": []}, 3),
        ({"met": "yes", "why": "so", "quotes": [{"path": "A.txt", "text": "the whole word"}]}, 3),
        pytest.param({"met": "no", "why": "it is not", "quotes": []}, 4, marks=pytest.mark.slow),
    ],
)
def test_a_sentence_is_met_only_by_a_quote_that_stands_in_the_files(
    whole: Make, seen: Any, code: int
) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), done_when=SENTENCE))
    mind.seen = seen
    one = begun(whole, mind)
    ended = one.run("Write words")
    assert ended.code == code, ended.err


def test_a_sentence_with_its_quote_ends_the_run(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), todo("B", "A"), done_when=SENTENCE))
    mind.seen = {
        "met": "yes",
        "why": "so",
        "quotes": [{"path": "LICENSE", "text": "all the words"}],
    }
    one = begun(whole, mind)
    (one.root / "LICENSE").write_text("all the words\n")
    one.commit()
    ended = one.run("Write words")
    assert ended.code == 0, ended.err
    assert [task["status"] for task in ended.document["tasks"]] == ["done", "todo"]
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    assert "LICENSE says: all the words" in (folder / "report.md").read_text()


def test_proposed_tasks_come_in_only_where_they_serve_an_open_criterion(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "test -e C.txt"}]))
    proposal = {
        "title": "Write C",
        "prompt": "Write the word into C.txt",
        "verify_cmd": "grep -q . C.txt",
    }
    mind.proposals = [
        {**proposal, "serves": "test -e C.txt"},
        {**proposal, "title": "Polish", "serves": "beauty"},
    ]
    one = begun(whole, mind)
    ended = one.run("Write words")
    assert ended.code == 0, ended.err
    table = tomllib.loads(manifest(one))
    added = table["task"][1]
    assert (added["id"], added["status"], added["area"]) == ("R1", "done", ["refill"])
    assert one.on_branch("C.txt") == "word\n"
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    report = (folder / "report.md").read_text()
    assert "Proposed and rejected (1)" in report
    assert "it names no done-criterion of the goal" in report


@pytest.mark.slow
def test_no_more_tasks_come_in_than_the_setting_allows(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "test -e C.txt"}]))
    mind.proposals = [
        {
            "title": "Write C",
            "prompt": "word into C",
            "verify_cmd": "grep -q . C.txt",
            "serves": "1",
        }
    ]
    one = begun(whole, mind)
    ended = one.run("Write words", LOOP_SET_LOOP__REFILLS="0")
    assert ended.code != 0
    assert len(tomllib.loads(manifest(one))["task"]) == 1


@pytest.mark.slow
def test_a_proposed_task_whose_verify_command_passes_already_is_rejected(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "test -e C.txt"}]))
    proposal = {"title": "C", "prompt": "Write the word into C.txt", "serves": "1"}
    mind.proposals = [{**proposal, "verify_cmd": "true"}]
    one = begun(whole, mind)
    ended = one.run("Write words")
    assert ended.code != 0
    assert len(tomllib.loads(manifest(one))["task"]) == 1
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    assert "passes before any work" in (folder / "report.md").read_text()
