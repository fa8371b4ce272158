"""The set of small flaws is what it says."""

import types

import pytest

from loopctl.testing.tinybugs import BUGS, TinyBug


def _red(bug: TinyBug, module: str) -> int:
    place: dict[str, object] = {}
    exec(module, place)  # noqa: S102 - our own text
    tests: dict[str, object] = {bug.name: place[bug.name]}
    exec(bug.tests.partition("\n")[2], tests)  # noqa: S102 - our own text
    red = 0
    for name, test in tests.items():
        if name.startswith("test_") and isinstance(test, types.FunctionType):
            try:
                test()
            except Exception:  # noqa: BLE001 - a flaw may raise anything
                red += 1
    return red


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_flaw_and_its_wrong_mending_are_red_and_only_the_right_one_is_green(
    bug: TinyBug,
) -> None:
    assert bug.right.count(bug.good) == 1
    assert _red(bug, bug.broken) > 0
    assert _red(bug, bug.miss) > 0
    assert _red(bug, bug.right) == 0
