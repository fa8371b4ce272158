import shutil
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import ExecResult
from loopctl.sandbox.tools import searching


def test_search_finds_known_and_new_files_and_leaves_ignored_ones_out(bench: Any) -> None:
    (bench.root / "new.txt").write_text("a needle\nhay\nNeedle two\n")
    (bench.root / "build").mkdir()
    (bench.root / "build/out.txt").write_text("needle\n")
    (bench.root / "debug.log").write_text("needle\n")
    (bench.root / "src/app.py").write_text("x\n  needle = 1\n")
    assert bench.done("search", pattern=r"\bneedle\b") == (
        "new.txt:1:a needle\nsrc/app.py:2:  needle = 1"
    )
    assert bench.done("search", pattern="needle", path="src") == "src/app.py:2:  needle = 1"
    assert bench.done("search", pattern=r"(?i)^needle\s\w+$") == "new.txt:3:Needle two"


def test_file_that_git_knows_is_searched_though_it_is_ignored(bench: Any) -> None:
    (bench.root / "kept.log").write_text("needle\n")
    bench.done("bash", command="git -c core.excludesFile= add -f kept.log || true")
    found = bench.done("bash", command="git ls-files kept.log")
    assert "kept.log" in found
    assert bench.done("search", pattern="needle") == "kept.log:1:needle"


def test_search_follows_no_link_and_reads_no_binary(bench: Any) -> None:
    (bench.root / "link").symlink_to(bench.outside / "secret.txt")
    (bench.root / "folder").symlink_to(bench.outside)
    (bench.root / "bin").write_bytes(b"secret\0\n")
    assert bench.done("search", pattern="secret").startswith("no match")
    (bench.root / "plain").write_text("secret\n")
    assert bench.done("search", pattern="secret") == "plain:1:secret"


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a{2,1}"])
def test_bad_pattern_is_a_clear_error(bench: Any, pattern: str) -> None:
    said = bench.refused("search", pattern=pattern)
    assert said.startswith("the search was given up: ")
    assert len(said.splitlines()) == 1


def test_words_of_a_pattern_are_never_options(bench: Any) -> None:
    (bench.root / "opt").write_text("--open-files-in-pager=false\n")
    assert bench.done("search", pattern="--open-files-in-pager=f") == (
        "opt:1:--open-files-in-pager=false"
    )
    bench.done("write_file", path=":(top)odd*", content="needle\n")
    bench.done("write_file", path="--no-index", content="needle\n")
    assert bench.done("search", pattern="needle", path=":(top)odd*") == ":(top)odd*:1:needle"
    assert bench.done("search", pattern="needle", path="--no-index") == "--no-index:1:needle"


def test_catastrophic_pattern_comes_to_an_end(bench: Any) -> None:
    (bench.root / "evil.txt").write_text(f"{'a' * 5000}b\n" * 50)
    said = bench.use("search", pattern="(a+)+$").content
    assert "given up" in said or "no match" in said


def test_search_that_takes_too_long_is_said_to(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nexec sleep 1000\n")
    (slow / "git").chmod(0o755)
    path = bench.sandbox._around.env["PATH"]
    bench.sandbox._around.env["PATH"] = f"{slow}:{path}"
    monkeypatch.setattr(searching, "TIMEOUT_S", 0.1)
    assert "took longer than" in bench.refused("search", pattern="a")


def test_many_matches_are_bounded_and_counted(bench: Any) -> None:
    (bench.root / "many.txt").write_text(f"needle {'x' * 1000}\n" * 1000)
    said = bench.done("search", pattern="needle")
    rows = said.splitlines()
    assert len(said.encode()) < 31_000
    assert (
        rows[-1] == f"({1000 - len(rows) + 1} more in 1 files; narrow the pattern or name a path)"
    )
    assert max(map(len, rows)) < 330


def test_search_works_where_a_worker_has_removed_the_repository(bench: Any) -> None:
    (bench.root / ".git").unlink()
    (bench.root / "debug.log").write_text("needle\n")
    (bench.root / "new.txt").write_text("needle\n")
    assert bench.done("search", pattern="needle") == "new.txt:1:needle"


def test_settings_of_the_worker_do_not_change_what_is_found(bench: Any) -> None:
    (bench.root / "new.txt").write_text("needle\n")
    bench.done(
        "bash",
        command="git config --global color.ui always; git config --global grep.column true;"
        " git config --global grep.heading true; git config --global grep.patternType fixed",
    )
    assert bench.done("search", pattern="ne+dle") == "new.txt:1:needle"


def test_git_without_perls_syntax_searches_with_the_extended_one(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = bench.sandbox.run, []

    def run(command: list[str], **options: Any) -> ExecResult:
        asked.append("-P" in command)
        if "-P" in command:
            return ExecResult(
                128, b"fatal: cannot use Perl-compatible regexes when not compiled with USE_LIBPCRE"
            )
        result: ExecResult = real(command, **options)
        return result

    monkeypatch.setattr(bench.sandbox, "run", run)
    assert bench.done("search", pattern="tw(o|x)") == "src/app.py:2:two"
    assert asked == [True, False, False]


def test_search_needs_git_and_says_so(bench: Any, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    bench.sandbox._around.env["PATH"] = str(folder)
    assert "git: not found" in bench.refused("search", pattern="a")
