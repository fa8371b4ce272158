"""What the faults of a provider come to at the end of a run, each on the wire."""

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopctl.testing import (
    CutOff,
    Garbled,
    HangUp,
    HttpError,
    NoChoices,
    Play,
    ScriptedCall,
    ScriptedReply,
    overflow,
    rate_limited,
    wrong_key,
)
from loopctl.testing.script import ChatRequest

Make = Callable[..., Any]

DONE = ("todo_done", {"summary": "written"})


def reply(*calls: tuple[str, dict[str, Any]]) -> ScriptedReply:
    return ScriptedReply(calls=tuple(ScriptedCall(name, given) for name, given in calls))


LOOK = reply(("read_file", {"path": "README"}))
PASSING = (
    rate_limited("1"),
    rate_limited(),
    HttpError(500),
    HttpError(503, headers={"Retry-After": "1"}),
    CutOff(LOOK),
    CutOff(LOOK, is_clean=True),
    Garbled(),
    HangUp(),
)


def test_faults_that_pass_cost_no_step(whole: Make) -> None:
    """Each request of the one step fails first, in another way."""
    script: list[Play] = [play for fault in PASSING for play in (fault, LOOK)]
    word = ("write_file", {"path": "T1.txt", "content": "word\n"})
    one = whole([*script, reply(word, DONE)])
    ended = one.run()
    assert ended.code == 0, ended.err
    assert ended.task("T1")["steps"] == 1
    assert len(one.model.chats) == len(script) + 1


@dataclass(frozen=True)
class Case:
    """A fault for ever, what its task ends as, what a person reads, and how often it is asked."""

    play: Play
    status: str
    says: str
    requests: int


BROKEN = ScriptedReply("x", (ScriptedCall("write_file", '{"path": "T'),))
CASES = {
    "T1": Case(wrong_key(), "blocked", "refused the key in SCRIPTED_KEY.*set a valid one", 3),
    "T2": Case(HttpError(402), "blocked", "no credit left; add some, or name another model", 3),
    "T3": Case(HttpError(404), "blocked", "is not there.*correct its name", 3),
    "T4": Case(overflow(), "stuck", "shorter prompt, or its tier a model with a larger", 9),
    "T5": Case(BROKEN, "stuck", "could not be used", 9),
    "T6": Case(NoChoices(), "stuck", "could not be used|empty", 18),
    "T7": Case(ScriptedReply(refusal="I will not."), "stuck", "withheld|I will not", 18),
    "T8": Case(ScriptedReply("I would rather talk."), "stuck", "rather talk", 6),
}


def task_of(request: ChatRequest) -> str:
    words = "\n".join(str(message["content"]) for message in request.messages)
    return str(re.findall(r"Your task: (T\d) - ", words)[0])


def test_faults_that_last_end_each_task_in_its_state_with_what_to_do(whole: Make) -> None:
    one = whole(lambda request: CASES[task_of(request)].play)
    one.manifest(*CASES)
    one.commit()
    ended = one.run()
    assert ended.code == 3, ended.err
    told = {
        task: (
            case.status == ended.task(task)["status"],
            re.search(case.says, str([ended.task(task), *_decisions(ended, task)])) is not None,
        )
        for task, case in CASES.items()
    }
    assert told == dict.fromkeys(CASES, (True, True)), ended.out
    asked = [task_of(request) for request in one.model.chats]
    assert {task: asked.count(task) for task in CASES} == {
        task: case.requests for task, case in CASES.items()
    }


def _decisions(ended: Any, task: str) -> list[Any]:
    return [one for one in ended.document["decisions"] if one["task"] == task]


def test_an_endpoint_where_nothing_listens_is_soon_given_up(whole: Make) -> None:
    one = whole([])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    ended = one.run(LOOP_SET_MODELS__STANDARD__API_BASE=url)
    assert ended.code == 3, ended.err
    (decision,) = _decisions(ended, "T1")
    assert decision["kind"] == "environment"
    assert f"nothing listens at {url}; start the server, or correct api_base" in str(decision)
