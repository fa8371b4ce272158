import os
import signal
import subprocess
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from loopctl.domain import ExecResult
from loopctl.errors import CancelledError, SandboxError
from loopctl.sandbox import proctree
from loopctl.sandbox.process import run

Shell = Callable[..., ExecResult]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    def started(script: str, **options: object) -> ExecResult:
        chosen = {"timeout_s": 20.0, "merge_stderr": True, **options}
        env = {"PATH": os.environ["PATH"]}
        return run(["sh", "-c", script], cwd=tmp_path, env=env, **chosen)  # type: ignore[arg-type]

    return started


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def pid_in(path: Path) -> int:
    return int(path.read_text())


def test_output_exit_code_and_both_streams_are_told(shell: Shell) -> None:
    merged = shell("echo out; echo err >&2; exit 3")
    assert (merged.returncode, merged.stdout, merged.stderr) == (3, b"out\nerr\n", b"")
    parted = shell("echo out; echo err >&2", merge_stderr=False)
    assert (parted.returncode, parted.stdout, parted.stderr) == (0, b"out\n", b"err\n")


def test_a_signal_is_a_negative_exit_code(shell: Shell) -> None:
    assert shell("kill -KILL $$").returncode == -signal.SIGKILL


def test_a_missing_program_is_127_and_one_that_is_none_is_126(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"]}
    missing = run(["no-such-program"], cwd=tmp_path, env=env, timeout_s=5)
    assert (missing.returncode, missing.stderr) == (127, b"loop: no-such-program: not found\n")
    (tmp_path / "plain").write_text("text")
    for argv in (["./plain"], ["true", "a\0b"], ["true", "x" * 4_000_000]):
        assert run(argv, cwd=tmp_path, env=env, timeout_s=5).returncode == 126


def test_a_folder_of_the_path_that_may_not_be_read_does_not_hide_that_there_is_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    env = {"PATH": f"{tmp_path / 'closed'}:{os.environ['PATH']}"}
    assert run(["no-such-program"], cwd=tmp_path, env=env, timeout_s=5).returncode == 127
    (tmp_path / "closed").chmod(0o700)


def test_a_folder_that_is_gone_is_an_error_and_not_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="is gone"):
        run(["true"], cwd=tmp_path / "none", env={}, timeout_s=5)


def test_there_is_no_terminal_and_nothing_to_read(shell: Shell) -> None:
    result = shell("test -t 0 || echo no tty; cat; (exec < /dev/tty) 2>/dev/null || echo none")
    assert result.stdout == b"no tty\nnone\n"


def test_standard_input_may_be_bytes_or_a_file(shell: Shell, tmp_path: Path) -> None:
    large = b"x" * 3_000_000
    assert shell("cat", stdin=large).stdout == large
    assert shell("exit 0", stdin=large).returncode == 0
    (tmp_path / "in").write_bytes(b"from a file")
    assert shell("cat", stdin=tmp_path / "in").stdout == b"from a file"


def test_a_hang_ends_at_the_time_limit(shell: Shell) -> None:
    result = shell("echo begun; exec sleep 1000", timeout_s=0.3)
    assert (result.timed_out, result.returncode) == (True, -signal.SIGTERM)
    assert result.stdout == b"begun\n"


def test_a_process_that_ignores_sigterm_is_killed(shell: Shell) -> None:
    result = shell("trap '' TERM; sleep 1000; sleep 1000", timeout_s=0.2)
    assert (result.timed_out, result.returncode) == (True, -signal.SIGKILL)


def test_a_hundred_megabytes_of_binary_output_do_not_grow_the_memory(shell: Shell) -> None:
    tracemalloc.start()
    result = shell("head -c 104857600 /dev/zero", max_output_bytes=1 << 20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (result.returncode, result.truncated) == (0, True)
    assert b"103809024 bytes of output left out" in result.stdout
    assert peak < 16 << 20


def test_a_background_process_that_holds_the_output_open_is_not_waited_for(
    shell: Shell, tmp_path: Path
) -> None:
    result = shell("sleep 1000 & echo $! > pid; echo done", timeout_s=60)
    assert (result.stdout, result.timed_out) == (b"done\n", False)
    assert is_gone(pid_in(tmp_path / "pid"))


@pytest.mark.skipif(not proctree.has_proc(), reason="without /proc only the group is ended")
@pytest.mark.parametrize(
    "daemon",
    [
        "setsid sh -c 'echo $$ > pid; exec sleep 1000' >/dev/null 2>&1 &",
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ > pid; exec sleep 1000\" & exit' &",
        "env -i setsid /bin/sh -c 'echo $$ > pid; exec /bin/sleep 1000' >/dev/null 2>&1 &",
        "env -i setsid sh -c 'setsid sh -c \"echo \\$\\$ > pid; exec sleep 1000\" & exit' &",
        "nohup sh -c 'trap \"\" TERM HUP; echo $$ > pid; while :; do sleep 1; done' >/dev/null &",
    ],
)
def test_a_daemon_is_gone_at_the_end(shell: Shell, tmp_path: Path, daemon: str) -> None:
    waits = "until test -s pid; do sleep 0.01; done"
    assert shell(f"{daemon} {waits}").returncode == 0
    assert is_gone(pid_in(tmp_path / "pid"))


@pytest.mark.skipif(not proctree.has_proc(), reason="without /proc only the group is ended")
def test_the_end_of_one_command_leaves_the_daemons_of_another_alone(
    shell: Shell, tmp_path: Path
) -> None:
    daemon = "env -i setsid sh -c 'echo $$ > other; exec sleep 1000' >/dev/null 2>&1 &"
    results: list[ExecResult] = []
    script = f"{daemon} until test -s go; do sleep 0.01; done"
    first = threading.Thread(target=lambda: results.append(shell(script)))
    first.start()
    shell("until test -s other; do sleep 0.01; done; setsid sleep 1000 >/dev/null 2>&1 &")
    other = pid_in(tmp_path / "other")
    assert not is_gone(other)
    (tmp_path / "go").write_text("now")
    first.join(timeout=20)
    assert results[0].returncode == 0
    assert is_gone(other)


def test_a_child_that_others_have_started_is_not_taken_for_an_orphan(shell: Shell) -> None:
    bystander = subprocess.Popen(["sleep", "1000"])
    try:
        shell("setsid sleep 1000 >/dev/null 2>&1 &")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def zombies() -> set[int]:
    entries = proctree._entries()
    return {e.pid for e in entries if e.ppid == os.getpid() and e.state == "Z"}


def test_no_zombie_is_left(shell: Shell) -> None:
    before = zombies()
    for _ in range(5):
        shell("setsid sh -c 'sleep 0.01 & sleep 0.01' & exit")
    assert zombies() <= before


def test_cancelling_ends_the_children_and_raises(shell: Shell, tmp_path: Path) -> None:
    cancel = threading.Event()
    script = "sleep 1000 & echo $! > pid; wait"

    def stop() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            cancel.wait(0.01)
        cancel.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(CancelledError):
        shell(script, cancel=cancel)
    stopper.join(timeout=10)
    assert is_gone(pid_in(tmp_path / "pid"))
    with pytest.raises(CancelledError):
        shell("touch begun", cancel=cancel)
    assert not (tmp_path / "begun").exists()


@pytest.mark.skipif(not proctree.has_proc(), reason="needs /proc")
def test_what_a_killed_harness_has_left_is_ended_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from loopctl.sandbox.process import run\n"
        "run(['sh', '-c', 'echo $$ > pid; exec sleep 1000'], cwd=Path('.'),"
        " env=dict(os.environ), timeout_s=60)"
    )
    python = [os.fspath(Path(os.sys.executable)), "-c", code]  # type: ignore[attr-defined]
    harness = subprocess.Popen(python, cwd=tmp_path)
    pid_file = tmp_path / "pid"
    try:
        while not pid_file.exists() or not pid_file.read_text():
            assert harness.poll() is None
            threading.Event().wait(0.01)
    finally:
        harness.kill()
        harness.wait()
    stray = pid_in(pid_file)
    assert not is_gone(stray)
    assert proctree.end_strays() >= 1
    for _ in range(500):
        if is_gone(stray):
            break
        threading.Event().wait(0.01)
    assert is_gone(stray)
