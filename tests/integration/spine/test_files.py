"""Files of every kind go from a worker to the user's branch byte for byte, or are refused."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ODD_NAMES = ["with space", 'quo"te', "apo'strophe", "ü-€-名", "-dash", "*", "back\\slash", "#hash"]


def script(project: Any, tmp_path: Path, text: str) -> str:
    """Return the command that runs a Python script from outside the tree."""
    place = tmp_path / "make.py"
    place.write_text(text, encoding="utf-8")
    return f"python3 '{place}'"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_land_and_reach_the_checkout(project: Any, tmp_path: Path, name: str) -> None:
    text = f"import pathlib; pathlib.Path({name!r}).write_bytes({name.encode()!r})"
    project.manifest(project.task("T1", script(project, tmp_path, text)))
    project.commit()
    outcome = project.run(land=True, untouched=False)
    assert outcome.code == 0, outcome.notices
    assert outcome.ended.landed_here
    assert (project.root / name).read_bytes() == name.encode()
    assert project.git("status", "--porcelain") in {"", " M tasks/ACTIVE.toml"}


def test_a_name_that_is_no_utf8_lands_and_is_shown(project: Any, tmp_path: Path) -> None:
    text = r"open(b'caf\xe9.txt', 'wb').write(b'latin'); open(b'd\xff', 'wb').write(b'x')"
    project.manifest(project.task("T1", script(project, tmp_path, text)))
    project.commit()
    done = project.loop("--land", untouched=False)
    assert done.code == 0, done.err
    assert Path(os.fsdecode(os.fsencode(project.root) + b"/caf\xe9.txt")).read_bytes() == b"latin"


@pytest.mark.parametrize("name", ["new\nline", "tab\there", "escape\x1b[31m"])
def test_a_name_with_control_characters_is_refused_by_the_gate_and_kept(
    project: Any, tmp_path: Path, name: str
) -> None:
    text = f"import pathlib; pathlib.Path({name!r}).write_text('x'); pathlib.Path('ok').write_text('ok')"
    project.manifest(project.task("T1", script(project, tmp_path, text)))
    done = project.loop()
    assert done.code == 4
    assert "control character" in done.out
    assert "\x1b" not in done.out + done.err
    assert project.kept_file("ok") == ["ok"]
    assert project.landed() == []


def test_names_with_control_characters_that_the_project_has_already_harm_nobody(
    project: Any,
) -> None:
    (project.root / 'old\nname\t"x"').write_text("old\n")
    project.manifest(project.task("T1", "echo made > made"))
    project.commit()
    assert project.run(land=True, untouched=False).code == 0
    assert (project.root / 'old\nname\t"x"').read_text() == "old\n"
    assert project.read("made") == "made\n"


def test_line_endings_stay_as_they_are_written(project: Any) -> None:
    project.write("dos.txt", b"one\r\ntwo\r\n")
    command = r"printf 'one\r\nTWO\r\n' > dos.txt; printf 'a\r\nb\n' > mixed.txt"
    project.manifest(project.task("T1", command))
    project.commit()
    assert project.run(land=True, untouched=False).code == 0
    assert (project.root / "dos.txt").read_bytes() == b"one\r\nTWO\r\n"
    assert (project.root / "mixed.txt").read_bytes() == b"a\r\nb\n"
    assert project.git("diff", "--stat", "HEAD", "--", ":!tasks") == ""


def test_a_manifest_with_dos_line_endings_keeps_them(project: Any) -> None:
    text = f"schema = 1\n\n{project.task('T1')}".replace("\n", "\r\n").encode()
    project.write("tasks/ACTIVE.toml", text)
    assert project.run().code == 0
    expected = text.replace(b'id = "T1"\r\n', b'id = "T1"\r\nstatus = "done"\r\n')
    assert (project.root / "tasks" / "ACTIVE.toml").read_bytes() == expected


def test_links_inside_the_tree_land_as_links(project: Any) -> None:
    command = "ln -s app.txt src/link; mkdir d; ln -s ../src d/up; ln -s nowhere dangling"
    project.manifest(project.task("T1", command))
    project.commit()
    assert project.run(land=True, untouched=False).code == 0
    links = {
        name: str((project.root / name).readlink()) for name in ("src/link", "d/up", "dangling")
    }
    assert links == {"src/link": "app.txt", "d/up": "../src", "dangling": "nowhere"}


@pytest.mark.parametrize(
    "target", ["/usr/lib/os-release", "../../outside", "../.git/config", ".git/hooks"]
)
def test_a_link_that_leaves_the_tree_is_refused_and_never_followed(
    project: Any, target: str
) -> None:
    command = f"rm -f src/app.txt; ln -s {target} leaving; echo kept > kept"
    project.manifest(project.task("T1", command), project.task("T2"))
    outcome = project.run()
    assert outcome.code == 4
    assert project.status("T1") == "stuck"
    reasons = [
        event.checks[-1].reason for event in outcome.of("gate_finished") if event.task == "T1"
    ]
    assert "leaving is a link to" in reasons[0]
    assert project.kept_file("leaving") == [target]
    assert project.landed() == ["T2"]


def test_a_folder_replaced_by_a_link_does_not_lead_outside(project: Any, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "app.txt").write_text("the user's\n")
    project.manifest(project.task("T1", f"rm -r src; ln -s {victim} src"))
    assert project.run().code == 4
    assert (victim / "app.txt").read_text() == "the user's\n"
    assert [path.name for path in victim.iterdir()] == ["app.txt"]


@pytest.fixture
def with_submodule(make: Callable[..., Any], tmp_path: Path) -> Any:
    library = make(tmp_path / "library")
    project = make()
    project.git("submodule", "add", "-q", str(library.root), "vendor/lib")
    project.commit("a submodule")
    return project


def test_a_project_with_submodules_is_worked_on_and_they_stay(with_submodule: Any) -> None:
    project = with_submodule
    inside = project.root / "vendor" / "lib" / "README.md"
    assert project.run(land=True, untouched=False).code == 0
    assert project.read("made") == "made\n"
    assert inside.read_text() == "A project\n"
    assert project.git("submodule", "status").startswith(" ")


@pytest.mark.parametrize(
    "way",
    ["rm -rf vendor/lib; echo x > vendor-gone", ": > .gitmodules", "git rm -q vendor/lib"],
)
def test_a_change_to_submodules_does_not_land(with_submodule: Any, way: str) -> None:
    project = with_submodule
    project.manifest(project.task("T1", way))
    outcome = project.run()
    assert outcome.code == 4
    assert "submodule" in "".join(
        check.reason for event in outcome.of("gate_finished") for check in event.checks
    )
    assert project.landed() == []


def test_an_executable_bit_an_empty_file_and_a_renamed_one_land(project: Any) -> None:
    project.write("tool.sh", "#!/bin/sh\necho tool\n")
    command = "chmod +x tool.sh; : > empty; mkdir lib; mv src/app.txt 'lib/new name.txt'"
    verify = "./tool.sh && test -f empty && test ! -s empty && test ! -e src/app.txt"
    task = project.task("T1", command, verify_cmd=verify, may_edit=["tool.sh"])
    project.manifest(task)
    project.commit()
    assert project.run(land=True, untouched=False).code == 0
    assert os.access(project.root / "tool.sh", os.X_OK)
    assert project.read("empty") == ""
    assert project.read("lib/new name.txt") == "one\ntwo\nthree\n"
    assert not (project.root / "src").exists()


def test_an_executable_bit_alone_is_a_change(project: Any) -> None:
    project.write("tool.sh", "#!/bin/sh\n")
    project.manifest(project.task("T1", "chmod +x tool.sh"))
    project.commit()
    assert project.run().code == 0
    assert project.git("ls-tree", "loop/integration", "tool.sh").startswith("100755")


def test_a_change_of_case_and_of_kind_lands(project: Any) -> None:
    command = "mv README.md readme.md; rm -r src; echo file > src; mkdir d; echo x > d/x"
    project.manifest(project.task("T1", command))
    project.commit()
    assert project.run(land=True, untouched=False).code == 0
    assert project.read("src") == "file\n"
    assert sorted(path.name.casefold() for path in project.root.iterdir()).count("readme.md") == 1


def test_no_change_at_all_is_stuck_with_the_word_empty(project: Any) -> None:
    project.manifest(project.task("T1", "true"), project.task("T2", "echo log > ignored.log"))
    outcome = project.run()
    assert outcome.code == 4
    reasons = {event.checks[0].reason for event in outcome.of("gate_finished")}
    nothing = "the diff is empty: nothing differs from the base"
    left_out = "1 ignored file that the ignore rules (.gitignore) leave out: ignored.log"
    assert reasons == {f"{nothing}; change a file", f"{nothing}; there is {left_out}"}
    assert (project.status("T1"), project.status("T2")) == ("stuck", "stuck")
    assert "leave out: ignored.log" in project.loop("report").out


def test_files_in_a_submodules_folder_alone_are_no_change_and_said(with_submodule: Any) -> None:
    project = with_submodule
    project.manifest(project.task("T1", "echo x > vendor/lib/new"))
    outcome = project.run()
    assert outcome.code == 4
    reason = outcome.of("gate_finished")[0].checks[0].reason
    assert "1 file in a submodule's folder, where nothing is kept: vendor/lib/new" in reason


UNSAVEABLE = {
    "nested repository": ("git init -q sub; echo in > sub/in", "sub/.git", "sub/in"),
    "in a new folder": ("mkdir n; echo in > n/in; git init -q n/deep", "n/deep/.git", "n/in"),
    "filter": (
        "echo '*.bin filter=lfs' > .gitattributes; echo in > big.bin",
        "big.bin goes through the filter 'lfs'",
        "big.bin",
    ),
    "name of git": ("mkdir .GIT; echo in > .GIT/config", ".GIT/config", "git-set-aside/config"),
}


@pytest.mark.parametrize("name", UNSAVEABLE)
def test_one_path_that_cannot_be_saved_loses_nothing_and_the_cause_is_said(
    project: Any, name: str
) -> None:
    command, cause, saved = UNSAVEABLE[name]
    noise = "seq 100"
    project.manifest(project.task("T1", f"{command}; echo beside > beside; {noise}"))
    outcome = project.run()
    assert outcome.code == 4
    assert project.status("T1") == "stuck"
    tail = outcome.of("step_finished")[0].tail
    assert cause in tail.splitlines()[0]
    assert tail.splitlines()[-1] == "100"
    assert project.kept_file("beside", among="T1/main+interrupted") == ["beside"]
    assert project.kept_file(saved, among="T1/main+interrupted") == ["in"]
    assert "T1/main+interrupted" in project.loop("recover").out
    for argv in (["report"], ["show", "T1"]):
        # Lines are broken where the terminal ends.
        said = "".join(project.loop(*argv).out.split())
        assert "".join(cause.split()) in said, argv


def test_a_project_in_a_folder_with_an_odd_name_works(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    project = make(tmp_path / "a \"b\" ü\t'c' $d:e\\f")
    done = project.loop("--land", untouched=False)
    assert done.code == 0, done.err
    assert project.read("made") == "made\n"


def test_a_project_in_a_folder_with_a_line_break_is_refused(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    project = make(tmp_path / "one\ntwo")
    done = project.loop()
    assert (done.code, done.out) == (2, "")
    assert "line break" in done.err
    assert not (project.root / ".local").exists()


@pytest.mark.slow
def test_a_very_big_tree_entry_count_is_no_trouble(project: Any) -> None:
    command = "mkdir many; i=0; while [ $i -lt 2000 ]; do echo $i > many/$i; i=$((i+1)); done"
    project.manifest(project.task("T1", command))
    assert project.run().code == 0
    done = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "loop/integration"],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.count(b"many/") == 2000
