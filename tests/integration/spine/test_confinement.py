"""What a user sees of confinement: every command of a run is held, and told what it met."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loopctl.sandbox.confine.trying import tried

if TYPE_CHECKING:
    from tests.integration.spine.conftest import Project

KINDS = ("worker", "setup", "typecheck", "verify", "criterion")


@pytest.fixture(autouse=True)
def holding(project: "Project") -> None:
    trial = tried(project.env)
    if not trial.is_holding:
        pytest.skip(f"{trial.why}; {trial.mend}")


def planted(project: "Project", kind: str, place: Path) -> None:
    """Have one kind of command try to write outside, and go on."""
    plant = f"(echo x > {place}) 2>/dev/null; true"
    worker = f"echo made > made; {plant}" if kind == "worker" else "echo made > made"
    given = {"verify_cmd": plant} if kind == "verify" else {}
    project.manifest(project.task("T1", worker, **given))
    if kind == "setup":
        project.settings(f'[sandbox]\nsetup_cmd = "{plant}"\n')
    if kind == "typecheck":
        project.settings(f'[gate]\ntypecheck = "{plant}"\n')
    if kind == "criterion":
        text = project.read("tasks/ACTIVE.toml")
        goal = f'[goal]\ntext = "g"\ndone_when = [{{check = "{plant}"}}]\n'
        project.write("tasks/ACTIVE.toml", text.replace("[[task]]", f"{goal}[[task]]", 1))
    project.commit()


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_of_a_run_is_confined(project: "Project", tmp_path: Path, kind: str) -> None:
    place = tmp_path / "planted"
    planted(project, kind, place)
    ended = project.run(overrides={"sandbox.confine": "require"})
    assert (ended.code, project.landed()) == (0, ["T1"])
    assert not place.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_without_confinement_each_of_them_gets_out(
    project: "Project", tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "planted"
    planted(project, kind, place)
    assert project.run(overrides={"sandbox.confine": "off"}).code == 0
    assert place.exists()


TOO_MUCH = {
    "processes": (
        "for i in $(seq 200); do sleep 86391 & done; wait",
        "more than 60 processes and threads at once ([sandbox] processes)",
    ),
    "memory": (
        "python3 -c 'import signal; held = bytearray(400 << 20); signal.pause()'",
        "more than 160 MiB of memory ([sandbox] memory_mb)",
    ),
    "file": (
        "head -c 9000000 /dev/zero > big",
        "a file may have 2 MiB inside the confinement; [sandbox] file_mb",
    ),
}
SMALL = {
    "sandbox.confine": "require",
    "sandbox.processes": 60,
    "sandbox.memory_mb": 160,
    "sandbox.file_mb": 2,
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_verify_command_that_takes_too_much_is_stopped_and_told_as_that(
    project: "Project", what: str
) -> None:
    command, says = TOO_MUCH[what]
    project.manifest(project.task("T1", "echo made > made", verify_cmd=command))
    project.commit()
    ended = project.run(overrides={**SMALL, "budget.loops": 1})
    assert (ended.code != 0, project.landed()) == (True, [])
    assert says in f"{ended.events}"


def test_a_verify_command_within_the_same_limits_passes(project: "Project") -> None:
    command = "head -c 1000000 /dev/zero > big; for i in 1 2 3; do sleep 0 & done; wait"
    project.manifest(project.task("T1", "echo made > made", verify_cmd=command))
    project.commit()
    assert project.run(overrides=SMALL).code == 0
