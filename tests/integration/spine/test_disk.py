"""A disk that is full or read-only: said in one message, with every byte where it was."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

MB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here; the limit on file sizes is tested instead")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave no byte free."""
    with contextlib.suppress(OSError), place.open("wb", buffering=0) as file:
        for size in (MB, 4096, 64, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass
    return place


def test_a_worker_that_fills_the_disk_is_told_and_its_files_come_back(
    make: Callable[..., Any], small_disk: Path
) -> None:
    project = make(small_disk / "project")
    command = "echo half > half; head -c 20000000 /dev/urandom > big; rm -f big2"
    project.manifest(project.task("T1", command))
    project.commit()
    before = project.picture()
    done = project.finish(project.start())
    assert done.code in {2, 3}, done
    assert "the disk is full" in done.out + done.err
    assert "Traceback" not in done.err
    assert "internal fault" not in done.err
    now = project.picture()
    assert {name for name in before if before[name] != now.get(name)} == set()
    [left] = (project.root / ".local" / "worktrees").iterdir()
    assert (left / "half").read_text() == "half\n"
    # Some space is freed: what was made is kept, and the run goes on.
    (left / "big").unlink()
    project.manifest(project.task("T1", "echo made > made"))
    done = project.loop("T1")
    assert done.code == 0, done.err
    assert project.kept_file("half") == ["half"]
    assert project.landed() == ["T1"]


def test_a_disk_that_is_full_from_the_start_is_one_message(
    make: Callable[..., Any], small_disk: Path
) -> None:
    project = make(small_disk / "project")
    filler = fill(small_disk / "filler")
    before = project.picture()
    done = project.finish(project.start("--json"))
    assert done.code == 2
    assert "the disk is full" in json.loads(done.out)["error"]["message"]
    assert "the disk is full" in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert project.picture() == before
    filler.unlink()
    assert project.loop().code == 0
    assert project.landed() == ["T1"]


def test_a_disk_that_fills_up_during_a_run_ends_it_with_one_message_and_the_next_goes_on(
    make: Callable[..., Any], small_disk: Path
) -> None:
    project = make(small_disk / "project")
    place = small_disk / "filler"
    filling = f"echo half > half; dd if=/dev/zero of={place} bs=4096 2>/dev/null; true"
    project.manifest(project.task("T0", "echo 0 > zero"), project.task("T1", filling, deps=["T0"]))
    project.commit()
    before = project.picture()
    done = project.finish(project.start())
    assert done.code in {2, 3}, done
    assert "the disk is full" in done.out + done.err
    assert "Traceback" not in done.err
    assert "internal fault" not in done.err
    now = project.picture()
    assert {name for name in before if before[name] != now.get(name)} == set()
    assert project.landed() == ["T0"]
    place.unlink()
    project.manifest(
        project.task("T0", "echo 0 > zero", status=project.status("T0")),
        project.task("T1", "echo made > made", deps=["T0"], status=project.status("T1")),
    )
    done = project.loop("T1")
    assert done.code == 0, done.err
    assert project.landed() == ["T0", "T1"]
    assert "half" in project.kept_file("half")


_LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
sys.argv = ["loop", *sys.argv[1:]]
from loopctl.__main__ import main
main()
"""


def test_a_limit_on_the_size_of_files_is_told_and_nothing_is_lost(project: Any) -> None:
    project.manifest(project.task("T1", "head -c 500000 /dev/urandom > big; echo half > half"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 600_000
    assert signal.getsignal(signal.SIGXFSZ) in {signal.SIG_IGN, signal.SIG_DFL}
    before = project.picture()
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in {0, 2, 3, 4}
    assert b"Traceback" not in done.stderr
    assert b"internal fault" not in done.stderr
    project.check(before)


@pytest.fixture
def read_only(project: Any) -> Iterator[Callable[[Path], None]]:
    """Make a folder read-only, for root as well."""
    mounted: list[Path] = []

    def make_it(place: Path) -> None:
        if os.getuid() != 0:
            place.chmod(0o500)
            return
        done = subprocess.run(
            ["mount", "--bind", str(place), str(place)], check=False, capture_output=True
        )
        if done.returncode != 0:
            pytest.skip("root writes everywhere, and nothing can be mounted here")
        mounted.append(place)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)

    yield make_it
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("argv", [(), ("--json",), ("land",), ("recover",), ("status",), ("runs",)])
def test_a_read_only_folder_of_the_harness_is_one_message(
    project: Any, read_only: Callable[[Path], None], argv: tuple[str, ...]
) -> None:
    assert project.run().code == 0
    project.manifest(project.task("T2", "echo 2 > two"))
    read_only(project.root / ".local")
    done = project.loop(*argv)
    if argv in {("status",), ("runs",)}:
        assert done.code in {0, 2}
    else:
        assert done.code == 2
        assert bool(done.out) is ("--json" in argv)
        assert ".local" in done.err
        assert len(done.err.strip().splitlines()) == 1, done.err
    assert "Traceback" not in done.err
    assert "internal fault" not in done.err


def test_a_read_only_checkout_is_one_message(
    project: Any, read_only: Callable[[Path], None]
) -> None:
    read_only(project.root)
    done = project.loop()
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert ".local" in done.err


def test_a_local_folder_that_is_a_file_is_one_message(project: Any) -> None:
    project.write(".local", "mine\n")
    done = project.finish(project.start())
    assert (done.code, done.out) == (2, "")
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert ".local" in done.err
    assert project.read(".local") == "mine\n"


def test_a_damaged_database_is_one_message_that_says_what_is_safe(project: Any) -> None:
    assert project.run().code == 0
    database = project.root / ".local" / "loop.db"
    for name in ("loop.db-wal", "loop.db-shm"):
        (project.root / ".local" / name).unlink(missing_ok=True)
    database.write_bytes(b"no database" * 1000)
    project.manifest(project.task("T2", "echo 2 > two"))
    for argv in ((), ("status",), ("answer", "--accept-guesses")):
        done = project.loop(*argv)
        assert (done.code, done.out) == (2, "")
        assert "move it" in done.err
    database.unlink()
    assert "move that folder away" in project.loop().err
    (project.root / ".local" / "runs").rename(project.root / ".local" / "old-runs")
    assert project.run().code == 0
    assert project.landed() == ["T1", "T2"]
    assert "made" in project.kept_file("made")


def test_a_removed_harness_folder_is_made_again(project: Any) -> None:
    assert project.run().code == 0
    shutil.rmtree(project.root / ".local")
    project.manifest(project.task("T2", "echo 2 > two"))
    assert project.run().code == 0
    assert project.landed() == ["T1", "T2"]


def test_a_removed_repository_of_the_harness_is_made_again(project: Any) -> None:
    assert project.run().code == 0
    shutil.rmtree(project.root / ".local" / "git")
    project.manifest(project.task("T2", "echo 2 > two"))
    assert project.run().code == 0
    assert project.landed() == ["T1", "T2"]
