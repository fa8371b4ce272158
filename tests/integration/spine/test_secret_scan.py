"""A diff that holds a key is asked about before it lands."""

import base64
from pathlib import Path
from typing import Any

import pytest

TOKEN = "ghp_" + "a1B2" * 9
VALUE = "Zq9/planted+value"


def _plant(project: Any, content: str | bytes, name: str = "made.py", **keys: Any) -> None:
    source = project.root.parent / "planted"
    source.write_bytes(content if isinstance(content, bytes) else content.encode())
    project.manifest(project.task("T1", f"cp {source} '{name}'", **keys))


def _written(project: Any) -> bytes:
    folder = project.root / ".local"
    events = [path for path in folder.rglob("*.jsonl*") if path.is_file()]
    return b"".join(path.read_bytes() for path in [*events, *folder.glob("loop.db*")])


def test_a_key_in_the_diff_is_a_decision_with_path_line_and_name_and_no_commit(
    project: Any,
) -> None:
    _plant(project, f"a = 1\ntoken = '{TOKEN}'\n")
    assert project.run().code == 3
    (asked,) = project.decisions()
    assert asked.kind == "approval"
    assert "made.py:2 (GitHub token)" in asked.question
    assert not asked.best_guess
    assert project.landed() == []
    assert project.status("T1") == "needs-human"
    assert TOKEN not in str(asked)
    assert b"made.py:2" in _written(project)
    assert TOKEN.encode() not in _written(project)


def test_approval_lets_the_kept_result_land_without_another_step(project: Any) -> None:
    _plant(project, TOKEN)
    project.run()
    done = project.answer("T1.1", "approve")
    assert done.code == 0
    assert not done.of("step_started")
    assert project.landed() == ["T1"]
    assert project.on_branch("made.py") == TOKEN
    assert "approval pass" in project.git("log", "-1", "--format=%B", "loop/integration")


def test_rejection_keeps_it_from_landing(project: Any) -> None:
    _plant(project, TOKEN)
    project.run()
    assert project.loop("answer", "T1.1", "--reject").code != 0
    assert project.landed() == []
    assert project.status("T1") in {"needs-human", "blocked"}


def test_approval_counts_on_a_moved_head(project: Any) -> None:
    _plant(project, TOKEN)
    project.run()
    project.manifest(
        project.task("T0", "echo other > other"),
        project.task("T1", f"cp {project.root.parent / 'planted'} made.py", status="needs-human"),
    )
    project.run("T0")
    assert project.loop("answer", "T1.1", "--approve").code == 0
    assert project.landed() == ["T0", "T1"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (VALUE, "made.py"),
        (base64.b64encode(b"ab" + VALUE.encode() + b"c"), "made.b64"),
        (b"\x00\xff\x01" + VALUE.encode() + b"\x00", "made.bin"),
        (VALUE.encode("utf-16"), "made.txt"),
        ("nothing", f"{TOKEN}.txt"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\n", "id"),
    ],
)
def test_the_users_own_key_is_found_in_every_form(
    project: Any, monkeypatch: pytest.MonkeyPatch, content: str | bytes, name: str
) -> None:
    monkeypatch.setenv("MY_API_KEY", VALUE)
    _plant(project, content, name)
    assert project.run().code == 3
    assert VALUE not in str(project.decisions())
    assert TOKEN not in str(project.decisions())
    assert project.landed() == []


def test_what_is_at_the_base_already_does_not_count(project: Any) -> None:
    project.write("old.py", f"token = '{TOKEN}'\n")
    project.commit()
    _plant(project, f"# moved\n\nmy_token = '{TOKEN}'\n", "new.py")
    source = project.root.parent / "planted"
    command = f"rm old.py && cp {source} new.py"
    project.manifest(project.task("T1", command))
    assert project.run().code == 0
    assert project.landed() == ["T1"]


def test_a_second_key_is_not_covered_by_the_approval_of_the_first(project: Any) -> None:
    _plant(project, TOKEN, verify_cmd="! grep -q ghp_x made.py")
    project.run()
    assert project.answer("T1.1", "approve").code == 0
    other = TOKEN.replace("a1B2", "c3D4")
    Path(project.root.parent / "planted").write_text(f"{TOKEN}\n{other}\n")
    project.manifest(project.task("T1", f"cp {project.root.parent / 'planted'} made.py"))
    assert project.run("T1").code == 3
    assert project.landed() == ["T1"]
