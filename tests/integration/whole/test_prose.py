"""Tasks whose result is a text, from the command line to the branch, against a real wire."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from loopctl.testing import ScriptedCall, ScriptedReply
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

GOAL = "Choose where the importer keeps its rows: \u8a9e \u00fc"
PRAISE = "a BRILLIANT piece of work, complete in every respect"
STATED = f"Given the goal, {PRAISE}"
DRAFT = "We keep rows in a file.\n"
BETTER = "We keep rows in a file, since one is enough.\n"
FINAL = "We keep rows in SQLite, since it needs no server.\n"
MANIFEST = f"""
schema = 1
[goal]
text = "{GOAL}"
[[task]]
id = "T1"
title = "Where to keep rows"
kind = "design"
worker = "graph"
output = "docs/rows.md"
prompt = "Compare two ways"
accept = ["it names one way"]
"""


def reply(*calls: tuple[str, Any]) -> ScriptedReply:
    return ScriptedReply(PRAISE, calls=tuple(ScriptedCall(name, given) for name, given in calls))


def flawed(text: str = "in a file") -> dict[str, Any]:
    point = {"quote": text, "what": "no reason is given"}
    return {"is_sound": False, "quotes": [text], "criticisms": [point]}


def sound(text: str = "since one is enough") -> dict[str, Any]:
    return {"is_sound": True, "quotes": [text], "criticisms": []}


def serves(word: str = "yes", quote: str = "We keep rows in SQLite", **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"objections": [], "questions": []}
    return {"serves": word, "why": "so it is", "quotes": [quote], **empty, **more}


ASKS = [
    {"question": "How many users?", "guess": "ten"},
    {"question": "Which licence?", "guess": ""},
]


def _next(said: list[Any]) -> Any:
    """Return what comes next, the last for ever: a server that falls over is asked for minutes."""
    return said.pop(0) if len(said) > 1 else said[0]


class Author:
    """Plans, drafts, answers, synthesises; its critics and judges say what they are told to."""

    def __init__(self, critics: Sequence[Any], judges: Sequence[Any]) -> None:
        self.critics = list(critics)
        self.judges = list(judges)
        self.final = FINAL
        self.path = "docs/rows.md"

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        system = str(request.messages[0]["content"])
        if system.startswith("You are the adversary"):
            return ScriptedReply(calls=(ScriptedCall("answer", _next(self.critics)),))
        if system.startswith("You judge whether a text"):
            return ScriptedReply(calls=(ScriptedCall("answer", _next(self.judges)),))
        order = str(request.messages[-1]["content"]).rsplit("Now", 1)[1]
        if "This step makes the plan" in order:
            return reply(("plan", {"todos": ["compare", "write the draft"]}))
        if "Write the final text" in order:
            return self._wrote(self.final, STATED)
        if "Answer each criticism" in order:
            return self._wrote(BETTER, PRAISE)
        if "write the draft" in order:
            return self._wrote(DRAFT, PRAISE)
        return reply(("todo_done", {"summary": PRAISE}))

    def _wrote(self, text: str, summary: str) -> ScriptedReply:
        written = {"path": self.path, "content": text}
        return reply(("write_file", written), ("todo_done", {"summary": summary}))


def begun(whole: Make, author: Author, manifest: str = MANIFEST) -> Any:
    one = whole(author)
    (one.root / "tasks" / "ACTIVE.toml").write_text(manifest)
    tiers = "".join(
        f'[models.{tier}]\nname = "openai/{tier}"\napi_base = "{one.model.url}"\n'
        'api_key_env = "SCRIPTED_KEY"\nmax_output_tokens = 500\n'
        "input_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n"
        for tier in ("cheap", "standard", "premium")
    )
    (one.root / "loop.toml").write_text(tiers)
    one.commit()
    return one


def kind(request: ChatRequest) -> str:
    system = str(request.messages[0]["content"])
    if system.startswith("You are the adversary"):
        return "critic"
    return "judge" if system.startswith("You judge whether a text") else "worker"


def asked(one: Any) -> list[str]:
    return [kind(request) for request in one.model.chats]


def readers(one: Any) -> list[ChatRequest]:
    return [request for request in one.model.chats if kind(request) != "worker"]


def gate(ended: Any) -> list[str]:
    return [f"{one['check']} {one['verdict']}" for one in ended.task("T1")["gate"]]


def test_a_draft_is_criticised_answered_synthesised_judged_and_landed(whole: Make) -> None:
    """Judges read it in between, and are paid by the task."""
    one = begun(whole, Author([flawed(), sound()], [serves()]))
    ended = one.run()
    assert ended.code == 0, ended.err
    assert one.on_branch("docs/rows.md") == FINAL
    assert gate(ended) == ["apply pass", "output pass", "alignment pass"]
    steps = ["worker"] * 3
    assert asked(one) == [*steps, "critic", "worker", "critic", "worker", "judge"]
    models = [request.body["model"] for request in one.model.chats]
    assert models == [
        *("premium", "standard", "standard"),
        *("premium", "standard", "premium"),
        *("premium", "premium"),
    ]
    assert ended.task("T1")["result"] == STATED
    usage = ended.task("T1")["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (800, 80)
    assert "todo added" in ended.err
    assert one.loop("audit", "verify").code == 0


def test_judges_see_the_goal_verbatim_and_the_text_and_never_the_workers_praise(
    whole: Make,
) -> None:
    one = begun(whole, Author([flawed(), sound()], [serves()]))
    assert one.run().code == 0
    texts = [DRAFT, BETTER, FINAL]
    assert len(readers(one)) == 3
    for request, text in zip(readers(one), texts, strict=True):
        prompt = str(request.messages[1]["content"])
        assert GOAL in prompt
        assert text in prompt
        assert "it names one way" in prompt
        assert "BRILLIANT" not in json.dumps(request.body)
        assert [tool["function"]["name"] for tool in request.tools] == ["answer"]


def test_an_invented_quote_is_asked_for_once_more_and_then_a_person_has_the_word(
    whole: Make,
) -> None:
    invented = serves(quote="We keep rows in Postgres")
    one = begun(whole, Author([sound("in a file")], [invented, invented]))
    ended = one.run()
    assert ended.code == 3, ended.err
    assert asked(one).count("judge") == 2
    assert [one["kind"] for one in ended.document["decisions"]] == ["approval"]
    requests = len(one.model.chats)
    after = one.loop("answer", "T1", "--approve", "--json")
    assert after.code == 0, after.err
    assert one.on_branch("docs/rows.md") == FINAL
    assert len(one.model.chats) == requests


def test_what_stays_unclear_is_one_scope_decision_whose_answer_the_judge_sees(
    whole: Make,
) -> None:
    unclear = serves("unclear", questions=ASKS)
    one = begun(whole, Author([sound("in a file")], [unclear, serves()]))
    ended = one.run()
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert decision["kind"] == "scope"
    assert "1. How many users? 2. Which licence?" in decision["question"]
    assert decision["best_guess"] == "1. ten; 2. as you think best"
    # The same text is not judged twice, so that a judge cannot be worn down.
    assert asked(one).count("judge") == 1
    workers = asked(one).count("worker")
    after = one.loop("answer", "T1", "ten, and MIT", "--json")
    assert after.code == 0, after.err
    assert asked(one).count("worker") == workers
    assert "The answer: ten, and MIT" in str(readers(one)[-1].messages[1]["content"])


@pytest.mark.parametrize("path", ["docs/other.md", "docs/.gitkeep"])
def test_without_its_output_a_task_is_never_done_and_no_judge_is_asked(
    whole: Make, path: str
) -> None:
    author = Author([], [])
    author.path = path
    one = begun(whole, author)
    ended = one.run()
    assert ended.code == 4, ended.err
    assert readers(one) == []
    assert "output fail" in gate(ended)
    assert ended.task("T1")["landed"] in {None, ""}


@pytest.mark.parametrize("point", ["next.gate:2", "next.gate:3"])
def test_a_killed_run_goes_on_in_its_round(whole: Make, point: str) -> None:
    one = begun(whole, Author([flawed(), sound()], [serves()]))
    killed = one.run(LOOP_FAILPOINT=point)
    assert killed.code == -signal.SIGKILL
    ended = one.run()
    assert ended.code == 0, ended.err
    assert one.on_branch("docs/rows.md") == FINAL
    # No reply of the worker is paid for twice, and no verdict.
    assert (asked(one).count("worker"), len(readers(one))) == (5, 3)


def test_a_judge_that_does_not_fit_the_cap_is_not_asked(whole: Make) -> None:
    long = "the way is long and winding and has no end at all " * 1200
    author = Author([sound("in a file")], [serves(quote="the way is long")])
    author.final = long
    one = begun(whole, author, f"{MANIFEST}budget = {{ tokens = 11000 }}\n")
    ended = one.run()
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert (decision["kind"], ended.task("T1")["status"]) == ("budget", "blocked")
    assert "judge" not in asked(one)
    after = one.loop("answer", "T1", "--budget", "tokens=100000", "--json")
    assert after.code == 0, after.err
    assert asked(one).count("judge") == 1


def test_a_text_that_a_command_writes_waits_for_a_person_where_no_model_is(whole: Make) -> None:
    one = whole([])
    (one.root / "loop.toml").unlink()
    (one.root / "tasks" / "ACTIVE.toml").write_text(
        'schema = 1\n[[task]]\nid = "T1"\ntitle = "Write"\nkind = "doc"\noutput = "notes.md"\n'
        "command = \"echo 'what is new' > notes.md\"\n"
    )
    one.commit()
    ended = one.run()
    assert ended.code == 3, ended.err
    (decision,) = ended.document["decisions"]
    assert decision["kind"] == "approval"
    assert "notes.md" in decision["question"]
    after = one.loop("answer", "T1", "--approve", "--json")
    assert after.code == 0, after.err
    assert one.on_branch("notes.md") == "what is new\n"


def test_somebody_at_the_terminal_is_asked_everything_in_one_go(whole: Make) -> None:
    unclear = serves("unclear", questions=ASKS)
    author = Author([sound("in a file")], [unclear, serves()])
    one = begun(whole, author)
    done = subprocess.run(
        [sys.executable, "-m", "loopctl", "--attended", "--no-sandbox", "--json"],
        cwd=one.root,
        env=one.env,
        input=b"ten, and MIT\n",
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr.decode().count("Which licence?") >= 1
    document = json.loads(done.stdout)
    assert document["tasks"][0]["status"] == "done"
    assert asked(one).count("judge") == 2
