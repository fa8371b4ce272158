from types import SimpleNamespace
from typing import Any

from loopctl.calls import ToolSpec
from loopctl.worker.model.reply import AskedCall
from loopctl.worker.model.routes import Attempt
from loopctl.worker.model.wire import Manner, Pieces, access, clean, function_tools


def piece(*calls: tuple[int, str | None, str | None, str | None]) -> Any:
    deltas = [
        SimpleNamespace(index=i, id=id_, function=SimpleNamespace(name=name, arguments=text))
        for i, id_, name, text in calls
    ]
    delta = SimpleNamespace(content=None, tool_calls=deltas)
    return SimpleNamespace(delta=delta, finish_reason=None)


def joined(*pieces: Any) -> list[AskedCall]:
    found = Pieces()
    for one in pieces:
        found.add(one)
    return found.calls


def test_arguments_in_pieces_are_joined_by_their_index() -> None:
    calls = joined(
        piece((0, "a", "f", "")),
        piece((1, "b", "g", "")),
        piece((0, None, None, '{"x"'), (1, None, None, "{")),
        piece((1, None, None, "}"), (0, None, None, ": 1}")),
    )
    assert calls == [AskedCall("a", "f", '{"x": 1}'), AskedCall("b", "g", "{}")]


def test_whole_calls_that_share_an_index_are_told_apart_by_their_ids() -> None:
    assert joined(piece((0, "a", "f", "{}")), piece((0, "b", "f", "{}"))) == [
        AskedCall("a", "f", "{}"),
        AskedCall("b", "f", "{}"),
    ]


def test_whole_calls_that_share_an_index_and_have_no_ids_are_told_apart_by_their_names() -> None:
    assert joined(piece((0, "", "f", "{}")), piece((0, "", "f", '{"x": 1}'))) == [
        AskedCall("", "f", "{}"),
        AskedCall("", "f", '{"x": 1}'),
    ]


def test_id_that_is_repeated_in_every_piece_begins_no_new_call() -> None:
    assert joined(piece((0, "a", "f", "{")), piece((0, "a", "f", "}"))) == [
        AskedCall("a", "f", "{}")
    ]


def test_manner_gets_plainer_until_nothing_is_left_to_leave_out() -> None:
    manner: Manner | None = Manner(is_forced=True)
    seen = []
    while manner is not None:
        seen.append((manner.is_streamed, manner.is_forced))
        manner = manner.plainer()
    assert seen == [(True, True), (True, False), (False, False)]


def test_silence_for_a_reason_is_not_empty() -> None:
    assert Pieces(text=" \n", finish="stop").is_empty
    assert not Pieces(finish="length").is_empty
    assert not Pieces(finish="content_filter").is_empty
    assert not Pieces(calls=[AskedCall("", "f", "")]).is_empty


def test_text_that_utf8_cannot_say_is_replaced_everywhere() -> None:
    assert clean({"a\udc80": ["b\udc80", {"c": ("d\udc80", 1, None, True)}]}) == {
        "a?": ["b?", {"c": ["d?", 1, None, True]}]
    }


def test_tools_are_functions() -> None:
    assert function_tools([ToolSpec("t", "d", {"type": "object"})]) == [
        {
            "type": "function",
            "function": {"name": "t", "description": "d", "parameters": {"type": "object"}},
        }
    ]


def test_key_is_read_from_its_variable_and_nothing_else_is_sent() -> None:
    env = {"MINE": " k ", "OPENAI_API_KEY": "o"}
    assert access(Attempt("openai/x", None, "MINE"), env)["api_key"] == "k"
    assert access(Attempt("openai/x", "http://h"), env)["api_key"] == "none"
    assert access(Attempt("openai/x", None, "GONE"), env)["api_key"] == "none"
    # Several variables make one credential: its adapter reads them by itself.
    assert access(Attempt("bedrock/x", names=("AWS_REGION",)), env)["api_key"] is None
