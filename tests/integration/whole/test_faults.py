"""What the faults of a provider come to at the end of a run, each on the wire."""

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

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


def look(number: int) -> ScriptedReply:
    """Return a reply that reads on: the same call again and again would stop the worker."""
    return reply(("read_file", {"path": "README", "offset": number}))


LOOK = look(0)
PASSING: tuple[Play, ...] = (
    rate_limited("1"),
    rate_limited(),
    HttpError(500),
    HttpError(503, headers={"Retry-After": "1"}),
    CutOff(LOOK),
    CutOff(LOOK, is_clean=True),
    Garbled(),
    HangUp(),
)


@pytest.mark.slow
def test_faults_that_pass_are_tried_again_and_the_task_lands(whole: Make) -> None:
    """Each request fails first, in another way; so many looks take three steps by themselves."""
    script: list[Play] = [
        play for number, fault in enumerate(PASSING) for play in (fault, look(number))
    ]
    word = ("write_file", {"path": "T1.txt", "content": "word\n"})
    one = whole([*script, reply(word, DONE)])
    ended = one.run()
    assert ended.code == 0, ended.err
    assert ended.task("T1")["steps"] == 3
    assert len(one.model.chats) == len(script) + 1


@dataclass(frozen=True)
class Case:
    """A fault for ever, what its task ends as, and what a person reads."""

    play: Play
    status: str
    says: str


MOST = 21
"""So many requests of one task: three steps without progress, each with all that is tried again."""

BROKEN = ScriptedReply("x", (ScriptedCall("write_file", '{"path": "T'),))
CASES = {
    "T1": Case(wrong_key(), "needs-human", "refused the key in SCRIPTED_KEY.*set a valid one"),
    "T2": Case(HttpError(402), "needs-human", "no credit left; add some, or name another model"),
    "T3": Case(HttpError(404), "needs-human", "is not there.*correct its name"),
    "T4": Case(overflow(), "stuck", "shorter prompt, or its tier a model with a larger"),
    "T5": Case(BROKEN, "stuck", "could not be used"),
    "T6": Case(NoChoices(), "stuck", "could not be used|empty"),
    "T7": Case(ScriptedReply(refusal="I will not."), "stuck", "withheld|I will not"),
    "T8": Case(ScriptedReply("I would rather talk."), "stuck", "rather talk"),
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
    assert max(asked.count(task) for task in CASES) <= MOST


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
