"""Additions to a manifest: byte-exact around them, all or nothing, and the goal as it was given."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loopctl.domain import Addition, Criterion, Goal, Task, TaskId
from loopctl.errors import ManifestError
from loopctl.manifest.extend import EMPTY, extended
from loopctl.manifest.toml import TomlManifest

DONE = (Criterion(check="make ok"), Criterion(criterion="it is nice"))


def manifest(folder: Path, content: str | None) -> TomlManifest:
    path = folder / "tasks" / "ACTIVE.toml"
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode())
    return TomlManifest(path, "tasks/ACTIVE.toml")


def tasks(*ids: str) -> tuple[Task, ...]:
    return tuple(Task(TaskId(name), f"Do {name}", verify_cmd="false") for name in ids)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
@example("\x7f\x00\x1f\u2028 '''\"\"\"\\ \r\n\t#")
@example("long " * 10_000)
def test_goal_comes_back_as_it_was_given(text: str) -> None:
    goal = Goal(text, DONE)
    grown = extended(EMPTY, {"schema": 1}, Addition(goal, tasks("A")))
    assert tomllib.loads(grown)["goal"]["text"] == text
    again = extended(grown, tomllib.loads(grown), Addition(Goal(f"{text}!", ())))
    assert tomllib.loads(again)["goal"] == {"text": f"{text}!", "done_when": []}


@pytest.mark.parametrize(
    "old",
    [
        "",
        "\ufeff# mine\r\nschema = 1\r\n",
        '[[task]]\nid = "X"\ntitle = "no newline at the end"',
        '[defaults]\nmodel = "cheap"\n\n# last words',
    ],
)
def test_what_stood_there_stays_byte_for_byte(tmp_path: Path, old: str) -> None:
    file = manifest(tmp_path, old)
    known = len(file.load().tasks)
    found = file.extend(Addition(Goal("g", DONE), tasks("A", "B"), ("assumed: this\nthat",)))
    content = file.path.read_bytes().decode()
    assert content.startswith(old)
    assert [task.id for task in found.tasks[known:]] == ["A", "B"]
    assert file.load() == found
    if "\r\n" in old:
        assert "\n" not in content.replace("\r\n", "").replace("\n]", "").replace("\n  {", "")


@pytest.mark.parametrize(
    "old",
    [
        '# a\n[goal]\ntext = "old" # why\ndone_when = [{ check = "x" }] # c\n[defaults]\n',
        '[goal]\ntext = """old\n"""\n\n[[task]]\nid = "X"\ntitle = "x"\n',
        'goal = { text = "old" }\n',
    ],
)
def test_goal_takes_the_place_of_another_and_of_nothing_else(tmp_path: Path, old: str) -> None:
    file = manifest(tmp_path, old)
    found = file.extend(Addition(Goal("new", DONE), tasks("A")))
    assert found.goal == Goal("new", DONE)
    content = file.path.read_text()
    assert all(mark in content for mark in ("# a", "# why", "# c") if mark in old)


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ('task = [{ id = "X", title = "x" }]\n', "cannot take more tasks"),
        ('[goal]\ndone_when = [{ check = "x" }]\n', "has no text"),
        ("[goal\n", "tasks/ACTIVE.toml:1"),
        ('[[task]]\nid = "A"\ntitle = "x"\n', '"A" is used twice'),
    ],
)
def test_what_cannot_be_added_leaves_the_file_as_it_was(tmp_path: Path, old: str, why: str) -> None:
    file = manifest(tmp_path, old)
    with pytest.raises(ManifestError) as caught:
        file.extend(Addition(Goal("g"), tasks("A")))
    assert why in str(caught.value)
    assert file.path.read_text() == old
    assert list(file.path.parent.iterdir()) == [file.path]


def test_file_that_is_missing_is_made_whole_and_a_preview_makes_none(tmp_path: Path) -> None:
    file = manifest(tmp_path, None)
    addition = Addition(Goal("g", DONE), tasks("A"))
    expected = file.preview(addition)
    assert not file.path.parent.exists()
    assert file.extend(addition) == expected == file.load()
    assert file.path.read_text().startswith("schema = 1\n")


def test_read_only_file_is_refused(tmp_path: Path) -> None:
    file = manifest(tmp_path, "schema = 1\n")
    file.path.chmod(0o444)
    with pytest.raises(ManifestError, match="read-only"):
        file.extend(Addition(tasks=tasks("A")))
