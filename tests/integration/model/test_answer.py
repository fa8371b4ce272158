import json
from typing import Any

from loopctl.contextports import Answered, Question, Unanswered
from loopctl.moneyports import Cap, Refused
from loopctl.testing import HttpError, Play, ScriptedCall, ScriptedReply
from loopctl.worker.model.open import ask

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def put(bench: Any, *script: Play, form: bool = True) -> Answered | Unanswered:
    question = Question(
        "judge",
        "run-1",
        "T1",
        "cheap",
        "You judge.",
        "Is it good?",
        SCHEMA if form else None,
        max_output_tokens=33,
    )
    return ask(question, bench.asking(*script))


def says(arguments: Any) -> ScriptedReply:
    return ScriptedReply(calls=(ScriptedCall("answer", arguments),), usage=(10, 1))


def test_plain_question_has_no_tools_and_the_question_s_limit(bench: Any) -> None:
    result = put(bench, ScriptedReply("It is."), form=False)
    assert isinstance(result, Answered)
    assert (result.text, result.usage) == ("It is.", bench.till.spent)
    (body,) = bench.bodies
    assert "tools" not in body
    assert body["max_tokens"] == 33
    assert [m["content"] for m in body["messages"]] == ["You judge.", "Is it good?"]
    assert bench.till.claims[0].purpose == "judge"


def test_form_is_asked_for_by_a_call_that_has_to_be_made(bench: Any) -> None:
    result = put(bench, says({"ok": True}))
    assert isinstance(result, Answered)
    assert json.loads(result.text) == {"ok": True}
    (body,) = bench.bodies
    assert body["tool_choice"] == "required"
    assert body["tools"][0]["function"]["parameters"] == SCHEMA


def test_json_as_plain_text_is_taken_too(bench: Any) -> None:
    bare = put(bench, ScriptedReply('{"ok": false}'))
    fenced = put(bench, ScriptedReply('Here:\n```json\n{"ok": false}\n```\n'))
    assert isinstance(bare, Answered)
    assert isinstance(fenced, Answered)
    assert json.loads(bare.text) == json.loads(fenced.text) == {"ok": False}


def test_what_does_not_fit_is_told_and_asked_for_again(bench: Any) -> None:
    result = put(bench, says('{"ok": tru'), says({"ok": "yes"}), says({"ok": True}))
    assert isinstance(result, Answered)
    assert result.usage.prompt_tokens == 30
    told = [body["messages"][-1] for body in bench.bodies]
    assert "no JSON" in told[1]["content"]
    assert "ok: 'yes' is not of type 'boolean'" in told[2]["content"]
    assert [message["role"] for message in told] == ["user", "tool", "tool"]
    # Nothing that a provider would refuse to read again stands in the past.
    for body in bench.bodies:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_nonsense_again_and_again_has_no_answer(bench: Any) -> None:
    for nonsense in (says('{"ok": NaN}'), says({"no": 1}), ScriptedReply("well"), says("[" * 9999)):
        before = len(bench.bodies)
        result = put(bench, nonsense)
        assert isinstance(result, Unanswered)
        assert result.reason.startswith("the model gave no usable answer, 3 times: ")
        assert result.usage.prompt_tokens > 0
        assert len(bench.bodies) - before == 3


def test_answer_that_was_cut_off_is_asked_for_in_fewer_words(bench: Any) -> None:
    cut = ScriptedReply(calls=(ScriptedCall("answer", '{"why": "beca'),), finish="length")
    assert isinstance(put(bench, cut, says({"ok": True})), Answered)
    assert "cut off: make it shorter" in bench.bodies[1]["messages"][-1]["content"]


def test_refusal_and_silence_are_no_answers(bench: Any) -> None:
    refused = put(bench, ScriptedReply(refusal="I will not."), form=False)
    empty = put(bench, ScriptedReply(), form=False)
    assert isinstance(refused, Unanswered)
    assert isinstance(empty, Unanswered)
    assert "refused to answer" in refused.reason
    assert "nothing in the answer" in empty.reason


def test_no_model_no_answer(bench: Any) -> None:
    result = put(bench, HttpError(401))
    assert isinstance(result, Unanswered)
    assert "SCRIPTED_KEY" in result.reason


def test_a_question_that_no_cap_has_room_for_says_which(bench: Any) -> None:
    bench.till.refused = Refused(Cap.TASK_TOKENS, "would pass it", 1200)
    result = put(bench, says({"ok": True}))
    assert isinstance(result, Unanswered)
    assert (result.refused, bench.bodies) == (bench.till.refused, [])
