"""What recent history left to be done."""

import pytest

from loopctl.sources.mining import Added, Commit, Finding, Trace, of_lines, of_messages, trace_of


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
