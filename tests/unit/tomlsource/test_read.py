import os
from pathlib import Path

import pytest

from loopctl.errors import FaultsError
from loopctl.tomlsource.read import MAX_BYTES, decode, parse, read_bytes


def the_fault(content: bytes) -> str:
    with pytest.raises(FaultsError) as caught:
        parse(decode(content, "F"), "F")
    (fault,) = caught.value.faults
    return str(fault)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        pytest.param(b'a = 1\nb = "\xff"\n', "F:2: byte 0xFF is not UTF-8; save it as UTF-8"),
        pytest.param(b"a = 1\n\0", "F:2: a NUL byte; this is no text file"),
        pytest.param("a = 1".encode("utf-16"), "F:1: this is UTF-16; save it as UTF-8"),
        pytest.param(
            b"a = 1\n<<<<<<< HEAD\nb = 1\n=======\nb = 2\n>>>>>>> other\n",
            "F:2: git conflict marker <<<<<<<; resolve the conflict first",
        ),
        pytest.param(
            b"a = 1\r\n=======\r\nb = 2\r\n",
            "F:2: git conflict marker =======; resolve the conflict first",
        ),
        pytest.param(b"a = 1\na = 2\n", "F:2: not valid TOML: Cannot overwrite a value (column 6)"),
        pytest.param(
            b"a = 1\r\n\r\nb = [1,\r\n", "F:3: not valid TOML: Invalid value (at the end)"
        ),
    ],
)
def test_a_file_that_is_no_toml_has_one_fault_with_its_line(content: bytes, fault: str) -> None:
    assert the_fault(content) == fault


def test_nesting_without_end_is_a_fault() -> None:
    assert "nested too deep" in the_fault(b"a = " + b"[" * 100_000)


def test_a_number_without_end_is_a_fault() -> None:
    assert "not valid TOML" in the_fault(b"a = " + b"1" * 10_000)


def test_a_byte_order_mark_and_windows_line_endings_are_fine() -> None:
    assert parse(decode(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", "F"), "F") == {"a": 1, "b": 2}


def test_markers_inside_a_text_are_no_conflict() -> None:
    assert parse("a = '''\n<<<<<<< HEAD\n'''", "F") == {"a": "<<<<<<< HEAD\n"}


def test_a_missing_file_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(FaultsError, match=r"^F: make one$"):
        read_bytes(tmp_path / "none" / "F", "F", "make one")


def test_a_folder_a_pipe_and_a_huge_file_are_faults(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name, words in (("", "a folder"), ("pipe", "no regular file"), ("huge", "at most 64 MiB")):
        with pytest.raises(FaultsError, match=words):
            read_bytes(tmp_path / name, "F", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "F"
    path.touch(mode=0)
    with pytest.raises(FaultsError, match="cannot be read: Permission denied"):
        read_bytes(path, "F", "")
