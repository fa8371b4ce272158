import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loopctl.errors import LeaseHeldError
from loopctl.store import lease

HOLDER = """
import sys
import threading
from pathlib import Path
from loopctl.store import lease
with lease.hold(Path(sys.argv[1])) as held:
    held.name_run("r7")
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_process_is_kept_out_and_told_who_works(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert lease.owner(tmp_path) == (holder.pid, "r7")
        with pytest.raises(LeaseHeldError, match=f"process {holder.pid} .*run r7"):
            lease.hold(tmp_path).__enter__()
        holder.kill()
        holder.wait(timeout=20)
    assert lease.owner(tmp_path) is None
    with lease.hold(tmp_path):
        assert lease.owner(tmp_path) == (os.getpid(), "")


def test_nobody_owns_a_fresh_place(tmp_path: Path) -> None:
    assert lease.owner(tmp_path) is None


def test_unreadable_lease_still_keeps_others_out(tmp_path: Path) -> None:
    with lease.hold(tmp_path):
        (tmp_path / "lease.json").write_text("nonsense")
        assert lease.owner(tmp_path) == (0, "")


def test_a_look_at_the_lease_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "lease.json").touch()
    with (tmp_path / "lease.json").open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        # The look ends while the other waits for it.
        ending = threading.Timer(0.05, fcntl.flock, (look, fcntl.LOCK_UN))
        ending.start()
        with lease.hold(tmp_path):
            assert lease.owner(tmp_path) == (os.getpid(), "")
        ending.join()


def test_whoever_looks_while_the_run_is_named_sees_a_whole_name(tmp_path: Path) -> None:
    names = ["r" * 40, "r"]
    seen = set()
    is_over = threading.Event()
    with lease.hold(tmp_path) as held:
        held.name_run(names[0])

        def look() -> None:
            while not is_over.is_set():
                seen.add(lease.owner(tmp_path))

        looking = threading.Thread(target=look)
        looking.start()
        for _ in range(500):
            for name in names:
                held.name_run(name)
        is_over.set()
        looking.join()
    assert seen <= {(os.getpid(), name) for name in names}
