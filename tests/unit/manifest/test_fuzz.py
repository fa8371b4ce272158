from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopctl.domain import TaskId, TaskStatus
from loopctl.errors import Fault, ManifestError
from loopctl.manifest.toml import TomlManifest

SEED = b"""schema = 1
[goal]
text = "g"
done_when = [{ check = "true" }, { criterion = "c" }]
[defaults]
model = "cheap"
budget = { usd = 1.0 }
[[task]]
id = "T1"
title = "t"
status = 'todo'
area = ["a"]
options = [{ name = "x", command = "y" }]
[task.budget]
tokens = 1
[[task]]
id = "T2"
title = \"\"\"t\"\"\"
deps = ["T1"]
"""
PIECES = st.sampled_from(
    [
        b"",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"'",
        b"=",
        b"\n",
        b"#",
        b",",
        b".",
        b"\\",
        b"\x00",
        b"\xff",
        b"task",
        b"id",
        b"[[task]]",
        b"status",
        b"1e999",
        b"nan",
        b"-1",
        b"true",
        b'"T1"',
        b"[]",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = SEED
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 8))
        content = content[:at] + draw(PIECES) + content[at + length :]
    return content


def faults(manifest: TomlManifest) -> tuple[Fault, ...]:
    try:
        manifest.load()
    except ManifestError as error:
        return error.faults
    return ()


KEYS = ["id", "title", "status", "kind", "deps", "options", "budget", "command", "worker", "nope"]
VALUES = ["1", "-1", "nan", "true", '""', '"T1"', "[]", "[1]", "[[]]", "{}", "[{}]", "{ a.b = 1 }"]


@st.composite
def wrongly_typed(draw: st.DrawFn) -> bytes:
    def table(head: str) -> str:
        keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
        lines = [f"{key} = {draw(st.sampled_from(VALUES))}" for key in keys]
        return "\n".join([head, *lines, ""])

    heads = draw(st.lists(st.sampled_from(["[[task]]"]), max_size=3))
    top = draw(st.sampled_from(["", "schema = 1\n", "goal = 1\n", "goal = { done_when = [1] }\n"]))
    return (top + table("[defaults]") + "".join(map(table, heads))).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.one_of(st.binary(max_size=40), mutated(), wrongly_typed()))
def test_whatever_the_bytes_only_typed_faults_come_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ACTIVE.toml"
    path.write_bytes(content)
    manifest = TomlManifest(path, "m")
    found = faults(manifest)
    lines = [fault.line for fault in found]
    assert lines == sorted(lines)
    assert all(str(fault).isprintable() for fault in found)
    assert all(0 <= line <= content.count(b"\n") + 1 for line in lines)
    if manifest.write_status(TaskId("T1"), TaskStatus.STUCK):
        assert b"stuck" in path.read_bytes()
    else:
        assert path.read_bytes() == content
        assert manifest.refusal


def test_tables_nested_beyond_any_depth_are_a_fault_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(f"[[task]]\nid = 'T1'\ntitle{'.a' * 3000} = 1\n")
    manifest = TomlManifest(path, "m")
    with pytest.raises(ManifestError, match="title: a table is no text"):
        manifest.load()
    manifest.write_status(TaskId("T1"), TaskStatus.DONE)
