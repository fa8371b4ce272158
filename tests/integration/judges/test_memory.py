"""What a check says may be as long as it likes: the harness stays small."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from loopctl.sandbox import process

DRIVE = """
import sys
from pathlib import Path
from loopctl.clock import SystemClock
from loopctl.domain import Task, TaskId
from loopctl.judges.gate import code_gate
from loopctl.records import Candidate
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import GateSettings

class Forgetful:
    def get(self, *key): return None
    def put(self, *key): pass

root, kind, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
env = {"PATH": sys.argv[4], "HOME": str(root)}
repository = OwnedRepository(root, root / ".local", branch="loop/integration", env=env)
repository.sync()
head = repository.head()
sandbox = repository.open_sandbox("T1", head)
(sandbox.workdir / "new").write_text("x")
tree = sandbox.snapshot()
sandbox.close()
settings = GateSettings(typecheck=command if kind == "typecheck" else "off", timeout_s=60)
setup = command if kind == "setup" else ""
gate = code_gate(repository, Forgetful(), settings, clock=SystemClock(), setup_cmd=setup)
task = Task(TaskId("T1"), "title", verify_cmd=command if kind == "verify" else "true")
last = gate.judge(Candidate(task, "main", head, tree, head)).checks[-1]
assert len(last.tail) + len(last.reason) < 20_000
peak = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print("peak", int(peak[0].split()[1]) // 1024, last.check.value, last.verdict.value)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peak is told here")
@pytest.mark.parametrize(
    ("kind", "size", "verdict"),
    [
        ("verify", 100_000_000, "verify fail"),
        ("setup", 100_000_000, "verify unknown"),
        ("typecheck", 100_000_000, "typecheck unknown"),
        ("typecheck", 10_000_000, "verify pass"),
    ],
)
def test_an_output_of_zero_bytes_does_not_grow_the_memory(
    bench: Any, tmp_path: Path, kind: str, size: int, verdict: str
) -> None:
    bench.start({"a": "x"})
    done = process.run(
        [
            *(sys.executable, "-c", DRIVE, str(bench.root), kind),
            *(f"head -c {size} /dev/zero; exit 1", os.environ["PATH"]),
        ],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        timeout_s=60,
    )
    assert done.returncode == 0, done.stderr
    word, peak, *rest = done.stdout.decode().split()
    assert (word, " ".join(rest)) == ("peak", verdict)
    assert int(peak) < 200
