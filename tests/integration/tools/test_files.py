import os
import stat
from typing import Any

import pytest

from loopctl.calls import MAX_RESULT_BYTES, Effect, Outcome
from loopctl.sandbox.tools.catalogue import WORK_TOOLS
from loopctl.sandbox.tools.tree import MAX_READ_BYTES, MAX_WRITE_BYTES


def test_tools_are_the_named_ones_with_schemas_and_effects(bench: Any) -> None:
    assert tuple(bench.tools) == WORK_TOOLS
    effects = {name: tool.effect for name, tool in bench.tools.items()}
    reads = {"read_file", "search"}
    assert effects == {n: Effect.NONE if n in reads else Effect.INSIDE for n in WORK_TOOLS}
    required = {name: tool.spec.parameters["required"] for name, tool in bench.tools.items()}
    assert required == {
        "bash": ["command"],
        "read_file": ["path"],
        "write_file": ["path", "content"],
        "edit_file": ["path", "old", "new"],
        "search": ["pattern"],
    }


def test_only_what_just_reads_promises_that_nothing_happened(bench: Any) -> None:
    probed = {name: tool.probe({}, "k") for name, tool in bench.tools.items()}
    absent = {name for name, outcome in probed.items() if outcome is Outcome.ABSENT}
    assert absent == {"read_file", "search"}


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {}, "read_file needs the argument path"),
        ("read_file", {"path": 3}, "path is a text, not 3"),
        ("read_file", {"path": "a", "start": "1"}, "start is a whole number, not '1'"),
        ("read_file", {"path": "a", "start": True}, "start is a whole number, not True"),
        ("read_file", {"path": "a", "start": 0}, "start is at least 1, not 0"),
        ("read_file", {"path": "a", "line": 1}, "no argument 'line'; it takes path, start, lines"),
        ("write_file", {"path": "a", "content": "\ud800"}, "content holds half a surrogate pair"),
        ("search", {"pattern": ""}, "not empty"),
        ("search", {"pattern": "a\nb"}, "on one line"),
        ("bash", {"command": " "}, "not empty"),
        ("bash", {"command": "a\0b"}, "without a NUL"),
        ("edit_file", {"path": "src/app.py", "old": "", "new": "x"}, "old is empty"),
        ("edit_file", {"path": "src/app.py", "old": "x", "new": "x"}, "nothing would change"),
    ],
)
def test_arguments_that_do_not_fit_are_the_calls_error(
    bench: Any, name: str, arguments: dict[str, Any], words: str
) -> None:
    assert words in bench.refused(name, **arguments)


def test_null_and_whole_floats_are_taken_as_models_mean_them(bench: Any) -> None:
    said = bench.done("read_file", path="src/app.py", start=2.0, lines=None)
    assert said == "src/app.py, lines 2 to 3 of 3\n     2\ttwo\n     3\tthree"


def test_file_is_read_in_parts_and_each_says_how_to_go_on(bench: Any) -> None:
    (bench.root / "long.txt").write_text("".join(f"{n}\n" for n in range(1, 5001)))
    first = bench.done("read_file", path="long.txt")
    assert first.startswith("long.txt, lines 1 to 2000 of 5000\n     1\t1\n")
    assert first.endswith("  2000\t2000\n(it goes on: start=2001)")
    last = bench.done("read_file", path="long.txt", start=4999, lines=50)
    assert last == "long.txt, lines 4999 to 5000 of 5000\n  4999\t4999\n  5000\t5000"
    assert "has 5000 lines" in bench.refused("read_file", path="long.txt", start=5001)


def test_every_line_of_a_wide_file_can_be_reached_within_the_bound(bench: Any) -> None:
    (bench.root / "wide.txt").write_text("".join(f"{n}{'x' * 9000}\n" for n in range(60)))
    start, seen = 1, 0
    while start:
        said = bench.done("read_file", path="wide.txt", start=start)
        assert len(said.encode()) < MAX_RESULT_BYTES
        assert "more characters]" in said
        seen += said.count("\t")
        _, _, more = said.partition("(it goes on: start=")
        start = int(more.rstrip(")") or 0)
    assert seen == 60


def test_one_line_wider_than_all_that_is_shown_is_still_shown(bench: Any) -> None:
    (bench.root / "one.txt").write_text("é" * 200_000)
    said = bench.done("read_file", path="one.txt")
    assert "no newline at the end" in said
    assert "[198000 more characters]" in said


def test_empty_file_is_said_to_be_empty(bench: Any) -> None:
    (bench.root / "empty").write_text("")
    assert bench.done("read_file", path="empty") == "empty is empty"


def test_binary_file_is_refused_with_its_size(bench: Any) -> None:
    (bench.root / "blob").write_bytes(b"\0" * 1234)
    assert "binary file of 1234 bytes" in bench.refused("read_file", path="blob")
    assert "binary file of 1234 bytes" in bench.refused("edit_file", path="blob", old="a", new="b")


def test_too_large_a_file_is_refused_without_being_read(bench: Any) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert f"has {1 << 40} bytes" in bench.use("read_file", path="huge").content
    (bench.root / "huge").unlink()
    (bench.root / "large").write_bytes(b"x" * (MAX_WRITE_BYTES + 1))
    assert "more than" in bench.refused("edit_file", path="large", old="x", new="y")
    content = "y" * (MAX_WRITE_BYTES + 1)
    assert "more than" in bench.refused("write_file", path="large", content=content)
    assert MAX_READ_BYTES > MAX_WRITE_BYTES


def test_text_of_any_letters_survives_reading_and_editing(bench: Any) -> None:
    text = "grüße 日本語 \u2028 form\x0cfeed 🎈\nend\n"
    bench.done("write_file", path="ünï cödé/名.txt", content=text)
    assert (bench.root / "ünï cödé/名.txt").read_text() == text
    assert bench.done("read_file", path="ünï cödé/名.txt").splitlines()[0].endswith("of 2")
    bench.done("edit_file", path="ünï cödé/名.txt", old="🎈", new="é")
    assert (bench.root / "ünï cödé/名.txt").read_text() == text.replace("🎈", "é")
    assert "名.txt:1:gr" in bench.done("search", pattern="日本.")


def test_bytes_that_are_no_utf_8_are_kept_by_an_edit(bench: Any) -> None:
    (bench.root / "latin").write_bytes(b"caf\xe9 one\ntwo \xff\n")
    bench.done("edit_file", path="latin", old="one", new="three")
    assert (bench.root / "latin").read_bytes() == b"caf\xe9 three\ntwo \xff\n"
    said = bench.refused("edit_file", path="latin", old="two  ", new="x")
    assert said.encode("utf-8")


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444])
def test_mode_of_a_file_is_kept(bench: Any, mode: int) -> None:
    path = bench.root / "src/app.py"
    path.chmod(mode)
    bench.done("edit_file", path="src/app.py", old="two", new="2")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    bench.done("write_file", path="src/app.py", content="x\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_new_file_is_an_ordinary_one_whatever_the_umask(bench: Any) -> None:
    before = os.umask(0o077)
    try:
        said = bench.done("write_file", path="a/b/c.txt", content="x\ny")
    finally:
        os.umask(before)
    assert said == "wrote a/b/c.txt: 2 lines"
    assert stat.S_IMODE((bench.root / "a/b/c.txt").stat().st_mode) == 0o644
    assert [path.name for path in (bench.root / "a/b").iterdir()] == ["c.txt"]


def test_write_that_fails_leaves_the_old_file_and_nothing_else(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    assert "the disk is full" in bench.refused("write_file", path="src/app.py", content="x")


def test_crlf_file_is_edited_in_its_own_line_endings(bench: Any) -> None:
    (bench.root / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\nc\r\n")
    said = bench.done("read_file", path="dos.txt")
    assert said == (
        "dos.txt, lines 1 to 3 of 3 (begins with a byte order mark; lines end with CRLF)\n"
        "     1\ta\n     2\tb\n     3\tc"
    )
    assert bench.done("edit_file", path="dos.txt", old="b\nc\n", new="x\ny\nz\n") == (
        "edited dos.txt: lines 2 to 3 became lines 2 to 4"
    )
    assert (bench.root / "dos.txt").read_bytes() == b"\xef\xbb\xbfa\r\nx\r\ny\r\nz\r\n"
    bench.done("edit_file", path="dos.txt", old="y", new="1\n2")
    assert (bench.root / "dos.txt").read_bytes() == b"\xef\xbb\xbfa\r\nx\r\n1\r\n2\r\nz\r\n"
    bench.done("edit_file", path="dos.txt", old="\n1", new="\n0")
    assert (bench.root / "dos.txt").read_bytes() == b"\xef\xbb\xbfa\r\nx\r\n0\r\n2\r\nz\r\n"


def test_mixed_line_endings_stay_where_nothing_was_edited(bench: Any) -> None:
    (bench.root / "mixed").write_bytes(b"a\r\nb\nc\r\nd\n")
    bench.done("edit_file", path="mixed", old="b\n", new="x\ny\n")
    assert (bench.root / "mixed").read_bytes() == b"a\r\nx\ny\nc\r\nd\n"


def test_file_without_a_newline_at_the_end_stays_so(bench: Any) -> None:
    (bench.root / "bare").write_bytes(b"one\ntwo")
    bench.done("edit_file", path="bare", old="two", new="three")
    assert (bench.root / "bare").read_bytes() == b"one\nthree"
    assert "(no newline at the end)" in bench.done("read_file", path="bare")


def test_edit_that_fits_several_places_says_how_many_and_where(bench: Any) -> None:
    (bench.root / "many").write_text("x = 1\ny = 2\nx = 1\n" * 20)
    said = bench.refused("edit_file", path="many", old="x = 1\n", new="")
    assert "40 times, at lines 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, ..." in said
    (bench.root / "a").write_text("aaa")
    assert "2 times" in bench.refused("edit_file", path="a", old="aa", new="b")
    (bench.root / "blank").write_bytes(b"a\r\n\r\nb\r\n")
    bench.done("edit_file", path="blank", old="a\n\n", new="")
    assert (bench.root / "blank").read_bytes() == b"b\r\n"


def test_edit_that_fits_nowhere_shows_what_differs_in_white_space(bench: Any) -> None:
    (bench.root / "tabs.py").write_text("def f():\n\tif x:\n\t\treturn 1\n")
    said = bench.refused("edit_file", path="tabs.py", old="    if x:\n        return 1\n", new="y")
    assert said == (
        "tabs.py does not hold that text. These lines differ from it in white space alone:\n"
        "     2\t\tif x:\n     3\t\t\treturn 1"
    )


def test_edit_that_fits_nowhere_shows_the_nearest_lines(bench: Any) -> None:
    (bench.root / "near.py").write_text("import os\n\ndef compute_total(items):\n    pass\n")
    said = bench.refused("edit_file", path="near.py", old="def compute_totals(item):", new="y")
    assert "     3\tdef compute_total(items):" in said
    assert "Nothing in it is like that" in bench.refused(
        "edit_file", path="near.py", old="@@@@@@@@", new="y"
    )


def test_pattern_letters_in_an_edit_mean_themselves(bench: Any) -> None:
    (bench.root / "regex").write_text(r"a.*b\1 $x (" + "\n")
    bench.done("edit_file", path="regex", old=r".*b\1 $x (", new=r"\g<0>\n")
    assert (bench.root / "regex").read_text() == r"a\g<0>\n" + "\n"
