import os
import subprocess
import sys

import pytest

from loopctl import failpoints


@pytest.mark.parametrize("spec", ["name", "name:", "name:x"])
def test_spec_that_names_no_passage_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="int"):
        failpoints.arm({failpoints.VARIABLE: spec})


def test_nothing_happens_where_no_test_has_asked_for_it() -> None:
    assert failpoints._armed is None
    failpoints.reach("anything")


@pytest.mark.parametrize(("spec", "code", "words"), [("x", 1, "invalid literal"), ("x:1", 0, "")])
def test_command_reads_where_it_has_to_die_when_it_starts(spec: str, code: int, words: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "loopctl", "--help"],
        env={**os.environ, failpoints.VARIABLE: spec},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == code
    assert words in ended.stderr.decode()


LIFE = """
import sys
from loopctl import failpoints
failpoints.arm({failpoints.VARIABLE: sys.argv[1]})
for n in range(4):
    print(n, flush=True)
    failpoints.reach("a")
    failpoints.reach("b")
"""


@pytest.mark.parametrize(
    ("spec", "lines", "code"), [("a:1", 1, -9), ("b:3", 3, -9), ("b:5", 4, 0), ("c:1", 4, 0)]
)
def test_process_dies_at_the_passage_that_is_named(spec: str, lines: int, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIFE, spec], capture_output=True, timeout=60, check=False
    )
    assert (len(ended.stdout.splitlines()), ended.returncode) == (lines, code)
