"""A goal in plain words, from the command line to the branch, against a real wire."""

import json
import signal
import tomllib
from typing import Any

import pytest

from loopctl.sources.kickoff import MAX_GOAL_BYTES
from tests.integration.whole.mind import CLEAR, Make, Mind, backlog, begun, manifest, todo


def test_a_goal_becomes_criteria_and_tasks_that_are_driven(whole: Make) -> None:
    goal = 'Write "words"\n\tand more: ünïcode \\ 語'
    one = begun(whole, Mind())
    ended = one.run(goal)
    assert ended.code == 0, ended.err
    table = tomllib.loads(manifest(one))
    assert table["goal"] == {"text": goal, "done_when": [{"check": "test -e B.txt"}]}
    assert [(task["id"], task["status"]) for task in table["task"]] == [
        ("A", "done"),
        ("B", "done"),
    ]
    assert ended.document["goal"] == goal
    assert (one.on_branch("A.txt"), one.on_branch("B.txt")) == ("word\n", "word\n")
    assert "the goal became 2 tasks" in ended.err
    assert "B Write B (after A): grep -q . B.txt" in ended.err


def test_the_same_goal_again_is_driven_on_and_no_model_is_asked_for_tasks(whole: Make) -> None:
    mind = Mind()
    one = begun(whole, mind)
    assert one.run("Write words").code == 0
    before = manifest(one)
    assert one.run("Write words").code == 0
    assert (mind.asked, manifest(one)) == (1, before)


def test_an_existing_manifest_is_extended_byte_for_byte(whole: Make) -> None:
    old = '# mine\r\nschema = 1\r\n\r\n[[task]]\r\nid = "OLD"\r\ntitle = "Old"\r\nstatus = "abandoned"'
    one = begun(whole, Mind(), old)
    assert one.run("Write words").code == 0
    assert manifest(one).startswith(old)


@pytest.mark.parametrize("goal", ["-x", "status"])
def test_any_text_is_a_goal_where_it_is_called_one(whole: Make, goal: str) -> None:
    one = begun(whole, Mind())
    ended = one.run(f"--goal={goal}")
    assert (ended.code, ended.document["goal"]) == (0, goal)


@pytest.mark.parametrize(
    ("point", "is_written"),
    [("manifest.before_create:1", False), ("manifest.after_create:1", True)],
)
def test_a_kickoff_that_is_killed_leaves_the_manifest_untouched_or_whole(
    whole: Make, point: str, *, is_written: bool
) -> None:
    one = begun(whole, Mind())
    ended = one.run("Write words", LOOP_FAILPOINT=point)
    assert ended.code == -signal.SIGKILL
    path = one.root / "tasks" / "ACTIVE.toml"
    assert path.exists() is is_written
    if is_written:
        assert len(tomllib.loads(path.read_text())["task"]) == 2
    again = one.run("Write words")
    assert again.code == 0, again.err
    assert list(path.parent.iterdir()) == [path]


def test_the_next_action_is_in_the_capsule_before_a_model_makes_tasks(whole: Make) -> None:
    one = begun(whole, Mind())
    goal = "Write words: \u00fc \U0001f600 \\ ''' \u2028"
    killed = one.run(goal, LOOP_FAILPOINT="next.kickoff:1")
    assert killed.code == -signal.SIGKILL
    assert one.model.chats == ()
    [folder] = (one.root / ".local" / "runs").iterdir()
    capsule = capsule_of(folder)
    assert capsule["goal"] == goal
    assert capsule["current_step"].startswith("kickoff: make done-criteria and tasks")
    assert one.loop("audit", "verify").code == 0
    ended = one.run(goal)
    assert (ended.code, ended.document["goal"]) == (0, goal)


def capsule_of(folder: Any) -> dict[str, Any]:
    block = (folder / "context.md").read_text().split("```toml\n")[1].split("\n```\n")[0]
    return tomllib.loads(block)


LONGEST = "w\u00f6rter e\u0301 " * 5000
LONGEST += "." * (MAX_GOAL_BYTES - len(LONGEST.encode()))


@pytest.mark.parametrize(
    "goal",
    [
        "Gr\u00fc\u00dfe \U0001f469\u200d\U0001f467 e\u0301 \u202e \u05e9\u05dc \\n \"''' ``` \ufeff",
        "  one\r\n\r\ntwo \t\r\n  ",
        pytest.param(LONGEST, marks=pytest.mark.slow),
    ],
    ids=["letters", "line ends", "longest"],
)
def test_the_goal_is_the_same_bytes_everywhere(whole: Make, goal: str) -> None:
    mind = Mind(CLEAR, backlog(todo("A"), done_when=[{"criterion": "all words are there"}]))
    mind.seen = {"met": "yes", "why": "so", "quotes": [{"path": "SAID", "text": "all the words"}]}
    one = begun(whole, mind)
    (one.root / "SAID").write_text("all the words\n")
    one.commit()
    ended = one.run(f"--goal={goal}")
    assert ended.code == 0, ended.err
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    assert tomllib.loads(manifest(one))["goal"]["text"] == goal
    assert json.loads((folder / "run.json").read_text())["goal"] == goal
    assert capsule_of(folder)["goal"] == goal
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["goal"] for event in events if event["type"] == "run_started"] == [goal]
    exported = [json.loads(line) for line in one.loop("capsule", "--export").out.splitlines()]
    assert exported[0]["text"] == goal
    heads = {str(chat.messages[0]["content"])[:25] for chat in one.model.chats}
    assert len(heads) == 4, heads
    for chat in one.model.chats:
        assert any(goal in str(message["content"]) for message in chat.messages)
