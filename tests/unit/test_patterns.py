import pytest

from loopctl.patterns import CALLS, STEPS, matches_task, only


@pytest.mark.parametrize(
    "pattern", ["mcp:a", "mcp:a:b", "mcp:*:destructive", "bash:git push", "step:*", "area:x"]
)
def test_pattern_of_a_known_kind_is_taken(pattern: str) -> None:
    assert only(*CALLS, *STEPS)(pattern) == pattern


@pytest.mark.parametrize("pattern", ["", "mcp", "mcp:", "mcp::x", "mcp:a:", "bash: ", "x:y", "*"])
def test_pattern_that_would_never_apply_is_a_fault(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"would never apply|no server or no tool"):
        only(*CALLS, *STEPS)(pattern)


def test_pattern_of_a_step_cannot_be_refused_for_ever() -> None:
    with pytest.raises(ValueError, match="begins with none of mcp:, bash: and"):
        only(*CALLS)("step:*")


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        ("step:T440", True),
        ("step:T44?", True),
        ("step:*", True),
        ("step:T4", False),
        ("step:t440", False),
        ("area:import", True),
        ("area:im*", True),
        ("area:export", False),
        ("area:T440", False),
        ("mcp:*:*", False),
        ("bash:*", False),
    ],
)
def test_pattern_means_a_task_by_its_id_or_by_any_of_its_tags(
    pattern: str,
    is_meant: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert matches_task(pattern, "T440", ("csv", "import")) is is_meant


def test_task_without_tags_is_in_no_area() -> None:
    assert not matches_task("area:*", "T440", ())
