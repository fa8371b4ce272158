"""What recent history left to be done."""

import pytest

from loopctl.sources.mining import (
    Added,
    Commit,
    Finding,
    Trace,
    added_lines,
    of_lines,
    of_messages,
    trace_of,
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
    kept = Added("c2", "a.py", "    # TODO one")
    lines = [kept, Added("c1", "a.py", "# TODO one"), Added("c1", "a.py", "# TODO gone")]
    found = of_lines(lines, frozenset({("a.py", "# TODO one")}))
    assert found == (Finding(Trace.MARKER, "c2", "a.py", "# TODO one"),)


def test_a_revert_counts_until_its_change_comes_again() -> None:
    change = Commit("a" * 40, "Add cache")
    revert = Commit("b" * 40, f'Revert "Add cache"\n\nThis reverts commit {"a" * 40}.')
    assert of_messages([revert, change]) == (Finding(Trace.REVERTED, "b" * 40, "", "Add cache"),)
    assert of_messages([Commit("c" * 40, "Add cache"), revert, change]) == ()


def test_a_reverted_revert_is_settled() -> None:
    revert = Commit("b" * 40, f'Revert "Add cache"\n\nThis reverts commit {"a" * 40}.')
    again = Commit("c" * 40, f'Reapply "Add cache"\n\nThis reverts commit {"b" * 40}.')
    assert of_messages([again, revert]) == ()


def test_a_patch_gives_the_lines_that_it_adds_whatever_they_look_like() -> None:
    patch = (
        "diff --git a.py a.py\n--- a.py\n+++ a.py\n@@ -1 +1,2 @@\n--- x\n+++ b/x\n+two\n"
        "diff --git gone gone\n--- gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        'diff --git "\\303" "\\303"\n--- /dev/null\n+++ "\\303"\n@@ -0,0 +1 @@\n+quoted\n'
        "diff --git with space with space\n--- /dev/null\n+++ with space\t\n@@ -0,0 +1 @@\n+three\n"
    )
    assert added_lines("c", patch) == (
        Added("c", "a.py", "++ b/x"),
        Added("c", "a.py", "two"),
        Added("c", "with space", "three"),
    )
