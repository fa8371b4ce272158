"""What of a tool's schema is sent."""

from typing import Any

from loopctl.worker.graph.control import SPECS
from loopctl.worker.model.schemas import sent_schema


def test_bounds_that_servers_refuse_are_left_out_wherever_a_schema_stands() -> None:
    text = {"type": "string", "pattern": "x|y", "minLength": 1, "maxLength": 9, "description": "d"}
    sent = {"type": "string", "description": "d"}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (text, sent),
        ({"properties": {"a": text}}, {"properties": {"a": sent}}),
        ({"items": text}, {"items": sent}),
        ({"anyOf": [text, True]}, {"anyOf": [sent, True]}),
        ({"$defs": {"d": {"items": [text]}}}, {"$defs": {"d": {"items": [sent]}}}),
        ({"additionalProperties": text}, {"additionalProperties": sent}),
    ]
    for schema, expected in cases:
        assert sent_schema(schema) == expected


def test_names_and_data_stay_as_they_are() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"pattern": {"type": "string", "enum": ["pattern"]}, "maxLength": True},
        "required": ["pattern"],
        "default": {"pattern": "x"},
        "maxItems": 9,
    }
    assert sent_schema(schema) == schema


def test_no_tool_of_our_own_is_sent_with_them() -> None:
    for spec in SPECS:
        sent = repr(sent_schema(spec.parameters))
        assert "'pattern':" not in sent
        assert "Length" not in sent
        assert sent_schema(spec.parameters)["required"] == spec.parameters["required"]
