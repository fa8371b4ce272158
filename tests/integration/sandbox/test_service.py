import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopctl.errors import EnvironmentFaultError
from loopctl.sandbox import process, proctree, service
from loopctl.sandbox.service import ProcessService

Start = Callable[..., ProcessService]

ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[ProcessService] = []

    def begun(code: str, **env: str) -> ProcessService:
        argv = [sys.executable, "-c", code]
        started.append(ProcessService(argv, cwd=tmp_path, env={"PATH": os.environ["PATH"], **env}))
        return started[-1]

    yield begun
    for one in started:
        one.close()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_lines_go_both_ways_whatever_bytes_they_hold(start: Start) -> None:
    echo = start(ECHO)
    lines = [b"one", b"", b"\xff\x00\xfe", "\u2028".encode(), b"x" * 20_000_000]
    for line in lines:
        echo.send(line)
    assert [echo.receive() for _ in lines] == lines
    assert echo.returncode is None


def test_sending_never_blocks_also_where_nobody_reads(start: Start) -> None:
    deaf = start("import time; time.sleep(1000)")
    for _ in range(50):
        deaf.send(b"x" * 1_000_000)
    deaf.close()
    assert deaf.returncode == -signal.SIGKILL


def test_closing_ends_its_input_first_and_it_may_end_by_itself(start: Start) -> None:
    polite = start("import sys; sys.stdin.read(); sys.exit(5)")
    polite.close()
    assert polite.returncode == 5
    assert polite.receive() is None
    polite.close()


def test_its_end_is_the_end_of_its_lines_and_says_how_it_ended(start: Start) -> None:
    brief = start("import sys; print('last'); print('half', end=''); sys.exit(3)")
    assert brief.receive() == b"last"
    assert brief.receive() is None
    assert brief.receive() is None
    assert brief.returncode == 3
    brief.send(b"to nobody")


def test_a_killed_one_is_told_by_its_signal(start: Start) -> None:
    victim = start(ECHO)
    os.kill(victim.pid, signal.SIGKILL)
    assert victim.receive() is None
    assert victim.returncode == -signal.SIGKILL
    assert is_gone(victim.pid)


def test_only_the_end_of_what_it_says_to_its_standard_error_is_kept(start: Start) -> None:
    loud = start("import sys; sys.stderr.write('x' * 1_000_000 + 'the end')")
    assert loud.receive() is None
    assert loud.tail().endswith("xxthe end")
    assert len(loud.tail()) == service.TAIL_BYTES


def test_a_line_without_end_ends_it(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_LINE_BYTES", 1000)
    endless = start("import sys\nwhile True: sys.stdout.write('x' * 1000)")
    assert endless.receive() is None
    assert endless.returncode is not None


def test_its_environment_is_the_one_given_and_the_tag_alone(start: Start) -> None:
    shown = start("import os; print(*sorted(os.environ))", A_KEY="x")
    names = (shown.receive() or b"").decode().split()
    # Python adds LC_CTYPE where the locale says nothing.
    assert set(names) - {"LC_CTYPE"} == {"PATH", "A_KEY"} | (
        {proctree.TAG} if proctree.has_proc() else set()
    )


def test_it_has_no_terminal_and_a_group_of_its_own(start: Start) -> None:
    shown = start("import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())")
    assert shown.receive() == b"True"


def test_what_cannot_be_started_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFaultError, match="no-such-program could not be started"):
        ProcessService(["no-such-program"], cwd=tmp_path, env={"PATH": "/nowhere"})


CHILDREN = """
import os, subprocess, sys
near = subprocess.Popen(["sleep", "1000"])
far = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(near.pid, far.pid, flush=True)
{end}
"""


@pytest.mark.skipif(not proctree.has_proc(), reason="without /proc only the group is ended")
@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_its_children_are_gone_when_it_ends_by_itself(start: Start, end: str) -> None:
    parent = start(CHILDREN.format(end=end))
    pids = [int(word) for word in (parent.receive() or b"").split()]
    assert parent.receive() is None
    assert [is_gone(pid) for pid in pids] == [True, True]


@pytest.mark.skipif(not proctree.has_proc(), reason="without /proc only the group is ended")
def test_its_children_are_gone_when_it_is_closed(start: Start) -> None:
    parent = start(CHILDREN.format(end="sys.stdin.read()"))
    pids = [int(word) for word in (parent.receive() or b"").split()]
    parent.close()
    assert [is_gone(pid) for pid in pids] == [True, True]


@pytest.mark.skipif(not proctree.has_proc(), reason="needs /proc")
def test_the_daemons_of_commands_are_found_while_it_lives(start: Start, tmp_path: Path) -> None:
    echo = start(ECHO)
    script = (
        "env -i setsid /bin/sh -c 'echo $$ > pid; exec /bin/sleep 1000' >/dev/null 2>&1 &"
        "until test -s pid; do sleep 0.01; done"
    )
    env = {"PATH": os.environ["PATH"]}
    process.run(["sh", "-c", script], cwd=tmp_path, env=env, timeout_s=20)
    assert is_gone(int((tmp_path / "pid").read_text()))
    echo.send(b"still here")
    assert echo.receive() == b"still here"


def test_closing_wakes_the_thread_that_waits_for_a_line(start: Start) -> None:
    echo = start(ECHO)
    heard: list[bytes | None] = []
    listener = threading.Thread(target=lambda: heard.append(echo.receive()))
    listener.start()
    echo.close()
    listener.join(timeout=20)
    assert heard == [None]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing tells the end of a process")
def test_it_is_gone_when_the_harness_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from loopctl.sandbox.service import ProcessService\n"
        f"child = ProcessService([sys.executable, '-c', {ECHO!r}], cwd=Path('.'), env={{}})\n"
        "child.send(b'up'); child.receive(); print(child.pid, flush=True); sys.stdin.read()"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert harness.stdin is not None
    assert harness.stdout is not None
    with harness.stdin, harness.stdout:
        pid = int(harness.stdout.readline())
        pidfd = os.pidfd_open(pid)
        harness.kill()
        harness.wait()
        with os.fdopen(pidfd) as end:
            # It is readable when the process has ended.
            assert select.select([end], [], [], 30)[0]
