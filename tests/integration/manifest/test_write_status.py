import errno
import fcntl
import os
import random
import stat
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopctl.domain import TaskId, TaskStatus
from loopctl.manifest.toml import TomlManifest

S = TaskStatus
T1 = TaskId("T1")
TEXT = '''# tasks
schema = 1

[[task]]   # the first
id   =   "T1" # its id
status = 'todo'  # its status
title = "t"
prompt = """
[[task]]
id = "T2"
status = "todo"
"""

[[task]]
  id = "T2"
  title = "t"'''


def write(folder: Path, text: str | bytes) -> TomlManifest:
    path = folder / "ACTIVE.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TomlManifest(path, "tasks/ACTIVE.toml")


def only_the_manifest_is_in(folder: Path) -> bool:
    return [path.name for path in folder.iterdir()] == ["ACTIVE.toml"]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_only_the_value_changes(tmp_path: Path, ending: str, bom: str) -> None:
    text = bom + TEXT.replace("\n", ending)
    manifest = write(tmp_path, text)
    assert manifest.write_status(T1, S.NEEDS_HUMAN)
    expected = text.replace("'todo'", "'needs-human'").encode()
    assert manifest.path.read_bytes() == expected
    assert manifest.load().tasks[0].status is S.NEEDS_HUMAN
    assert only_the_manifest_is_in(tmp_path)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_missing_status_is_written_after_the_id_in_the_style_of_its_line(
    tmp_path: Path, ending: str
) -> None:
    text = TEXT.replace("\n", ending)
    manifest = write(tmp_path, text)
    assert manifest.write_status(TaskId("T2"), S.DONE)
    expected = text.replace(f'  id = "T2"{ending}', f'  id = "T2"{ending}  status = "done"{ending}')
    assert manifest.path.read_bytes() == expected.encode()


def test_a_missing_status_on_a_last_line_without_an_end(tmp_path: Path) -> None:
    manifest = write(tmp_path, '[[task]]\r\ntitle = "t"\r\n\tid = "T1"')
    assert manifest.write_status(T1, S.DONE)
    expected = b'[[task]]\r\ntitle = "t"\r\n\tid = "T1"\r\n\tstatus = "done"'
    assert manifest.path.read_bytes() == expected


def test_a_file_of_mixed_line_endings_keeps_each(tmp_path: Path) -> None:
    manifest = write(tmp_path, '[[task]]\r\ntitle = "t"\nid = "T1"\nkind = "doc"\r\n')
    assert manifest.write_status(T1, S.DONE)
    expected = b'[[task]]\r\ntitle = "t"\nid = "T1"\nstatus = "done"\nkind = "doc"\r\n'
    assert manifest.path.read_bytes() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('task = [{id="T1",title="t"}]', 'task = [{id="T1", status = "done",title="t"}]'),
        ("task = [ {id='T1', status='todo' } ]", "task = [ {id='T1', status='done' } ]"),
        ('[["task"]]\n"id"="T1"\n"status"="todo"', '[["task"]]\n"id"="T1"\n"status"="done"'),
        (
            '[[task]]\nid="T1"\nstatus="""to\\u0064o"""#',
            '[[task]]\nid="T1"\nstatus="""done"""#',
        ),
        ("[[task]]\nid='''T1'''\nstatus='''\ntodo'''", "[[task]]\nid='''T1'''\nstatus='''done'''"),
        (
            '[[task]]\nid = "T0"\n[task.budget]\nusd=1\n[[task]]\nid="T1"\n[task.budget]\nusd=2',
            (
                '[[task]]\nid = "T0"\n[task.budget]\nusd=1\n[[task]]\nid="T1"\nstatus = "done"\n'
                "[task.budget]\nusd=2"
            ),
        ),
        # A header in a text makes as many as there are tasks.
        (
            'x = """\n[[task]]\nid = "T1"\n"""\ntask = [{id = "T1"}]',
            'x = """\n[[task]]\nid = "T1"\n"""\ntask = [{id = "T1", status = "done"}]',
        ),
        # Taken for a header, this one leads to a status that is part of a text.
        (
            (
                "x = '''\n[[task]]\nid = 'T1'\nstatus = 'todo'\n#'''\n"
                "[['task']]\nid='T1'\nstatus='todo'"
            ),
            (
                "x = '''\n[[task]]\nid = 'T1'\nstatus = 'todo'\n#'''\n"
                "[['task']]\nid='T1'\nstatus='done'"
            ),
        ),
        (
            'x = """\n[[task]]\n"""\n[["task"]]\nid = "T1"\nstatus = "todo"\n',
            'x = """\n[[task]]\n"""\n[["task"]]\nid = "T1"\nstatus = "done"\n',
        ),
    ],
)
def test_unusual_layouts_are_kept(tmp_path: Path, before: str, after: str) -> None:
    manifest = write(tmp_path, before)
    assert manifest.write_status(T1, S.DONE)
    assert manifest.path.read_bytes().decode() == after


def test_a_status_that_stands_there_already_touches_nothing(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    before = manifest.path.stat()
    assert manifest.write_status(T1, S.TODO)
    assert manifest.write_status(TaskId("T2"), S.TODO)
    assert manifest.path.stat() == before


def test_a_status_of_the_defaults_is_overruled_for_one_task_only(tmp_path: Path) -> None:
    text = '[defaults]\nstatus = "backlog"\n[[task]]\nid = "T1"\n[[task]]\nid = "T2"\n'
    manifest = write(tmp_path, text)
    assert manifest.write_status(T1, S.TODO)
    assert manifest.path.read_text() == text.replace('"T1"\n', '"T1"\nstatus = "todo"\n')


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(TEXT + "\nx = ", "not valid TOML"),
        pytest.param(b"\xff", "not UTF-8"),
        pytest.param("", "no tasks have the id T1"),
        pytest.param("task = 3", "no tasks have the id T1"),
        pytest.param('[[task]]\nid="T1"\n[[task]]\nid="T1"', "2 tasks have the id T1"),
        pytest.param('[[task]]\nid="T1"\nstatus="aband"', "is not one that loop knows"),
        pytest.param('[[task]]\nid="T1"\nstatus=3', "is not one that loop knows"),
    ],
)
def test_a_file_that_cannot_take_it_is_left_alone(
    tmp_path: Path, content: str | bytes, why: str
) -> None:
    manifest = write(tmp_path, content)
    before = manifest.path.read_bytes()
    assert not manifest.write_status(T1, S.DONE)
    assert manifest.path.read_bytes() == before
    assert manifest.refusal.startswith("tasks/ACTIVE.toml:")
    assert why in manifest.refusal
    assert only_the_manifest_is_in(tmp_path)


def test_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    manifest.load()
    manifest.path.unlink()
    assert not manifest.write_status(T1, S.DONE)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_and_a_pipe_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert not TomlManifest(path, "m").write_status(T1, S.DONE)


def test_a_linked_manifest_is_written_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "tasks").mkdir()
    real = write(tmp_path / "real", TEXT).path
    link = tmp_path / "tasks" / "ACTIVE.toml"
    link.symlink_to("../real/ACTIVE.toml")
    assert TomlManifest(link, "m").write_status(T1, S.DONE)
    assert link.is_symlink()
    assert real.read_text() == TEXT.replace("'todo'", "'done'")


def test_the_mode_of_the_file_stays(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    manifest.path.chmod(0o664)
    assert manifest.write_status(T1, S.DONE)
    assert stat.S_IMODE(manifest.path.stat().st_mode) == 0o664


def test_a_file_marked_read_only_is_refused(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    manifest.path.chmod(0o444)
    assert not manifest.write_status(T1, S.DONE)
    assert "read-only" in manifest.refusal
    assert manifest.path.read_text() == TEXT
    assert only_the_manifest_is_in(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_refused(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    tmp_path.chmod(0o555)
    assert not manifest.write_status(T1, S.DONE)
    tmp_path.chmod(0o755)
    assert "Permission denied" in manifest.refusal


def at_the_next_fsync(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen between the writing of the new file and the rename."""
    real = os.fsync
    left = [happens]

    def fsync(fd: int) -> None:
        real(fd)
        if left:
            left.pop()()

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_full_disk_leaves_the_manifest_whole_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    manifest = write(tmp_path, TEXT)
    at_the_next_fsync(monkeypatch, full)
    assert not manifest.write_status(T1, S.DONE)
    assert "No space left on device" in manifest.refusal
    assert manifest.path.read_text() == TEXT
    assert only_the_manifest_is_in(tmp_path)
    assert manifest.write_status(T1, S.DONE)


EDITED = TEXT.replace("# tasks", "# edited by the user").replace('"t"', '"another title"', 1)


def test_an_edit_in_place_during_the_write_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, TEXT)
    at_the_next_fsync(monkeypatch, lambda: manifest.path.write_text(EDITED))
    assert manifest.write_status(T1, S.DONE)
    assert manifest.path.read_text() == EDITED.replace("'todo'", "'done'")
    assert only_the_manifest_is_in(tmp_path)


def test_an_edit_that_keeps_size_and_time_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, TEXT)
    before = manifest.path.stat()
    edited = TEXT.replace("# tasks", "# TASKS")

    def edit() -> None:
        manifest.path.write_text(edited)
        os.utime(manifest.path, ns=(before.st_atime_ns, before.st_mtime_ns))

    at_the_next_fsync(monkeypatch, edit)
    assert manifest.write_status(T1, S.DONE)
    assert manifest.path.read_text() == edited.replace("'todo'", "'done'")


def test_an_edit_by_a_new_file_during_the_write_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, TEXT)

    def edit() -> None:
        (tmp_path / "new").write_text(EDITED)
        (tmp_path / "new").replace(manifest.path)

    at_the_next_fsync(monkeypatch, edit)
    assert manifest.write_status(T1, S.DONE)
    assert manifest.path.read_text() == EDITED.replace("'todo'", "'done'")


def test_a_file_replaced_by_its_like_during_the_write_gives_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, TEXT)

    def edit() -> None:
        (tmp_path / "new").write_text(TEXT)
        (tmp_path / "new").chmod(0o640)
        (tmp_path / "new").replace(manifest.path)

    at_the_next_fsync(monkeypatch, edit)
    assert manifest.write_status(T1, S.DONE)
    assert stat.S_IMODE(manifest.path.stat().st_mode) == 0o640


def test_a_file_deleted_during_the_write_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = write(tmp_path, TEXT)
    at_the_next_fsync(monkeypatch, manifest.path.unlink)
    assert not manifest.write_status(T1, S.DONE)
    assert list(tmp_path.iterdir()) == []


def test_the_users_own_status_written_meanwhile_is_seen_by_the_next_load(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    assert manifest.load().tasks[0].status is S.TODO
    manifest.path.write_text(TEXT.replace("'todo'", "'stuck'"))
    assert manifest.load().tasks[0].status is S.STUCK


def test_what_a_killed_process_left_is_swept_and_a_living_ones_is_not(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    dead = tmp_path / ".ACTIVE.toml.1.loop-tmp"
    living = tmp_path / ".ACTIVE.toml.2.loop-tmp"
    dead.touch()
    with living.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert manifest.write_status(T1, S.DONE)
        assert not dead.exists()
        assert living.exists()


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    manifest = write(tmp_path, TEXT)
    whole = {TEXT.replace("'todo'", f"'{status}'").encode() for status in S}
    seen: set[bytes] = set()
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            seen.add(manifest.path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for status in list(S) * 5:
            assert manifest.write_status(T1, status)
    finally:
        is_over.set()
        reader.join(timeout=30)
    assert seen <= whole


BLANK = st.sampled_from(["", " ", "\t "])
COMMENT = st.sampled_from(["", "#", ' # [[task]] \'x\' """', "\t#\U0001f600 é"])
EXTRA = st.sampled_from(
    [
        "",
        "\n# status = 'no'\n",
        'prompt = """\n[[task]]\nid = "T1"\nstatus = "todo"\n"""\n',
        "prompt = '''status = \"todo\"'''\n",
        "accept = [ # [\n  'a', \"]\",\n]\n",
        "budget = { usd = 1.5, loops = 2 } # }\n",
        "options = [{ name = 'status = 1' }, { name = \"b\" }]\n",
    ]
)
QUOTES = ["'", '"', "'''", '"""']


@st.composite
def manifest_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int] | None]]:
    """A manifest, and for each task where its status stands, quotes excluded."""
    text = draw(st.sampled_from(["", "\ufeff", "\ufeff# c\n"])) + draw(
        st.sampled_from(["", "schema = 1\n", '[goal]\ntext = "[[task]]"\n'])
    )
    spans: list[tuple[int, int] | None] = []
    for index in range(draw(st.integers(1, 4))):
        text += f"{draw(BLANK)}[[{draw(BLANK)}task{draw(BLANK)}]]{draw(COMMENT)}\n"
        extra = draw(EXTRA)
        text += draw(st.sampled_from(["", "\n", "# c\n"]))
        text += f"{draw(BLANK)}id{draw(BLANK)}={draw(BLANK)}'T{index}'{draw(COMMENT)}\n"
        span = None
        if draw(st.booleans()):
            quote = draw(st.sampled_from(QUOTES))
            text += f"{draw(BLANK)}status{draw(BLANK)}={draw(BLANK)}{quote}"
            status = draw(st.sampled_from(S))
            span = (len(text), len(text) + len(status))
            text += f"{status}{quote}{draw(COMMENT)}\n"
        spans.append(span)
        text += f'{extra}title = "t"{draw(COMMENT)}\n'
    return text, spans


@settings(deadline=None)
@given(
    manifest_texts(),
    st.sampled_from(S),
    st.integers(0, 3),
    st.sampled_from(["lf", "crlf", "mixed"]),
)
def test_writing_a_status_changes_exactly_the_bytes_of_its_value(
    tmp_path_factory: pytest.TempPathFactory,
    made: tuple[str, list[tuple[int, int] | None]],
    status: S,
    number: int,
    endings: str,
) -> None:
    text, spans = made
    index = number % len(spans)
    span = spans[index]
    marked = text if span is None else f"{text[: span[0]]}\0{text[span[1] :]}"
    chance = random.Random(1)  # noqa: S311 - a repeatable mixture
    choices = {"lf": ["\n"], "crlf": ["\r\n"], "mixed": ["\n", "\r\n"]}[endings]
    marked = "".join(part + chance.choice(choices) for part in marked.split("\n"))
    old = "" if span is None else text[span[0] : span[1]]
    manifest = write(tmp_path_factory.mktemp("m"), marked.replace("\0", old))
    before = manifest.path.read_bytes().decode()
    assert manifest.write_status(TaskId(f"T{index}"), status)
    after = manifest.path.read_bytes().decode()
    if span is not None:
        assert after == marked.replace("\0", status)
    elif status is S.TODO:
        assert after == before
    else:
        tasks = tomllib.loads(before.removeprefix("\ufeff"))["task"]
        tasks[index]["status"] = str(status)
        assert tomllib.loads(after.removeprefix("\ufeff"))["task"] == tasks
        lines = after.splitlines(keepends=True)
        assert any(
            line.strip() == f'status = "{status}"'
            and "".join(lines[:at] + lines[at + 1 :]) == before
            for at, line in enumerate(lines)
        )
