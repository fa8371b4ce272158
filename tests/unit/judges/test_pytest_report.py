import json
import os
from pathlib import Path

import pytest

from loopctl.judges.pytest_report import FOLDER, PLUGIN, Account, Report, is_unloaded, loading
from loopctl.verdict import TestCounts as Counts

ENDED = {
    "event": "ended", "exit": 1, "collected": 3, "passed": 1, "skipped": 1, "xfailed": 0,
    "failed": ["t.py::a"],
}  # fmt: skip


def _write(report: Report, *records: object) -> None:
    report.path.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def test_the_folder_holds_one_plugin_for_each_runner_and_shadows_nothing_else() -> None:
    own = {f"{PLUGIN}.py", "loopctl_originals.py", "sitecustomize.py"}
    assert {path.name for path in FOLDER.glob("*.py")} == own


def test_counts_of_all_sessions_are_summed(tmp_path: Path) -> None:
    report = Report(tmp_path)
    began = {"event": "began", "token": report.token}
    ended = {**ENDED, "token": report.token}
    _write(report, began, ended, began, {**ended, "exit": 0, "failed": []})
    account = report.take()
    assert account == Account(2, (1, 0), Counts(6, 2, 1, 2, 0), ("t.py::a",))
    assert account.is_whole
    assert not report.path.exists()


def test_lines_without_the_token_do_not_count(tmp_path: Path) -> None:
    report = Report(tmp_path)
    _write(report, {"event": "began", "token": "guess"}, {**ENDED, "token": ""}, [], "x", None)
    assert report.take() == Account()


def test_broken_records_do_not_count(tmp_path: Path) -> None:
    report = Report(tmp_path)
    _write(report, {"event": "ended", "token": report.token, "failed": 3})
    account = report.take()
    assert account.counts is None
    assert not account.is_whole


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "folder"])
def test_file_that_is_no_report_is_none(tmp_path: Path, kind: str) -> None:
    report = Report(tmp_path)
    if kind == "link":
        report.path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(report.path)
    elif kind == "folder":
        report.path.mkdir()
    assert report.take() == Account()


def test_variables_that_the_command_sets_are_added_to() -> None:
    command = loading(
        "export PYTHONPATH=src; PYTEST_ADDOPTS='-x' MYPYTHONPATH=a pytest $PYTHONPATH"
    )
    assert f'export PYTHONPATH="{FOLDER}":src;' in command
    assert f"""PYTEST_ADDOPTS="-p {PLUGIN} """ in command
    assert "MYPYTHONPATH=a pytest $PYTHONPATH" in command


def test_plugin_that_could_not_be_loaded_is_told_from_one_that_was() -> None:
    assert is_unloaded(f'ImportError: Error importing plugin "{PLUGIN}": x'.encode())
    assert not is_unloaded(b"ImportError: Error importing plugin \"other\": No module named 'x'")


def test_errors_of_all_sessions_are_known_by_their_test(tmp_path: Path) -> None:
    report = Report(tmp_path)
    ended = {**ENDED, "token": report.token}
    other = {**ended, "causes": [["t.py::b", "NameError: x"]]}
    _write(report, {**ended, "causes": [["t.py::a", "assert 0"]]}, other, ended)
    assert report.take().causes == {"t.py::a": "assert 0", "t.py::b": "NameError: x"}


@pytest.mark.parametrize("causes", [3, ["a"], [["a"]], {"a": "b"}])
def test_errors_of_another_shape_spoil_the_record(tmp_path: Path, causes: object) -> None:
    report = Report(tmp_path)
    _write(report, {**ENDED, "token": report.token, "causes": causes})
    assert report.take().counts is None
