"""Kills at moments that nobody chose, and several processes at the same run."""

import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

KILLED = -signal.SIGKILL
HOURS = pytest.mark.timeout(4 * 3600)
TIMES = 100
ROUNDS = 10

Attempt = Callable[[str, str, Callable[[], int]], str]


@pytest.mark.slow
@HOURS
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_random_times_change_nothing(rig: Any, attempt: Attempt, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a seed, no secret
    rig.back_to("new")
    began = time.monotonic()
    rig.start().communicate(timeout=300)
    whole_s = time.monotonic() - began

    def kill(delay_s: float, *, takes_children: bool) -> int:
        process = rig.start()
        # A moment by the clock is what is tried here; nothing waits for it to be right.
        ends = time.monotonic() + delay_s
        while process.poll() is None and time.monotonic() < ends:
            time.sleep(0.002)
        process.kill()
        process.communicate(timeout=60)
        if takes_children:
            rig.end_children()
        return int(process.returncode)

    wrong = []
    for _ in range(TIMES // 4):
        delay_s, group = dice.uniform(0.3, 1.0) * whole_s, dice.random() < 0.5
        found = attempt(
            "new",
            f"after {delay_s:.3f} s{', children too' * group}",
            lambda delay_s=delay_s, group=group: kill(delay_s, takes_children=group),  # type: ignore[misc]
        )
        wrong += [found] if found else []
    assert wrong == []


def both(rig: Any, *words: str) -> list[tuple[int, str]]:
    """Start the same command twice at once; return exit codes and words."""
    processes = [rig.start(*words), rig.start(*words)]
    said = [process.communicate(timeout=180)[1].decode() for process in processes]
    return [(process.returncode, words) for process, words in zip(processes, said, strict=True)]


@pytest.mark.parametrize(
    "_round", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, ROUNDS))]
)
def test_two_processes_at_once_do_everything_once(rig: Any, undisturbed: Any, _round: int) -> None:
    rig.back_to("new")
    ended = both(rig)
    # The second either found the first at work, or came after it and found nothing to do.
    assert max(code for code, _ in ended) == 3
    assert all(code == 3 or "is already driving this repository" in said for code, said in ended)
    rig.finish()
    assert rig.ended() == undisturbed


@pytest.mark.parametrize(
    "_round", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, ROUNDS))]
)
def test_answers_delivered_twice_at_once_are_taken_once(
    rig: Any, undisturbed: Any, _round: int
) -> None:
    rig.back_to("asked")
    rig.write_answers(rig.open_decisions())
    ended = both(rig, "answer", "--file", str(rig.answers))
    assert sorted(code for code, _ in ended) == [0, 2]
    assert rig.ended() == undisturbed


@pytest.mark.parametrize(
    "_round", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, ROUNDS))]
)
def test_resume_delivered_twice_after_a_kill_goes_on_once(
    rig: Any, undisturbed: Any, _round: int
) -> None:
    rig.back_to("asked")
    # The approved call has happened, and nobody has written down that it did.
    assert rig.answer(rig.open_decisions(), "proxy.after_effect:1") == KILLED
    ended = both(rig, "resume")
    assert 2 in {code for code, _ in ended} or {code for code, _ in ended} <= {0, 3}
    rig.finish()
    assert rig.ended() == undisturbed


def test_an_answer_that_comes_again_after_the_end_changes_nothing(
    rig: Any, undisturbed: Any
) -> None:
    rig.back_to("asked")
    rig.finish()
    again = rig.start("answer", "--file", str(rig.answers))
    said = again.communicate(timeout=180)[1].decode()
    assert (again.returncode, "was answered already" in said) == (2, True)
    assert rig.ended() == undisturbed
