from typing import Any

import pytest
from mcp.types import CallToolResult

from loopctl.calls import MAX_RESULT_BYTES, ToolResult
from loopctl.sandbox.mcp.results import rendered
from loopctl.sandbox.mcp.texts import Secrets


def result(*content: dict[str, Any], **more: Any) -> CallToolResult:
    return CallToolResult.model_validate({"content": list(content), **more})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def shown(*content: dict[str, Any], **more: Any) -> ToolResult:
    return rendered(result(*content, **more), Secrets([("KEY", "secret-key")]))


def test_texts_are_joined_and_other_parts_are_described_in_a_line() -> None:
    assert shown(
        text("one"),
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png\nx"},
        {"type": "audio", "data": "aGVsbG8h", "mimeType": "audio/wav"},
        {"type": "resource_link", "name": "a file", "uri": "file:///a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "within"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGVsbG8="}},
        text("two"),
    ) == ToolResult(
        "one\n[image, image/png x, 5 bytes]\n[audio, audio/wav, 6 bytes]\n"
        "[link to a resource: a file, file:///a]\n[resource file:///b]\nwithin\n"
        "[resource file:///c, of no given type, 5 bytes]\ntwo"
    )


def test_an_error_stays_one_and_a_secret_does_not_come_back() -> None:
    assert shown(text("no secret-key"), isError=True) == ToolResult("no [KEY]", is_error=True)


@pytest.mark.parametrize(
    ("words", "structure", "content"),
    [
        (None, {"a": 1}, '{"a": 1}'),
        ("see", {"a": "ä"}, 'see\n{"a": "ä"}'),
        ('{ "a": 1 }', {"a": 1}, '{ "a": 1 }'),
        ("5", {"result": 5}, "5"),
        ("five", {"result": "five"}, "five"),
        ("one", {"content": "one"}, "one"),
        ("one", {"content": "one", "size": 3}, 'one\n{"content": "one", "size": 3}'),
        ("five", {"result": "six"}, 'five\n{"result": "six"}'),
    ],
)
def test_structure_is_shown_as_json_unless_a_text_says_the_same(
    words: str | None, structure: object, content: str
) -> None:
    parts = [] if words is None else [text(words)]
    assert shown(*parts, structuredContent=structure).content == content


def test_a_result_is_bounded() -> None:
    content = shown(text("x" * 1_000_000)).content
    assert len(content.encode()) <= MAX_RESULT_BYTES
    assert "bytes left out" in content
