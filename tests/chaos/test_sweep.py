"""Kill the process at every crash point in turn, drive on, and compare with an undisturbed run."""

import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KILLED = -signal.SIGKILL
SAMPLE = 80
"""In the fast suite every so many-th point is killed at; in the slow one all of them are."""


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory, new_rig: Callable[[Path], Any]) -> list[str]:
    """Every passage of every crash point of a run that ends with a decision, then its answer."""
    folder = tmp_path_factory.mktemp("trace")
    one = new_rig(folder / "project")
    found: list[str] = []
    for number, words in enumerate(((), ("answer", "B", "told"))):
        trace = folder / f"trace{number}"
        one.loop(*words, failpoint=f"trace={trace}")
        counts: dict[str, int] = {}
        for name in trace.read_text().splitlines():
            counts[name] = counts.get(name, 0) + 1
            found.append(f"{number} {name}:{counts[name]}")
    return found


@pytest.fixture
def copies(tmp_path: Path, new_rig: Callable[[Path], Any]) -> Callable[[], Any]:
    """Fresh projects, each removed when the next is asked for."""
    count = iter(range(100_000))
    last: list[Path] = []

    def fresh() -> Any:
        for folder in last:
            shutil.rmtree(folder)
        last[:] = [tmp_path / f"p{next(count)}"]
        return new_rig(last[0])

    return fresh


def kill(one: Any, point: str) -> bool:
    """Drive to the point and be killed there; say whether the point was reached."""
    number, failpoint = point.split(" ")
    if number == "0":
        return bool(one.loop(failpoint=failpoint) == KILLED)
    assert one.loop() == 3
    return bool(one.loop("answer", "B", "told", failpoint=failpoint) == KILLED)


def go_on(one: Any, point: str) -> None:
    if point.startswith("0"):
        assert one.loop() == 3
    else:
        one.finish_answer()


def sweep(points: list[str], copies: Callable[[], Any], asked: Any, undisturbed: Any) -> list[str]:
    """Return what went otherwise; a run killed before its question is compared at its question."""
    wrong: list[str] = []
    for point in points:
        one = copies()
        expected = asked if point.startswith("0") else undisturbed
        try:
            kill(one, point)
            go_on(one, point)
            ended = one.ended()
            if ended != expected:
                wrong.append(f"{point}: {ended} instead of {expected}")
        except AssertionError as error:
            wrong.append(f"{point}: {error}")
    return wrong


def test_some_kills_change_nothing(
    points: list[str], copies: Callable[[], Any], asked: Any, undisturbed: Any
) -> None:
    assert sweep(points[7::SAMPLE], copies, asked, undisturbed) == []


@pytest.mark.slow
def test_kill_at_every_point_changes_nothing(
    points: list[str], copies: Callable[[], Any], asked: Any, undisturbed: Any
) -> None:
    # Where a process starts or has ended is where most of them are; of these every third.
    chosen = [point for n, point in enumerate(points) if n % 3 == 0 or "process" not in point]
    assert len(chosen) >= 300
    assert sweep(chosen, copies, asked, undisturbed) == []


@pytest.mark.slow
def test_kill_during_the_recovery_from_a_kill_changes_nothing(
    points: list[str], copies: Callable[[], Any], asked: Any
) -> None:
    dice = random.Random(20261130)  # noqa: S311 - a seed, no secret
    firsts = [point for point in points if point.startswith("0")]
    wrong: list[str] = []
    doubled = 0
    while doubled < 100:
        first, second = dice.choice(firsts), dice.choice(firsts).split(" ")[1]
        one = copies()
        try:
            if not kill(one, first) or one.loop(failpoint=second) != KILLED:
                continue
            doubled += 1
            assert one.loop() == 3
            if one.ended() != asked:
                wrong.append(f"{first}, then {second}")
        except AssertionError as error:
            wrong.append(f"{first}, then {second}: {error}")
    assert wrong == []


@pytest.mark.slow
def test_kills_at_random_times_change_nothing(copies: Callable[[], Any], asked: Any) -> None:
    dice = random.Random(7)  # noqa: S311 - a seed, no secret
    wrong: list[str] = []
    for number in range(100):
        one = copies()
        process = one.start()
        # A moment by the clock is what is tried here; nothing waits for it to be right.
        delay = dice.uniform(0.1, 2.0)
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < delay:
            time.sleep(0.005)
        process.kill()
        process.communicate(timeout=60)
        try:
            assert one.loop() == 3
            if one.ended() != asked:
                wrong.append(f"{number}: after {delay:.3f} s")
        except AssertionError as error:
            wrong.append(f"{number}: after {delay:.3f} s: {error}")
    assert wrong == []


def test_two_processes_at_once_do_everything_once(
    copies: Callable[[], Any], undisturbed: Any
) -> None:
    one = copies()
    both = [one.start(), one.start()]
    codes = [process.wait(timeout=120) for process in both]
    said = [process.communicate()[1] for process in both]
    assert max(codes) == 3
    for code, words in zip(codes, said, strict=True):
        # The second either found the first at work, or came after it and found nothing to do.
        assert code == 3 or (code == 2 and b"is already driving this repository" in words)
    one.finish_answer()
    assert one.ended() == undisturbed


def test_answer_delivered_twice_is_taken_once(copies: Callable[[], Any], undisturbed: Any) -> None:
    one = copies()
    assert one.loop() == 3
    both = [one.start("answer", "B", "told"), one.start("answer", "B", "told")]
    codes = sorted(process.wait(timeout=120) for process in both)
    for process in both:
        process.communicate()
    assert codes == [0, 2]
    assert one.ended() == undisturbed
