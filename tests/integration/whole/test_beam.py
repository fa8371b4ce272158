"""A model that works raises a fork: its options are tried, and compared where both pass."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from loopctl.testing import ScriptedReply
from loopctl.testing.script import ChatRequest
from tests.integration.whole.mind import reply
from tests.integration.whole.test_tiers import is_planning, settings

Make = Callable[..., Any]

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
TASK = """
schema = 1
[goal]
text = "{goal}"
[[task]]
id = "T1"
title = "Split lines into cells"
worker = "graph"
mode = "autonomous"
prompt = "Write csvs.py with split(text) and a test of it, then notes.txt"
verify_cmd = 'env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {pytest} && test -s notes.txt'
"""
FORK = {
    "question": "Regex or split?",
    "bucket": "quality",
    "options": [{"name": "regex", "prompt": "with re"}, {"name": "plain", "prompt": "with split"}],
    "best_guess": "regex",
}
PLAIN = "def split(text):\n    return text.split(',')\n"
REGEX = "import re\n\n\ndef split(text):\n    return re.split(',', text)\n"
DROPS = "import re\n\n\ndef split(text):\n    return re.findall('[^,]+', text)\n"
TEST = "import csvs\n\n\ndef test_split():\n    assert csvs.split('a,,b') == {}\n"


class Mind:
    """Plans, raises the fork, does each option in a step, and writes the notes.

    Args:
        made: The file of each option, and what its test expects.
        todos: What is planned; the fork is met in the first.
        judged: What the judge of scope answers.
    """

    def __init__(
        self, made: dict[str, tuple[str, str]], *todos: str, judged: dict[str, Any] | None = None
    ) -> None:
        self.made = made
        self.todos = todos
        self.judged = judged or {"choice": 0, "quote": "", "why": "it says nothing"}
        self.asked: Counter[tuple[str, str]] = Counter()

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        words = "\n".join(str(message["content"]) for message in request.messages)
        what, said = self._said(words, request)
        self.asked[request.body["model"], what] += 1
        return said

    def _said(self, words: str, request: ChatRequest) -> tuple[str, ScriptedReply]:
        if words.startswith("You judge which option"):
            return "judge", reply(("answer", self.judged))
        if is_planning(request):
            return "plan", reply(("plan", {"todos": list(self.todos)}))
        tried = re.findall(r"you try one option: (\w+)", words)
        notes = ("write_file", {"path": "notes.txt", "content": "done\n"})
        done = ("todo_done", {"summary": "did it"})
        if tried:
            file, expected = self.made[tried[-1]]
            files = [("csvs.py", file), ("tests/test_split.py", TEST.format(expected))]
            writes = [("write_file", {"path": path, "content": text}) for path, text in files]
            more = [notes] if len(self.todos) == 1 else []
            return "option", reply(*writes, *more, done)
        if self.asked["standard", "fork"]:
            return "rest", reply(notes, done)
        return "fork", reply(("fork", FORK))


def begin(whole: Make, mind: Mind, goal: str = "Split lines") -> Any:
    one = whole(mind)
    (one.root / "tasks" / "ACTIVE.toml").write_text(TASK.format(goal=goal, pytest=PYTEST))
    (one.root / "tests").mkdir()
    (one.root / "tests" / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    (one.root / "tests" / "test_base.py").write_text("def test_base():\n    pass\n")
    settings(one)
    one.commit()
    return one


def told(one: Any, kind: str) -> list[dict[str, Any]]:
    (log,) = (one.root / ".local" / "runs").glob("*/events.jsonl")
    events = map(json.loads, log.read_text().splitlines())
    return [event for event in events if event["type"] == kind]


SAME = {"regex": (REGEX, "['a', '', 'b']"), "plain": (PLAIN, "['a', '', 'b']")}
OTHER = {"regex": (DROPS, "['a', 'b']"), "plain": (PLAIN, "['a', '', 'b']")}


def test_options_are_tried_by_the_cheap_model_and_the_plan_goes_on_from_the_winner(
    whole: Make,
) -> None:
    mind = Mind(SAME, "write csvs.py", "write the notes")
    one = begin(whole, mind)
    ended = one.run()
    assert ended.code == 0, ended.err
    assert mind.asked == {
        ("premium", "plan"): 1,
        ("standard", "fork"): 1,
        ("cheap", "option"): 2,
        ("standard", "rest"): 1,
    }
    assert one.on_branch("csvs.py") == PLAIN
    assert one.on_branch("notes.txt") == "done\n"
    assert [fork["bucket"] for fork in told(one, "fork_classified")] == ["quality"]
    assert [fork["winner"] for fork in told(one, "fork_resolved")] == ["main.1.2-plain"]
    refs = one.git("--git-dir=.local/git", "for-each-ref", "--format=%(refname)", "refs/loop")
    assert "main.1.1-regex" in refs
    assert list((one.root / ".local" / "worktrees").iterdir()) == []


def test_two_that_pass_and_differ_are_judged_by_the_goal_with_the_premium_model(
    whole: Make,
) -> None:
    goal = "Split lines; empty cells are of no use to anybody"
    judged = {"choice": 2, "quote": "empty cells are of no use", "why": "they are dropped"}
    mind = Mind(OTHER, "write csvs.py and the notes", judged=judged)
    one = begin(whole, mind, goal)
    ended = one.run()
    assert ended.code == 0, ended.err
    assert mind.asked["premium", "judge"] == 1
    assert one.on_branch("csvs.py") == DROPS
    raised, found = told(one, "fork_classified")
    assert (raised["bucket"], raised["said"]) == ("quality", "quality")
    assert (found["bucket"], found["said"], found["chosen"]) == ("scope", "", "regex")
    assert "the tests of regex fail on plain" in found["question"]
    assert "they are dropped" in found["reason"]


def test_where_the_goal_is_silent_the_answer_lands_one_without_asking_a_model_again(
    whole: Make,
) -> None:
    mind = Mind(OTHER, "write csvs.py and the notes")
    one = begin(whole, mind)
    ended = one.run()
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert (decision["kind"], set(decision["options"])) == ("scope", {"regex", "plain"})
    assert "assert ['a', '', 'b'] == ['a', 'b']" in decision["question"]
    requests = len(one.model.chats)
    ended = one.loop("answer", decision["id"], "regex", "--json")
    assert ended.code == 0, ended.err
    assert one.on_branch("csvs.py") == DROPS
    assert len(one.model.chats) == requests
