"""What recent history left to be done."""

import pytest

from loopctl.sources.mining import (
    Changed,
    Commit,
    Finding,
    Line,
    Trace,
    changed_lines,
    of_lines,
    of_messages,
    trace_of,
    with_line,
)


@pytest.mark.parametrize(
    ("line", "trace"),
    [
        ("x = 1  # TODO: later", Trace.MARKER),
        ("// FIXME overflow", Trace.MARKER),
        ("todo = 1", None),
        ("name = 'TODO'", None),
        ("@pytest.mark.xfail(reason='x')", Trace.SKIPPED),
        ("    it.skip('adds', () => {", Trace.SKIPPED),
        ("    t.Skip()", Trace.SKIPPED),
        ("x = y  # type: ignore[arg-type]", Trace.SUPPRESSED),
        ("import x  # noqa: F401", Trace.SUPPRESSED),
        ("// @ts-ignore", Trace.SUPPRESSED),
        ("unit.Skipper(1)", None),
    ],
)
def test_an_added_line_is_told_for_what_it_is(line: str, trace: Trace | None) -> None:
    assert trace_of(line) is trace


def test_a_line_that_the_head_no_longer_has_is_settled_and_others_count_once() -> None:
    kept = Line("c2", "a.py", "    # TODO one")
    lines = [kept, Line("c1", "a.py", "# TODO one"), Line("c1", "a.py", "# TODO gone")]
    found = of_lines(lines, {"a.py": ["# TODO one", "# TODO one more"]})
    assert found == (Finding(Trace.MARKER, "c2", "a.py", "# TODO one", 2),)


def test_a_revert_counts_until_its_change_comes_again() -> None:
    change = Commit("a" * 40, "Add cache")
    revert = Commit("b" * 40, f'Revert "Add cache"\n\nThis reverts commit {"a" * 40}.')
    assert of_messages([revert, change]) == (
        Finding(Trace.REVERTED, "b" * 40, "", "", 0, "Add cache"),
    )
    assert of_messages([Commit("c" * 40, "Add cache"), revert, change]) == ()


def test_a_reverted_revert_is_settled() -> None:
    revert = Commit("b" * 40, f'Revert "Add cache"\n\nThis reverts commit {"a" * 40}.')
    again = Commit("c" * 40, f'Reapply "Add cache"\n\nThis reverts commit {"b" * 40}.')
    assert of_messages([again, revert]) == ()


def test_a_patch_gives_the_lines_that_it_changes_whatever_they_look_like() -> None:
    patch = (
        "diff --git a.py a.py\n--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n--- x\n+++ b/x\n+two\n"
        "diff --git gone gone\n--- gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        'diff --git "\\303" "\\303"\n--- /dev/null\n+++ "\\303"\n@@ -0,0 +1 @@\n+quoted\n'
        "diff --git with space with space\n--- /dev/null\n+++ with space\t\n@@ -0,0 +1 @@\n+three\n"
    )
    assert changed_lines("c", patch) == Changed(
        removed=(Line("c", "a.py", "-- x"), Line("c", "gone", "one")),
        added=(
            Line("c", "a.py", "++ b/x"),
            Line("c", "a.py", "two"),
            Line("c", "with space", "three"),
        ),
    )


REVERT = Finding(Trace.REVERTED, "c", "", "", 0, "Add cache")


def lines(*texts: str) -> tuple[Line, ...]:
    return tuple(Line("c", "a.py", text) for text in texts)


@pytest.mark.parametrize(
    ("patch", "head", "text", "holders"),
    [
        (Changed(lines("    cache = {}", "  cached = 1 + 1"), ()), [], "cached = 1 + 1", 0),
        (Changed(lines("the longest of all", "  def test_it():"), ()), [], "def test_it():", 0),
        (Changed(lines("is there again", "other"), ()), ["is there again"], "other", 0),
        (Changed((), lines("old way", "older way")), ["old way", "older way"], "older way", 1),
        (Changed(lines("}", ""), lines("{")), ["{"], "", 0),
    ],
)
def test_the_most_telling_line_stands_for_a_revert(
    patch: Changed, head: list[str], text: str, holders: int
) -> None:
    found = with_line(REVERT, patch, {"a.py": head})
    assert (found.text, found.holders, found.subject) == (text, holders, "Add cache")
    assert found.path == ("a.py" if text else "")
