"""Which model is asked for what, and the caps that all requests of a task share, on the wire."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from loopctl.testing import ScriptedCall, ScriptedReply, rate_limited
from loopctl.testing.script import ChatRequest, Play
from tests.integration.whole.mind import CLEAR, Mind, backlog, begun, todo

Make = Callable[..., Any]

TASK = """
schema = 1
[goal]
text = "Write words"
[[task]]
id = "T1"
title = "Write T1"
worker = "graph"
mode = "autonomous"
prompt = "Write the word into T1.txt"
verify_cmd = "grep -q word T1.txt"
"""
OPTIONS = (
    'options = [{ name = "long", prompt = "by hand" }, { name = "short", prompt = "by tool" }]\n'
)
TOKENS = 16_000


def settings(one: Any, more: str = "") -> None:
    tiers = "".join(
        f'[models.{tier}]\nname = "openai/{tier}"\napi_base = "{one.model.url}"\n'
        'api_key_env = "SCRIPTED_KEY"\nmax_output_tokens = 500\n'
        "input_usd_per_mtok = 1.0\noutput_usd_per_mtok = 2.0\n"
        for tier in ("cheap", "standard", "premium")
    )
    (one.root / "loop.toml").write_text(f"{more}\n{tiers}")


def is_planning(request: ChatRequest) -> bool:
    return "This step makes the plan" in str(request.messages[-1]["content"])


def works(request: ChatRequest) -> ScriptedReply:
    if is_planning(request):
        return ScriptedReply(calls=(ScriptedCall("plan", {"todos": ["write the word"]}),))
    word = {"path": "T1.txt", "content": "word\n"}
    done = ScriptedCall("todo_done", {"summary": "written"})
    return ScriptedReply(calls=(ScriptedCall("write_file", word), done))


def asked(one: Any) -> Counter[tuple[str, bool]]:
    return Counter((request.body["model"], is_planning(request)) for request in one.model.chats)


def test_planning_is_premium_and_a_step_standard(whole: Make) -> None:
    one = whole(works)
    (one.root / "tasks" / "ACTIVE.toml").write_text(TASK)
    settings(one)
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert asked(one) == {("premium", True): 1, ("standard", False): 1}


def test_candidates_of_several_work_with_the_cheap_model(whole: Make) -> None:
    one = whole(works)
    (one.root / "tasks" / "ACTIVE.toml").write_text(TASK + OPTIONS)
    settings(one)
    one.commit()
    ended = one.run()
    assert ended.code == 0, ended.err
    assert asked(one) == {("premium", True): 2, ("cheap", False): 2}


def test_kickoff_and_judgments_of_the_goal_are_premium(whole: Make) -> None:
    sentence = [{"criterion": "The words are written."}]
    mind = Mind(CLEAR, backlog(todo("A"), done_when=sentence))
    one = begun(whole, mind)
    settings(one, '[loop]\nmode = "relay"\n')
    one.commit()
    ended = one.run("Write words")
    assert ended.task("A")["status"] == "done", ended.err
    purposes = {
        "You judge whether a goal": "premium",
        "You turn a goal": "premium",
        "You judge whether a repository": "premium",
    }
    found = {
        (begin, request.body["model"])
        for request in one.model.chats
        for begin in purposes
        if str(request.messages[0]["content"]).startswith(begin)
    }
    assert found == set(purposes.items())


def test_candidates_and_their_retries_share_the_cap_of_their_task(whole: Make) -> None:
    """Every request that leaves counts at its worst until it is settled, whoever sends it."""

    def never_done(request: ChatRequest) -> Play:
        if len(request.messages) % 2:
            return rate_limited("0")
        look = ScriptedCall("read_file", {"path": "README"})
        return ScriptedReply(calls=(look,), usage=(2000, 10))

    one = whole(never_done)
    (one.root / "tasks" / "ACTIVE.toml").write_text(
        f"{TASK}{OPTIONS}budget = {{ tokens = {TOKENS} }}\n"
    )
    settings(one)
    one.commit()
    ended = one.run()
    assert ended.code == 3, ended.err
    task = ended.task("T1")
    assert task["status"] == "blocked"
    assert 0 < task["usage"]["prompt_tokens"] + task["usage"]["completion_tokens"] <= TOKENS
    # A request takes 2,000 tokens at least, whether it is answered or refused.
    assert 2 <= len(one.model.chats) <= TOKENS // 2000
