import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from loopctl.domain import ExecResult
from loopctl.errors import SandboxError
from loopctl.sandbox import lasting
from loopctl.sandbox.process import run

ENV = {"PATH": os.environ["PATH"]}


def begin(cwd: Path, *argv: str) -> lasting.LastingProcess:
    started = lasting.begin(argv, cwd=cwd, env=ENV)
    assert isinstance(started, lasting.LastingProcess)
    return started


def said(process: lasting.LastingProcess) -> bytes:
    select.select([process.stdout], [], [], 60)
    return os.read(process.stdout, 100)


def test_a_process_goes_on_until_it_is_ended_by_the_end_of_its_input(tmp_path: Path) -> None:
    process = begin(tmp_path, "sh", "-c", "read line; echo $line; echo words >&2; cat; exit 3")
    os.write(process.stdin, b"hello\n")
    assert said(process) == b"hello\n"
    assert (process.end(), process.was_killed) == (3, False)
    assert process.last_words() == "words\n"
    assert process.end() == 3


def test_the_end_of_a_process_is_not_kept_up_by_what_it_says(tmp_path: Path) -> None:
    process = begin(tmp_path, "sh", "-c", "cat; yes words | head -c 3000000 >&2; exit 4")
    assert process.end() == 4
    assert "bytes of output left out" in process.last_words()
    assert len(process.last_words()) < 10_000


def test_a_process_that_goes_on_all_the_same_is_killed_with_its_children(tmp_path: Path) -> None:
    script = "trap '' TERM; setsid sleep 600 & echo $!; while :; do sleep 600; done"
    process = begin(tmp_path, "sh", "-c", script)
    child = int(said(process))
    assert process.end() < 0
    assert process.was_killed
    for pid in (child, process.pid):
        assert not Path(f"/proc/{pid}").exists()


def test_a_daemon_of_a_command_is_known_though_another_process_goes_on(tmp_path: Path) -> None:
    process = begin(tmp_path, "cat")
    os.mkfifo(tmp_path / "fifo")
    daemon = "echo $$ > pid; echo > fifo; exec sleep 600"
    command = f"env -i setsid sh -c '{daemon}' > out 2>&1 & cat fifo"
    done = run(["sh", "-c", command], cwd=tmp_path, env=ENV, timeout_s=60)
    assert done.returncode == 0
    assert not Path(f"/proc/{int((tmp_path / 'pid').read_text())}").exists()
    assert Path(f"/proc/{process.pid}").exists()
    assert process.end() == 0


def test_a_program_or_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    missing = lasting.begin(["no-such-program-here"], cwd=tmp_path, env=ENV)
    assert isinstance(missing, ExecResult)
    assert missing.returncode == 127
    with pytest.raises(SandboxError, match="is gone"):
        lasting.begin(["true"], cwd=tmp_path / "gone", env=ENV)


KILLING = """
import os, sys
from pathlib import Path
from loopctl.sandbox import lasting, process
started = lasting.begin(["sleep", "600"], cwd=Path(), env={"PATH": os.environ["PATH"]})
print(started.pid, flush=True)
process.kill_all()
os._exit(0)
"""


def test_a_harness_that_ends_at_once_takes_it_along(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLING], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
