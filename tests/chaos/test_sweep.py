"""Kill the process at every crash point in turn, drive on, and compare with an undisturbed run."""

import random
import signal
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

KILLED = -signal.SIGKILL
SAMPLE = 7
"""At so many points the fast suite kills; the slow one at all of them."""
SHARDS = 12
DOUBLES = 120
HOURS = pytest.mark.timeout(4 * 3600)

Attempt = Callable[[str, str, Callable[[], int]], str]


@pytest.fixture(scope="module")
def points(rig: Any, shared: Callable[[str, Callable[[], str]], str]) -> list[str]:
    """Every passage of every crash point, by stage: of the run, and of the answers' drive.

    Where one process has ended and the next one starts at once, nothing has happened between: of
    these two passages one is left out.
    """

    def trace() -> str:
        found: list[str] = []
        for stage, words in (("new", ()), ("asked", ("answer",))):
            rig.back_to(stage)
            file = rig.place / "trace"
            drive(rig, words, f"trace={file}")
            counts: Counter[str] = Counter()
            before = ""
            for name in file.read_text().splitlines():
                counts[name] += 1
                if (before, name) != ("process.after_end", "process.before_start"):
                    found.append(f"{stage} {name}:{counts[name]}")
                before = name
        return "\n".join(found)

    return shared("points", trace).splitlines()


def drive(rig: Any, words: tuple[str, ...], failpoint: str = "") -> int:
    """Run, or answer what is open; return the exit code."""
    code: int = (
        rig.answer(rig.open_decisions(), failpoint) if words else rig.loop(failpoint=failpoint)
    )
    return code


def kill(rig: Any, point: str) -> int:
    stage, failpoint = point.split()
    return drive(rig, ("answer",) if stage == "asked" else (), failpoint)


def sweep(points: list[str], rig: Any, attempt: Attempt) -> list[str]:
    """Return what went otherwise; a run killed before its questions is compared at them."""
    found = (
        attempt(point.split()[0], point.split()[1], lambda point=point: kill(rig, point))  # type: ignore[misc]
        for point in points
    )
    return [wrong for wrong in found if wrong]


def shard_of(point: str) -> int:
    return zlib.crc32(point.encode()) % SHARDS


def test_there_are_crash_points_around_all_that_lasts(points: list[str]) -> None:
    assert len(points) >= 300
    names = {point.split()[1].rpartition(":")[0] for point in points}
    kinds = {name.partition(".")[0] for name in names}
    assert kinds == {
        "audit",
        "branch",
        "capsule",
        "database",
        "events",
        "ledger",
        "library",
        "manifest",
        "next",
        "process",
        "proxy",
        "report",
        "sandbox",
    }
    assert {name.replace("before", "after") for name in names} <= names | {"process.after_start"}


def test_some_kills_change_nothing(points: list[str], rig: Any, attempt: Attempt) -> None:
    chosen = points[5 :: len(points) // SAMPLE]
    # What is in doubt after a kill is the heart of it.
    chosen += ["new proxy.after_effect:1", "asked proxy.before_effect:1"]
    assert sweep(chosen, rig, attempt) == []


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kill_at_every_point_changes_nothing(
    points: list[str], rig: Any, attempt: Attempt, shard: int
) -> None:
    mine = [point for point in points if shard_of(point) == shard]
    assert sweep(mine, rig, attempt) == []


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("seed", range(4))
def test_kill_during_the_recovery_from_a_kill_changes_nothing(
    points: list[str], rig: Any, attempt: Attempt, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a seed, no secret
    wrong: list[str] = []
    doubled = 0

    def kill_twice(first: str, second: str) -> int:
        nonlocal doubled
        if kill(rig, first) != KILLED:
            return 0
        if dice.random() < 0.5:
            rig.end_children()
        is_asked = first.startswith("asked") and rig.open_decisions() and not rig.is_under_way()
        again = ("answer",) if is_asked else ()
        code = drive(rig, again, second)
        doubled += code == KILLED
        return code

    while doubled < DOUBLES / 4:
        first = dice.choice(points)
        name, _, count = dice.choice(points).split()[1].rpartition(":")
        second = f"{name}:{dice.randint(1, 1 + int(count) // 3)}"
        stage, _ = first.split()
        found = attempt(
            stage,
            f"{first}, then {second}",
            lambda pair=(first, second): kill_twice(*pair),  # type: ignore[misc]
        )
        wrong += [found] if found else []
    assert wrong == []
