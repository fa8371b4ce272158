"""SIGKILL at every write boundary of the ledger: no effect is doubled and none is lost."""

import json
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopctl.clock import SystemClock
from loopctl.store.stores import Stores

POINTS = [
    "ledger.before_intent",
    "ledger.after_intent",
    "proxy.before_effect",
    "proxy.after_effect",
    "ledger.before_done",
    "ledger.after_done",
]
CALLS = 14
PROBED = 5
QUICK = {1, PROBED + 1, CALLS}
"""The first call, the one that can be probed, and the last; the others are for the long suite."""
SINGLE = [
    pytest.param(f"{point}:{count}", marks=() if count in QUICK else pytest.mark.slow)
    for point in POINTS
    for count in range(1, CALLS + 1)
]
IN_DOUBT = {
    "ledger.after_intent",
    "proxy.before_effect",
    "proxy.after_effect",
    "ledger.before_done",
}

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Do the calls of ``(folder, spec)`` cases at once, each in a process of its own."""
    script = Path(__file__).with_name("kills.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as zygote:
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        ask, answer = zygote.stdin, zygote.stdout

        def cases(*some: tuple[Path, str]) -> list[dict[str, Any]]:
            print("\t".join(f"{folder} {spec}" for folder, spec in some), file=ask, flush=True)
            found: list[dict[str, Any]] = json.loads(answer.readline())
            return found

        yield cases
        ask.close()


def effects(folder: Path) -> Counter[str]:
    sink = folder / "sink"
    return Counter(sink.read_text().split()) if sink.exists() else Counter()


def check(folder: Path) -> None:
    """Everything happened, once; the ledger says so; the database is whole."""
    found = effects(folder)
    assert (len(found), set(found.values())) == (CALLS, {1})
    with closing(sqlite3.connect(folder / "loop.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        states = connection.execute("SELECT key, state FROM calls").fetchall()
    assert dict.fromkeys(found, "done") == dict(states)
    with Stores(folder) as stores:
        stores.ledger.purge(SystemClock().now())
    assert list((folder / "owners").iterdir()) == []


def test_undisturbed_run_does_everything_once(run: Run, tmp_path: Path) -> None:
    (first,) = run((tmp_path, "-"))
    assert first == {"code": 0, "came": ["done"] * CALLS}
    check(tmp_path)
    (again,) = run((tmp_path, "-"))
    assert again == {"code": 0, "came": ["replayed"] * CALLS}
    check(tmp_path)


@pytest.mark.parametrize("spec", SINGLE)
def test_killed_run_goes_on_without_doubling_or_losing_an_effect(
    run: Run, tmp_path: Path, spec: str
) -> None:
    point, _, count = spec.rpartition(":")
    hit = int(count) - 1
    (killed,) = run((tmp_path, spec))
    assert killed == {"code": -9, "came": []}
    assert max(effects(tmp_path).values(), default=1) == 1
    (ended,) = run((tmp_path, "-"))
    expected = ["replayed"] * hit + ["done"] * (CALLS - hit)
    happened = point in {"proxy.after_effect", "ledger.before_done"}
    if point == "ledger.after_done" or (hit == PROBED and happened):
        expected[hit] = "replayed"
    elif point in IN_DOUBT and hit != PROBED:
        # Nobody can know: it is asked about, whether it had happened or not.
        expected[hit] = "asked replayed" if happened else "asked done"
    assert ended == {"code": 0, "came": expected}
    check(tmp_path)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 16))]
)
def test_run_that_is_killed_again_and_again_comes_to_the_same_end(
    run: Run, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - a seeded test
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        for _ in range(dice.randrange(2, 5)):
            run((folder, f"{dice.choice(POINTS)}:{dice.randrange(1, 9)}"))
            assert max(effects(folder).values(), default=1) == 1
        assert run((folder, "-"))[0]["code"] == 0
        check(folder)


def test_two_processes_at_the_same_calls_make_each_once(run: Run, tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        run((folder, "ledger.before_intent:1"))
        one, two = run((folder, "-"), (folder, "-"))
        assert (one["code"], two["code"]) == (0, 0)
        pairs = {tuple(sorted(pair)) for pair in zip(one["came"], two["came"], strict=True)}
        assert pairs == {("done", "replayed")}
        check(folder)


def test_process_that_dies_beside_another_leaves_it_its_calls(run: Run, tmp_path: Path) -> None:
    for number, point in enumerate(POINTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        run((folder, "ledger.before_intent:1"))
        dead, alive = run((folder, f"{point}:3"), (folder, "-"))
        assert alive["code"] == 0
        assert dead["code"] in {0, -9}
        check(folder)
