import re

import pytest

from loopctl.calls import Annotations
from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox.mcp.listing import (
    MAX_DESCRIPTION,
    MAX_NAME,
    MAX_SCHEMA_BYTES,
    ListedTool,
    change,
    named,
    spec,
    tool_name,
)


def listed(name: str = "read", description: str = "", **schema: object) -> ListedTool:
    return ListedTool(name, description, {"type": "object", **schema}, Annotations())


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("read_file", "mcp__files__read_file"),
        ("read-file", "mcp__files__read-file"),
        ("admin.tools/list", "mcp__files__admin_tools_list"),
        ("lesen ä\n", "mcp__files__lesen___"),
    ],
)
def test_a_tool_has_its_servers_name_in_its_own(tool: str, name: str) -> None:
    assert tool_name("files", tool) == name
    assert list(named("files", [listed(tool)])) == [name]


def test_a_name_that_is_too_long_stays_different_from_all_others() -> None:
    names = {tool_name("files", f"{'x' * 100}{end}") for end in "ab"} | {
        tool_name("files", f"{'x' * 99}"),
    }
    assert len(names) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)
    assert {len(name) for name in names} == {MAX_NAME}


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([listed("a.b"), listed("a_b")], "'a.b' and 'a_b', which would both be called"),
        ([listed("a"), listed("a")], "'a' and 'a', which would both be called"),
        ([listed(" \n")], "has no usable name"),
        ([listed("x" * 257)], "has no usable name"),
        ([listed("a", x="y" * MAX_SCHEMA_BYTES)], "a schema of more than 65536 bytes"),
    ],
)
def test_tools_that_cannot_be_told_apart_or_shown_are_refused(
    tools: list[ListedTool], said: str
) -> None:
    with pytest.raises(EnvironmentFaultError, match=said):
        named("files", tools)


def test_tools_come_in_the_order_of_their_names() -> None:
    assert list(named("s", [listed("b"), listed("a")])) == ["mcp__s__a", "mcp__s__b"]


def test_what_a_model_is_told_is_bounded_and_hides_nothing() -> None:
    hidden = "reads\x1b[2K a\u202e file\u200b\U000e0041"
    tool = listed("read", f"{hidden}{'x' * 10_000}", properties={"a": {"description": hidden}})
    told = spec("mcp__s__read", tool)
    seen = "reads\\u{1b}[2K a\\u{202e} file\\u{200b}\\u{e0041}"
    head, text, end = told.description.splitlines()
    assert text.startswith(seen)
    assert len(text) == MAX_DESCRIPTION
    tag = end.removesuffix(" DATA>>>")
    assert head == f"<<<DATA {tag} words of the server"
    assert told.parameters == {"type": "object", "properties": {"a": {"description": seen}}}


def test_a_schema_is_always_one_of_an_object() -> None:
    tool = ListedTool("read", "", {}, Annotations())
    assert spec("mcp__s__read", tool).parameters == {"type": "object"}


def test_what_has_changed_since_the_first_listing_is_named() -> None:
    first = ListedTool("a", "reads", {"type": "object"}, Annotations(read_only=True))
    assert change(first, first) == ""
    assert change(first, None) == "it is not listed any more"
    assert (
        change(first, ListedTool("a", "reads all", {"type": "object"}, first.annotations))
        == "its description changed"
    )
    assert (
        change(first, ListedTool("a", "Reads", {"required": []}, Annotations()))
        == "its description and the schema of its arguments and its annotations changed"
    )
