import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wait = Callable[[Callable[[], object], str], None]
Gone = Callable[[int], bool]


def test_background_run_goes_on_alone_and_ends_as_in_the_foreground(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    done = bench.loop("--bg")
    assert (done.returncode, done.stderr) == (0, "")
    [run] = bench.runs()
    log = bench.folder(run["run_id"]) / "log"
    first, second, _ = done.stdout.splitlines()
    pid = int(first.rpartition(" ")[2])
    bench.pids.append(pid)
    assert first == f"run {run['run_id']} goes on in the background, process {pid}"
    assert second == f"log: {log}"
    assert run["status"] == "running"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert os.getsid(pid) == pid
    for number in (0, 1, 2):
        target = Path(f"/proc/{pid}/fd/{number}").readlink()
        assert target == (Path(os.devnull) if number == 0 else log)
    bench.open_gates("A", "B")
    wait(lambda: gone(pid), "the end of the run")
    assert [one["status"] for one in bench.runs()] == ["complete"]
    text = log.read_text()
    assert f"run {run['run_id']} started: 2 tasks in scope" in text
    assert "2 done · exit 0" in text
    assert "\x1b" not in text


TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"
"""Gives a command a terminal of its own, which hangs up when this is killed."""


def test_background_survives_the_end_of_its_terminal(
    bench: Any, tmp_path: Path, wait: Wait, gone: Gone
) -> None:
    told, seen = tmp_path / "told", tmp_path / "shell.pid"
    script = f'echo $$ > {seen}; "{sys.executable}" -m loopctl --bg --json > {told}; read line'
    with subprocess.Popen(
        [sys.executable, "-c", TERMINAL, "sh", "-c", script],
        cwd=bench.root,
        env=bench.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as terminal:
        wait(lambda: told.exists() and told.read_text().endswith("}\n"), "the start of the run")
        pid = json.loads(told.read_text())["pid"]
        bench.pids.append(pid)
        terminal.kill()
        terminal.wait(60)
    wait(lambda: gone(int(seen.read_text())), "the hang-up")
    assert not gone(pid)
    bench.open_gates("A", "B")
    wait(lambda: gone(pid), "the end of the run")
    assert bench.runs()[0]["status"] == "complete"


@pytest.mark.parametrize(
    ("words", "text", "part"),
    [
        ((), "schema = 1\noops = [\n", "tasks/ACTIVE.toml:"),
        ((), 'schema = 1\n[[task]]\nid = "A"\ntitle = "a"\nworker = "graph"\n', "the worker graph"),
        (("--max-loops", "x"), None, "--max-loops"),
        (("T9",), None, "T9"),
    ],
    ids=["broken manifest", "no worker", "bad option", "unknown task"],
)
def test_what_the_foreground_refuses_the_background_refuses(
    bench: Any, words: tuple[str, ...], text: str | None, part: str
) -> None:
    if text is not None:
        (bench.root / "tasks" / "ACTIVE.toml").write_text(text)
    plain, done = bench.loop(*words), bench.loop(*words, "--bg")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", plain.stderr)
    assert part in done.stderr
    assert not (bench.root / ".local" / "runs").exists()


def test_second_run_is_refused_while_one_is_in_the_background(bench: Any) -> None:
    told = bench.background()
    done = bench.loop("--bg")
    assert done.returncode == 2
    assert f"process {told['pid']} is already driving" in done.stderr


def test_watch_shows_a_run_to_its_end_and_ends_with_its_code(bench: Any, wait: Wait) -> None:
    bench.manifest("A")
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    watching = bench.start("watch", "--json")
    line = watching.stderr.readline()
    assert f"run {told['run_id']} started" in line
    bench.open_gates("A")
    out, err = watching.communicate(timeout=60)
    document = json.loads(out)
    assert (watching.returncode, document["exit_code"], document["status"]) == (0, 0, "complete")
    assert "A landed as" in err
    assert f"run {told['run_id']} ended: complete, exit 0" in err
    assert "\x1b" not in err


def test_watch_of_a_run_that_is_over_ends_with_its_code(bench: Any) -> None:
    path = bench.root / "tasks" / "ACTIVE.toml"
    path.write_text(path.read_text().replace('test -e A.txt"', 'false"'))
    bench.open_gates("A", "B")
    driven = bench.loop()
    watched = bench.loop("watch")
    assert watched.returncode == driven.returncode == 4
    assert watched.stdout == driven.stdout


def test_ctrl_c_ends_the_watching_and_leaves_the_run_alone(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    told = bench.background()
    watching = bench.start("watch")
    watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert not gone(told["pid"])
    bench.open_gates("A", "B")
    wait(lambda: gone(told["pid"]), "the end of the run")
    assert bench.runs()[0]["status"] == "complete"


def test_watch_says_when_the_process_died_without_ending_the_run(
    bench: Any, wait: Wait, gone: Gone
) -> None:
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    watching = bench.start("watch", told["run_id"])
    watching.stderr.readline()
    os.kill(told["pid"], signal.SIGKILL)
    _, err = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert f"the process that drove run {told['run_id']} is gone; `loop resume` carries on" in err
    # The killed harness's command goes with the next drive.
    bench.open_gates("A", "B")
    assert bench.loop("resume").returncode == 0


def test_watch_begins_where_the_newest_drive_begins(bench: Any, wait: Wait, gone: Gone) -> None:
    told = bench.background()
    wait(lambda: bench.has_begun("A"), "the first step")
    bench.loop("pause")
    bench.open_gates("A")
    wait(lambda: gone(told["pid"]), "the pause")
    bench.background("resume")
    bench.open_gates("B")
    watched = bench.loop("watch")
    assert watched.returncode == 0
    assert "started:" not in watched.stderr
    assert watched.stderr.splitlines()[0].endswith(f"run {told['run_id']} goes on (resume)")
    assert "2 done · exit 0" in watched.stdout
