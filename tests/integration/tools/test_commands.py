import os
from pathlib import Path
from typing import Any

import pytest

from loopctl.calls import MAX_RESULT_BYTES
from loopctl.errors import CancelledError
from loopctl.sandbox.tools.catalogue import work_tools
from loopctl.sandbox.tools.shell import KEPT


def test_command_says_its_exit_code_and_what_it_wrote(bench: Any) -> None:
    assert bench.done("bash", command="pwd; echo no >&2; exit 3") == (
        f"exit code 3\n{bench.root}\nno\n"
    )
    assert bench.done("bash", command="true") == "exit code 0, no output"
    assert bench.done("bash", command="kill -9 $$") == "ended by signal 9"
    assert "127" in bench.done("bash", command="--version")


def test_command_is_run_by_bash_where_there_is_one(bench: Any) -> None:
    said = bench.done("bash", command="set -o pipefail\n[[ abc == a* ]] && echo 'it'\"'s\"")
    assert said == "exit code 0\nit's\n"


def test_command_without_bash_is_run_by_sh(bench: Any, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sh").symlink_to("/bin/sh")
    bench.sandbox._around.env["PATH"] = str(folder)
    assert bench.done("bash", command="echo plain") == "exit code 0\nplain\n"


def test_command_that_takes_too_long_is_ended_and_is_an_error(bench: Any) -> None:
    tool = work_tools(bench.sandbox, timeout_s=0.2)[0]
    came: Any = tool.run({"command": "echo begun; exec sleep 1000"}, "k")
    assert came.is_error
    assert came.content.startswith("ended by its time limit of 0 seconds\n")


def test_cancelled_run_ends_the_call(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*_: object, **__: object) -> None:
        raise CancelledError("stop")

    monkeypatch.setattr(bench.sandbox, "run", cancelled)
    with pytest.raises(CancelledError):
        bench.use("bash", command="true")


def test_long_output_is_cut_in_the_middle_and_all_of_it_can_be_read(bench: Any) -> None:
    said = bench.done("bash", command="seq 1 20000")
    assert len(said.encode()) < MAX_RESULT_BYTES
    head, _, rest = said.partition("[")
    note, _, tail = rest.partition("]\n")
    assert head.startswith("exit code 0\n1\n2\n")
    assert tail.endswith("19999\n20000\n")
    last_shown = int(head.split()[-1])
    first_again = int(tail.split()[0])
    assert f"lines {last_shown + 1} to {first_again - 1}, left out" in note
    _, _, place = note.partition("read_file path=")
    path, _, start = place.partition(" start=")
    more = bench.done("read_file", path=path, start=int(start), lines=2)
    assert more.splitlines()[1].endswith(f"\t{last_shown + 1}")
    everything = Path(path).read_text()
    assert everything == "".join(f"{n}\n" for n in range(1, 20001))
    missing = len(everything) - len(head) + len("exit code 0\n") - len(tail)
    assert note.startswith(f"{missing} bytes")


def test_long_output_on_one_line_is_cut_too(bench: Any) -> None:
    said = bench.done("bash", command="head -c 100000 /dev/zero | tr '\\0' x")
    assert "[70000 bytes left out: read_file path=" in said
    assert len(said) < 31_000


def test_long_output_never_goes_where_a_planted_link_points(bench: Any) -> None:
    target = bench.outside / "secret.txt"
    name = "output-" + "0" * 12 + ".txt"
    scratch = bench.sandbox.scratch
    (scratch / name).symlink_to(target)
    tool = bench.tools["bash"]
    said: Any = tool.run({"command": "seq 1 20000"}, "0" * 64)
    assert "it could not be kept" in said.content
    assert target.read_text() == "secret\n"
    bench.done("bash", command='rm -r "$TMPDIR"; ln -s ' + str(bench.outside) + ' "$TMPDIR"')
    said = tool.run({"command": "seq 1 20000"}, "1" * 64)
    assert "it could not be kept" in said.content
    assert os.listdir(bench.outside) == ["secret.txt"]  # noqa: PTH208 - names alone
    scratch.unlink()


def test_only_the_newest_long_outputs_are_kept(bench: Any) -> None:
    for _ in range(KEPT + 2):
        bench.done("bash", command="seq 1 20000")
    assert len(list(bench.sandbox.scratch.glob("output-*"))) == KEPT


def test_output_is_text_whatever_bytes_it_has(bench: Any) -> None:
    said = bench.done("bash", command=r"printf 'a\377b\n'")
    assert said == "exit code 0\na\ufffdb\n"
