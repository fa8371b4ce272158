"""No key is in what the command line says of faults, its own bugs included."""

from pathlib import Path

import pytest
import typer

from loopctl.cli.faults import exit_codes

KEY = "pl4nted/cli+key"


def test_a_bug_that_quotes_a_key_leaves_none_in_the_trace_and_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_TOKEN", KEY)
    monkeypatch.setattr("loopctl.cli.output._redactor", [None])
    (tmp_path / ".git").mkdir()
    (tmp_path / ".local").mkdir()
    with pytest.raises(typer.Exit), exit_codes(tmp_path, as_json=True):
        raise RuntimeError(f"marker {KEY}")
    said = capsys.readouterr()
    (trace,) = (tmp_path / ".local" / "crash").iterdir()
    assert "marker [key]" in trace.read_text()
    assert KEY not in trace.read_text() + said.out + said.err
