"""Repositories and checkouts of every state: worked on, or refused with one clear message."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopctl import bootstrap
from loopctl.errors import LoopctlError


def assert_refused(done: Any, *words: str) -> None:
    assert done.code == 2, done
    assert done.out == ""
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert done.err.startswith("loop: ")
    for word in words:
        assert word in done.err


@pytest.fixture
def elsewhere(make: Callable[..., Any], tmp_path: Path) -> Any:
    """A project of which only the way to start ``loop`` in other folders is wanted."""
    return make(tmp_path / "aside")


@pytest.mark.parametrize("argv", [(), ("--json",), ("status",), ("land",), ("recover",)])
def test_a_folder_that_is_no_repository_is_refused(
    elsewhere: Any, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "file").write_text("mine")
    done = elsewhere.loop(*argv, cwd=folder)
    assert_refused(done, "not in a git repository", "git init")
    assert [path.name for path in folder.iterdir()] == ["file"]


def test_a_repository_without_a_commit_is_refused(elsewhere: Any, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    (folder / "tasks").mkdir(parents=True)
    elsewhere.git("init", "-q", cwd=folder)
    (folder / "tasks" / "ACTIVE.toml").write_text(elsewhere.read("tasks/ACTIVE.toml"))
    assert_refused(elsewhere.loop(cwd=folder), "no commit yet")
    assert not (folder / ".local").exists()


def test_a_bare_repository_is_refused(elsewhere: Any, tmp_path: Path) -> None:
    folder = tmp_path / "bare.git"
    elsewhere.git("clone", "-q", "--bare", str(elsewhere.root), str(folder))
    names = sorted(path.name for path in folder.iterdir())
    assert_refused(elsewhere.loop(cwd=folder), "bare repository")
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_git_folder_that_is_none_is_refused(elsewhere: Any, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    (folder / "tasks").mkdir(parents=True)
    (folder / ".git").write_text("gitdir: /nowhere\n")
    (folder / "tasks" / "ACTIVE.toml").write_text(elsewhere.read("tasks/ACTIVE.toml"))
    assert_refused(elsewhere.loop(cwd=folder), "cannot be read")
    (folder / ".git").unlink()
    (folder / ".git").mkdir()
    assert_refused(elsewhere.loop(cwd=folder), "cannot be read")


def test_a_damaged_repository_is_an_error_of_the_tasks(project: Any) -> None:
    tree = project.git("rev-parse", "HEAD:src")
    place = project.root / ".git" / "objects" / tree[:2] / tree[2:]
    place.chmod(0o600)
    place.unlink()
    done = project.loop()
    assert done.code == 4
    assert tree in done.out
    assert "Traceback" not in done.err
    assert project.status("T1") == "blocked"


def test_a_folder_that_does_not_exist_is_refused(project: Any) -> None:
    assert_refused(project.loop("-C", "nowhere"), "no such folder")


def test_loop_works_from_a_folder_of_the_checkout(project: Any) -> None:
    assert project.loop(cwd=project.root / "src").code == 0
    assert project.landed() == ["T1"]


def test_a_detached_head_works_and_landing_says_why_it_cannot(project: Any) -> None:
    project.git("checkout", "-q", "--detach")
    outcome = project.run(land=True)
    assert outcome.code == 0
    assert project.landed() == ["T1"]
    assert "HEAD is detached" in outcome.notices
    done = project.loop("land")
    assert_refused(done, "HEAD is detached", "git switch")


def test_a_linked_worktree_of_the_users_works(project: Any, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    project.git("worktree", "add", "-q", "-b", "side", str(linked))
    before = project.picture()
    other = type(project)(linked, project.env)
    done = other.loop("--land", untouched=False)
    assert done.code == 0, done.err
    assert other.read("made") == "made\n"
    assert not (project.root / "made").exists()
    assert {name for name in before if not name.startswith(".git/")} == {
        name for name in project.picture() if not name.startswith(".git/")
    }


def unclean(project: Any) -> None:
    """Change, stage, delete, add and ignore files of a checkout."""
    project.write("doc.txt", "doc\n")
    project.manifest(project.task("T1", "sed s/two/TWO/ src/app.txt > made"))
    project.commit()
    project.write("src/app.txt", "one\ntwo\nmine\n")
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.write("untracked é.txt", "untracked\n")
    project.write("debug.log", "ignored\n")
    (project.root / "doc.txt").unlink()


def test_uncommitted_work_is_no_part_of_a_run_which_says_so(project: Any) -> None:
    unclean(project)
    outcome = project.run()
    assert outcome.code == 0
    assert "4 uncommitted files" in outcome.notices
    assert project.on_branch("made") == "one\nTWO\nthree"


def test_uncommitted_work_is_taken_along_and_gets_the_runs_diff_back(project: Any) -> None:
    unclean(project)
    head, index = project.git("rev-parse", "HEAD"), (project.root / ".git" / "index").read_bytes()
    outcome = project.run(wip=True)
    assert outcome.code == 0
    assert "4 uncommitted files" in outcome.notices
    assert project.on_branch("made") == "one\nTWO\nmine"
    before = project.picture()
    done = project.loop("land", untouched=False)
    assert done.code == 0, done.err
    now = project.picture()
    assert {name for name in now if now[name] != before.get(name)} == {"made"}
    assert before.keys() <= now.keys()
    assert project.read("made") == "one\nTWO\nmine\n"
    assert project.git("rev-parse", "HEAD") == head
    assert (project.root / ".git" / "index").read_bytes() == index
    # What landed is kept, and a next run begins from the checkout again.
    assert "one\nTWO\nmine" in project.kept_file("made")
    project.manifest(project.task("T2", "echo 2 > two"))
    assert project.run(wip=True).code == 0


def test_landing_onto_files_that_have_changed_since_is_refused(project: Any) -> None:
    project.manifest(project.task("T1", "sed -i s/two/TWO/ src/app.txt"))
    project.commit()
    project.write("src/app.txt", "one\ntwo\nmine\n")
    assert project.run(wip=True).code == 0
    project.write("src/app.txt", "one\ntwo\nmine\nnewer\n")
    done = project.loop("land")
    assert_refused(done, "changed since the run took them", "src/app.txt")
    project.write("src/app.txt", "one\ntwo\nmine\n")
    assert project.loop("land", untouched=False).code == 0
    assert project.read("src/app.txt") == "one\nTWO\nmine\n"


def test_landing_onto_an_ignored_file_in_the_way_is_refused(project: Any) -> None:
    project.manifest(project.task("T1", "rm .gitignore; echo theirs > debug.log"))
    project.commit()
    project.write("extra.txt", "extra\n")
    project.write("debug.log", "mine\n")
    assert project.run(wip=True).code == 0
    assert_refused(project.loop("land"), "debug.log")
    assert project.read("debug.log") == "mine\n"


@pytest.mark.parametrize("wip", [False, True])
def test_landing_is_refused_where_an_uncommitted_file_is_in_the_way(
    project: Any, *, wip: bool
) -> None:
    assert project.run(wip=wip).code == 0
    project.write("made", "mine\n")
    done = project.loop("land")
    assert_refused_any(done, "made")
    assert project.read("made") == "mine\n"


def assert_refused_any(done: Any, *words: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


def test_taking_an_unfinished_merge_along_is_refused(project: Any) -> None:
    project.git("switch", "-q", "-c", "side")
    project.write("src/app.txt", "side\n")
    project.commit()
    project.git("switch", "-q", "main")
    project.write("src/app.txt", "main\n")
    project.commit()
    with pytest.raises(Exception, match="merge"):
        project.git("merge", "side")
    assert_refused(project.loop("--wip"), "unmerged")
    assert project.run().code == 0


# --- the integration branch


def test_an_integration_branch_that_is_checked_out_is_refused_before_any_work(
    project: Any, tmp_path: Path
) -> None:
    assert project.run().code == 0
    linked = tmp_path / "looking"
    project.git("worktree", "add", "-q", str(linked), "loop/integration")
    project.manifest(project.task("T2", "echo 2 > two"))
    assert_refused(project.loop(), "checked out in", f"git -C {linked} switch --detach")
    assert project.status("T2") == "todo"
    project.git("worktree", "remove", str(linked))
    project.git("switch", "-q", "loop/integration")
    assert_refused(project.loop(), "checked out in", str(project.root))
    project.git("switch", "-q", "main")
    assert project.run().code == 0
    assert project.landed() == ["T1", "T2"]


def test_a_branch_that_is_checked_out_during_a_run_is_not_moved_and_the_work_is_kept(
    project: Any, tmp_path: Path
) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    linked = tmp_path / "looking"

    def look() -> None:
        project.git("worktree", "add", "-q", str(linked), "loop/integration")

    outcome = project.run(untouched=False, listeners=[move_while("task_landed", look)])
    assert outcome.code == 4
    assert "checked out in" in outcome.notices
    assert (project.status("T1"), project.status("T2")) == ("done", "blocked")
    assert project.kept_file("two") == ["2"]
    assert not (linked / "two").exists()
    assert project.git("status", "--porcelain", cwd=linked) == ""
    project.git("worktree", "remove", str(linked))
    assert project.run("T2").code == 0
    assert project.landed() == ["T1", "T2"]


def move_while(kind: str, act: Callable[[], None]) -> Callable[[Any], None]:
    """Return a listener that acts once, at the first event of a kind."""
    done: list[bool] = []

    def listener(event: Any) -> None:
        if event.type == kind and not done:
            done.append(True)
            act()

    return listener


def test_a_branch_that_was_moved_on_during_a_run_is_not_written_over(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    theirs: list[str] = []

    def add_a_commit() -> None:
        tree = project.git("rev-parse", "loop/integration^{tree}")
        tip = project.git("rev-parse", "loop/integration")
        theirs.append(project.git("commit-tree", "-p", tip, "-m", "mine", tree))
        project.git("update-ref", "refs/heads/loop/integration", theirs[0], tip)

    outcome = project.run(listeners=[move_while("task_landed", add_a_commit)])
    assert outcome.code in {0, 4}
    assert theirs[0] in project.git("rev-list", "loop/integration").split()
    if outcome.code == 4:
        assert project.status("T2") == "blocked"
        assert "not at" in outcome.notices
        assert project.kept_file("two") == ["2"]
        assert project.run("T2").code == 0
    assert project.landed() == ["T1", "T2"]
    assert theirs[0] in project.git("rev-list", "loop/integration").split()


def test_a_branch_that_was_reset_or_deleted_during_a_run_is_not_put_back(project: Any) -> None:
    project.manifest(project.task("T1", "echo 1 > one"), project.task("T2", "echo 2 > two"))
    delete = lambda: project.git("update-ref", "-d", "refs/heads/loop/integration")  # noqa: E731
    outcome = project.run(listeners=[move_while("task_landed", delete)])
    assert outcome.code == 4
    assert (project.status("T1"), project.status("T2")) == ("done", "blocked")
    assert project.landed() == []
    assert project.kept_file("two") == ["2"]
    assert project.kept_file("one", among="T1") == ["1"]
    assert project.run("T2").code == 0
    assert project.landed() == ["T2"]


def test_a_branch_that_has_diverged_from_head_is_refused_with_the_remedy(project: Any) -> None:
    assert project.run().code == 0
    project.write("other", "other\n")
    project.commit()
    assert_refused(project.loop(), "have diverged", "git merge loop/integration")
    assert_refused(project.loop("land"), "have diverged")
    project.git("merge", "-q", "-m", "both", "loop/integration")
    project.manifest(project.task("T2", "echo 2 > two"))
    assert project.run().code == 0
    assert project.landed() == ["T1", "T2"]


def test_a_branch_that_has_landed_is_moved_up_to_head(project: Any) -> None:
    assert project.run(land=True, untouched=False).code == 0
    project.write("other", "other\n")
    project.commit()
    project.manifest(project.task("T2", "echo 2 > two"))
    assert project.run().code == 0
    assert project.on_branch("other") == "other"


def test_a_branch_ahead_of_head_is_started_from_and_said(project: Any) -> None:
    assert project.run().code == 0
    project.manifest(project.task("T2", "cat made > two"))
    outcome = project.run()
    assert outcome.code == 0
    assert "starting from loop/integration, 1 commit ahead of HEAD" in outcome.notices
    assert project.on_branch("two") == "made"


def test_a_head_that_moves_during_a_run_does_not_matter(project: Any) -> None:
    def commit() -> None:
        project.write("other", "other\n")
        project.git("add", "other")
        project.git("commit", "-qm", "meanwhile")

    outcome = project.run(
        untouched=False, listeners=[move_while("task_claimed", commit)], land=True
    )
    assert outcome.code == 0
    assert project.landed() == ["T1"]
    assert "not landed on the current branch" in outcome.notices
    assert not (project.root / "made").exists()


@pytest.mark.parametrize("name", ["loop", "loop/integration/old"])
def test_a_branch_name_that_stands_in_the_way_is_refused_before_any_work(
    project: Any, name: str
) -> None:
    project.git("branch", name)
    assert_refused(project.loop(), f"the branch {name} keeps", "rename it")
    project.git("branch", "-m", name, "looping")
    assert project.run().code == 0


def test_opening_is_refused_without_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(LoopctlError, match="not in a git repository"):
        bootstrap.open_project(tmp_path)
