"""What Landlock is told, and when it is not taken."""

import struct
from pathlib import Path

import pytest

from loopctl.sandbox.confine import lockin
from loopctl.sandbox.confine.landlock import Landlock, why_not, without
from loopctl.sandbox.confine.reach import Reach

ALLOW, PERMITTED, ACCESS, UNKNOWN = 0x7FFF0000, 0x50001, 0x5000D, 0x50026
NUMBERS = {"x86_64": (0xC000003E, 41, 56, 272, 1), "aarch64": (0xC00000B7, 198, 220, 97, 64)}


def decided(
    machine: str, *, number: int, first: int = 0, kind: int | None = None, net: bool
) -> int:
    """Return what the filter comes to for a call, as the kernel would reckon it."""
    rows = lockin.filter_rows(machine, has_network=net)
    data = struct.pack("<IIQQ", number, kind or NUMBERS[machine][0], 0, first)
    value = at = 0
    while True:
        code, true, false, operand = rows[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:
            return operand
        else:
            is_so = {
                0x15: value == operand,
                0x35: value >= operand,
                0x45: bool(value & operand),
            }[code]
            at += true if is_so else false


@pytest.mark.parametrize("machine", NUMBERS)
def test_the_filter_refuses_what_leads_out(machine: str) -> None:
    _, sock, clone, unshare, write = NUMBERS[machine]
    assert decided(machine, number=write, net=False) == ALLOW
    assert decided(machine, number=sock, first=2, net=False) == ACCESS
    assert decided(machine, number=sock, first=1, net=False) == ACCESS
    assert decided(machine, number=sock, first=2, net=True) == ALLOW
    assert decided(machine, number=sock, first=1, net=True) == ACCESS
    assert decided(machine, number=unshare, net=True) == PERMITTED
    assert decided(machine, number=425, net=True) == PERMITTED
    assert decided(machine, number=435, net=True) == UNKNOWN
    assert decided(machine, number=clone, first=0x11, net=False) == ALLOW
    assert decided(machine, number=clone, first=0x10000011, net=False) == PERMITTED
    assert decided(machine, number=write, kind=0x40000003, net=True) == PERMITTED
    assert decided(machine, number=0x40000000 + write, net=True) == PERMITTED


def test_a_processor_without_a_filter_is_not_trusted() -> None:
    with pytest.raises(ValueError, match="no filter for vax"):
        lockin.filter_rows("vax", has_network=True)
    assert "vax" in why_not(7, "vax")


@pytest.mark.parametrize(
    ("version", "says"), [(0, "has no Landlock"), (2, "be emptied"), (3, ""), (7, "")]
)
def test_a_landlock_that_lets_files_be_emptied_is_not_taken(version: int, says: str) -> None:
    found = why_not(version, "x86_64")
    assert (says in found, bool(found)) == (True, bool(says))


def test_no_version_is_asked_for_rights_that_it_does_not_know() -> None:
    assert [lockin.rights(version).bit_length() for version in (1, 2, 3, 4, 5, 6, 7)] == [
        *(13, 14, 15, 15, 16, 16, 16)
    ]


def test_what_is_hidden_is_left_out_with_nothing_else(tmp_path: Path) -> None:
    for name in ("a/keys/one", "a/keys/two", "a/b/f", "c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(without(tmp_path, [tmp_path / "a/keys"])) == [tmp_path / "a/b", tmp_path / "c"]
    assert list(without(tmp_path, [tmp_path])) == []
    assert list(without(tmp_path, [])) == [tmp_path]
    assert list(without(tmp_path / "missing", [])) == []


def test_the_description_does_not_promise_what_an_older_kernel_does_not_keep() -> None:
    reach = Reach(Path("/p"), Path("/p/.local/git"), Path("/p/.local/shim"), {})
    assert "see and end other processes" in Landlock(5, reach).describe()
    assert "commands see other processes" in Landlock(6, reach).describe()


def test_the_program_that_locks_itself_in_is_told_all_before_the_command(tmp_path: Path) -> None:
    reach = Reach(tmp_path, tmp_path / "git", tmp_path / "shim", {"PATH": "/usr/bin"})
    wrapped = Landlock(7, reach).wrap(["r", "--", "n"], workdir=tmp_path, writable=[], network=True)
    words = wrapped.argv[: wrapped.argv.index("--")]
    assert wrapped.argv[len(words) + 1 :] == ("r", "--", "n")
    assert "n" in words
    assert f"w{tmp_path}" in words
