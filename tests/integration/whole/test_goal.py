"""A goal in plain words, from the command line to the branch, against a real wire."""

import json
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

CLEAR: dict[str, Any] = {"ambiguous": False, "questions": []}
UNCLEAR: dict[str, Any] = {
    "ambiguous": True,
    "questions": [
        {"question": "Which word?", "assumption": "word", "options": ["word", "verb"]},
        {"question": "In which folder?", "assumption": "the root"},
    ],
}


def todo(name: str, *deps: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": f"Write {name}",
        "prompt": f"Write the word into {name}.txt",
        "verify_cmd": f"grep -q . {name}.txt",
        "deps": list(deps),
        **more,
    }


def backlog(*tasks: dict[str, Any], done_when: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    return {"done_when": list(done_when) or [{"check": "test -e B.txt"}], "tasks": list(tasks)}


TWO = backlog(todo("A"), todo("B", "A"))
RESTING = backlog(todo("A", assumes=[1]), todo("B", "A"))


def reply(*calls: tuple[str, Any]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


class Mind:
    """Judges, plans and writes: each as often as it is asked."""

    def __init__(self, judged: Any = CLEAR, *backlogs: Any) -> None:
        self.judged = judged
        self.backlogs = backlogs or (TWO,)
        self.asked = 0
        self.seen: Any = {"met": "unclear", "why": "nobody knows", "quotes": []}
        self.proposals: list[dict[str, Any]] = []
        self.prompts: list[str] = []

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        words = [str(message["content"]) for message in request.messages]
        if words[0].startswith("You judge whether a goal"):
            return self._said(self.judged)
        if words[0].startswith("You judge whether a repository"):
            return self._said(self.seen)
        if words[0].startswith("You turn a goal"):
            self.prompts.append(words[1])
            made = self.backlogs[min(self.asked, len(self.backlogs) - 1)]
            self.asked += 1
            return self._said(made)
        return self._worked("\n".join(words))

    def _said(self, answer: Any) -> ScriptedReply:
        return ScriptedReply(answer) if isinstance(answer, str) else reply(("answer", answer))

    def _worked(self, words: str) -> ScriptedReply:
        names = [f"{name}.txt" for name in "ABCD"]
        name = max(names, key=lambda one: words.rfind(f"word into {one}"))
        text = "verb\n" if "Which word? verb" in words else "word\n"
        proposals = [("propose", one) for one in self.proposals]
        self.proposals = []
        return reply(
            *proposals,
            ("write_file", {"path": name, "content": text}),
            ("todo_done", {"summary": "written"}),
        )


def begun(whole: Make, mind: Mind, manifest: str | None = None) -> Any:
    one = whole(mind)
    path = one.root / "tasks" / "ACTIVE.toml"
    if manifest is None:
        path.unlink()
    else:
        path.write_bytes(manifest.encode())
    one.settings('[loop]\nmode = "relay"\n')
    one.commit()
    return one


def manifest(one: Any) -> str:
    text: str = (one.root / "tasks" / "ACTIVE.toml").read_bytes().decode()
    return text


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


def test_assumptions_stand_first_in_the_report_and_in_the_capsule(whole: Make) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    ended = one.run("Write words")
    assert ended.code == 0, ended.err
    kinds = [(one["kind"], one["id"], one["best_guess"]) for one in ended.document["decisions"]]
    assert kinds == [("kickoff", "@goal.1", "word"), ("kickoff", "@goal.2", "the root")]
    assert ended.task("A")["assumptions"] != []
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    capsule = (folder / "context.md").read_text()
    assert "Which word? word" in capsule
    report = (folder / "report.md").read_text()
    assert report.index("Which word?") < report.index("Landed on")
    assert "# assumed: Which word? word" in manifest(one)


def test_another_answer_marks_what_rests_on_the_assumption_again(whole: Make) -> None:
    three = backlog(
        todo("A", assumes=[1]),
        todo("B", "A"),
        todo("C"),
        done_when=[{"check": "test -e C.txt -a -e B.txt"}],
    )
    one = begun(whole, Mind(UNCLEAR, three))
    assert one.run("Write words").code == 0
    landed = one.git("rev-parse", "loop/integration")
    ended = one.loop(
        "answer", "@goal:1", "verb", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert ended.code == 0, ended.err
    assert (one.on_branch("A.txt"), one.on_branch("B.txt")) == ("verb\n", "verb\n")
    assert one.on_branch("C.txt") == "word\n"
    subjects = one.git(
        "log", "--format=%(trailers:key=Loop-Task,valueonly)", f"{landed.strip()}..loop/integration"
    )
    assert sorted(subjects.split()) == ["A", "B"]


def test_the_answer_that_was_assumed_marks_nothing_again(whole: Make) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    assert one.run("Write words").code == 0
    landed = one.git("rev-parse", "loop/integration")
    ended = one.loop(
        "answer", "@goal:1", "Word", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert ended.code == 0, ended.err
    assert one.git("rev-parse", "loop/integration") == landed


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("I would rather talk about it.", "no usable answer"),
        ({"tasks": []}, "no usable answer"),
        (backlog(todo("A", "B"), todo("B", "A")), "deps form a cycle: A -> B -> A"),
        (backlog(todo("A"), todo("A")), '"A" is used twice'),
        (backlog(todo("../../etc/x")), "is no id"),
        (backlog({**todo("A"), "may_edit": ["../x"]}), "no usable answer"),
        (backlog(todo("A", verify_cmd="true")), "passes before any work"),
        (backlog(todo("A", verify_cmd="no-such-program --check")), "cannot start here"),
        (backlog(todo("A"), done_when=[{"check": "true"}]), "every criterion is met before"),
        (backlog(todo("A", assumes=[1])), "there are 0 assumptions"),
    ],
)
def test_a_backlog_that_cannot_be_used_is_an_error_after_a_few_tries(
    whole: Make, bad: Any, why: str
) -> None:
    one = begun(whole, Mind(CLEAR, bad))
    ended = one.run("Write words")
    assert ended.code == 2
    assert why in ended.err
    assert not (one.root / "tasks" / "ACTIVE.toml").exists()
    assert len(one.model.chats) <= 10
    assert one.git("branch", "--list", "loop/integration") == ""
    again = one.loop("resume")
    assert (again.code, "no run has anything left" in again.err or "no such file" in again.err) == (
        2,
        True,
    )


def test_a_backlog_that_was_sent_back_is_mended(whole: Make) -> None:
    mind = Mind(CLEAR, backlog(todo("A", verify_cmd="true")), TWO)
    one = begun(whole, mind)
    assert one.run("Write words").code == 0
    assert "passes before any work" in mind.prompts[1]


def test_a_criterion_that_hangs_is_bounded(whole: Make) -> None:
    one = begun(whole, Mind(CLEAR, backlog(todo("A"), done_when=[{"check": "sleep 600"}])))
    ended = one.run("Write words", LOOP_SET_GATE__TIMEOUT_S="1")
    assert ended.code == 2
    assert "done_when: `sleep 600` could not be judged" in ended.err


def test_an_existing_manifest_is_extended_byte_for_byte(whole: Make) -> None:
    old = '# mine\r\nschema = 1\r\n\r\n[[task]]\r\nid = "OLD"\r\ntitle = "Old"\r\nstatus = "abandoned"'
    one = begun(whole, Mind(), old)
    assert one.run("Write words").code == 0
    assert manifest(one).startswith(old)


@pytest.mark.parametrize("words", [["--goal", "Write words"], ["Write words", "--unattended"]])
def test_another_goal_is_kept_where_nobody_is_there(whole: Make, words: list[str]) -> None:
    old = '[goal]\ntext = "Another"\n'
    one = begun(whole, Mind(), old)
    ended = one.run(*words)
    assert (ended.code, manifest(one)) == (2, old)
    assert "the manifest has another goal (Another)" in ended.err
    assert one.model.chats == ()


def test_a_broken_manifest_is_shown_and_nothing_is_asked(whole: Make) -> None:
    one = begun(whole, Mind(), '[goal]\ntxt = "x"\n')
    ended = one.run("Write words")
    assert ended.code == 2
    assert "tasks/ACTIVE.toml:2" in ended.err
    assert one.model.chats == ()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["  "], "the goal is empty"),
        (["--goal", ""], "the goal is empty"),
        (["x " * 50_000], "the goal has 100000 bytes"),
        (["--", "-x"], "for a goal: loop --goal=-x"),
        (["--", "status"], "for a goal: loop --goal=status"),
    ],
)
def test_words_that_are_no_goal_say_what_to_do(whole: Make, words: list[str], why: str) -> None:
    one = begun(whole, Mind())
    ended = one.loop("--no-sandbox", *words)
    assert ended.code == 2
    assert why in ended.err
    assert one.model.chats == ()


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


def test_everything_unclear_is_asked_in_one_round_and_what_is_skipped_is_assumed(
    whole: Make,
) -> None:
    mind = Mind(UNCLEAR, RESTING)
    one = begun(whole, mind, '[goal]\ntext = "Another"\ndone_when = [{ check = "false" }]\n')
    words = [sys.executable, "-m", "loopctl", "Write words", "--attended", "--no-sandbox", "--json"]
    process = subprocess.Popen(
        words,
        cwd=one.root,
        env=one.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(b"replace\nverb\n\n", timeout=200)
    assert process.returncode == 0, err
    said = err.decode()
    assert "3 questions before the work begins" in said
    assert "(1/3)" in said
    assert "Another" in said
    document = json.loads(out)
    assert [one["question"] for one in document["decisions"]] == ["In which folder?"]
    assert "Decided by the user:\n- Which word? verb" in mind.prompts[0]
    table = tomllib.loads(manifest(one))
    assert table["goal"] == {"text": "Write words", "done_when": [{"check": "test -e B.txt"}]}


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
        ({"met": "no", "why": "it is not", "quotes": []}, 4),
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


def test_what_was_assumed_outlives_a_kill_right_after_the_manifest_was_written(
    whole: Make,
) -> None:
    one = begun(whole, Mind(UNCLEAR, RESTING))
    killed = one.run("Write words", LOOP_FAILPOINT="manifest.after_create:1")
    assert killed.code == -signal.SIGKILL
    ended = one.run()
    assert ended.code == 0, ended.err
    kinds = [(one["kind"], one["id"], one["best_guess"]) for one in ended.document["decisions"]]
    assert kinds == [("kickoff", "@goal.1", "word"), ("kickoff", "@goal.2", "the root")]
    assert ended.task("A")["assumptions"] != []
    assert not (one.root / ".local" / "kickoff.json").exists()
    again = one.loop(
        "answer", "@goal:1", "verb", "--json", env={"LOOP_SET_SANDBOX__CONFINE": "off"}
    )
    assert again.code == 0, again.err
    assert (one.on_branch("A.txt"), one.on_branch("B.txt")) == ("verb\n", "verb\n")


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


@pytest.mark.parametrize("judged", ["Well, it depends.", {"ambiguous": "perhaps"}, "{"])
def test_a_judge_of_the_goal_that_talks_nonsense_leaves_nothing_behind(
    whole: Make, judged: Any
) -> None:
    one = begun(whole, Mind(judged))
    ended = one.run("Write words")
    assert ended.code == 2
    assert "no usable answer" in ended.err
    assert not (one.root / "tasks" / "ACTIVE.toml").exists()
    assert not (one.root / ".local" / "kickoff.json").exists()


def test_the_goal_is_the_same_bytes_everywhere(whole: Make) -> None:
    goal = (
        "Gr\u00fc\u00dfe \u8a9e \U0001f600 e\u0301 \u202e \\n \"''' ``` "
        + "w\u00f6rter " * 1500
        + "end"
    )
    mind = Mind()
    one = begun(whole, mind)
    ended = one.run(goal)
    assert ended.code == 0, ended.err
    folder = one.root / ".local" / "runs" / ended.document["run_id"]
    assert tomllib.loads(manifest(one))["goal"]["text"] == goal
    assert json.loads((folder / "run.json").read_text())["goal"] == goal
    assert capsule_of(folder)["goal"] == goal
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["goal"] for event in events if event["type"] == "run_started"] == [goal]
    exported = [json.loads(line) for line in one.loop("capsule", "--export").out.splitlines()]
    assert exported[0]["text"] == goal
    for chat in one.model.chats:
        assert any(goal in str(message["content"]) for message in chat.messages)


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
