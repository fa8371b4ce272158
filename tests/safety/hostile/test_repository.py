"""A whole run on a hostile repository fires none of its traps; plain git in the same one does."""

import json
import re
from typing import Any

import pytest

from loopctl.errors import RepositoryError, SandboxError
from loopctl.sandbox.repository import OwnedRepository

LINES = "".join(f"{number}\n" for number in range(20))
PLANT = r"""
if [ -e made ]; then exit; fi
git status >/dev/null; git add -A; git commit -qm mine; git log -p -1 >/dev/null; git diff HEAD~1
echo more >> t.c; echo more >> t.e; echo more >> t.m; echo made > made
own=$(dirname "$(dirname "$(sed 's/^gitdir: //' .git)")")
plant() {
  mkdir -p "$1/hooks" "$1/info"
  cp "$TRAPS/template/hooks/"* "$1/hooks/"
  cat "$TRAPS/planted" >> "$1/config"
  cat "$TRAPS/planted" > "$1/config.worktree"
  echo '* filter=w diff=w merge=w' > "$1/info/attributes"
}
(plant "$own"; plant "$(sed 's/^gitdir: //' .git)"; plant "$own/..") 2>/dev/null
cat "$TRAPS/planted" >> "$own/../gitconfig"
for name in "$own/../indexes"/*; do cat "$TRAPS/planted" >> "$name/config"; done 2>/dev/null
"""
SWAP = r"""
rm -f .git; git init -q .; cp "$TRAPS/template/hooks/"* .git/hooks/; cat "$TRAPS/planted" >> .git/config
mkdir -p .git/info; echo '* filter=w diff=w' > .git/info/attributes; echo swapped > swapped
"""
NEST = r"""
mkdir deep; cd deep; git init -q .; cat "$TRAPS/planted" >> .git/config
echo '* filter=w' > .gitattributes; echo nested > nested
"""
ASK = 'if [ -n "$LOOP_ANSWER" ]; then echo yes > answered; else loop defer --reason external \
--decision-needed which; fi'


def task(name: str, command: str, **keys: str) -> str:
    fields = {"id": name, "title": name, "worker": "command", "command": command, **keys}
    return "[[task]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())


@pytest.fixture
def armed(hostile: Any) -> Any:
    """The hostile repository with a manifest whose workers plant traps of their own."""
    outside = hostile.root.parent
    program = hostile.traps.program(outside / "programs/planted", "planted", "cat")
    hostile.traps.hooks(outside / "template/hooks", "template")
    (outside / "planted").write_text(
        f"[core]\n\thooksPath = {outside}/template/hooks\n\tfsmonitor = {program}\n"
        f"\tattributesFile = {outside}/attributes\n"
        f'[filter "w"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n'
        f'[diff "w"]\n\ttextconv = {program}\n[merge "w"]\n\tdriver = {program}\n'
        "[extensions]\n\tworktreeConfig = true\n"
    )
    (outside / "attributes").write_text("* filter=w diff=w merge=w\n")
    head = f'TRAPS="{outside}"\n'
    for name, script in (("plant", PLANT), ("swap", SWAP), ("nest", NEST)):
        (hostile.root / f"{name}.sh").write_text(head + script)
    (hostile.root / "tasks").mkdir()
    (hostile.root / "tasks/ACTIVE.toml").write_text(
        "schema = 1\n"
        + task("T1", "sh plant.sh; true", verify_cmd="test -f made")
        + task("T2", "sh swap.sh", verify_cmd="test -f swapped")
        + task("T3", "sh nest.sh", verify_cmd="true")
        + task("T4", ASK, verify_cmd="test -f answered")
        + task("T5", "echo kept > kept", verify_cmd="false")
        + task("T6", "echo >> t.f", verify_cmd="true")
    )
    hostile.git("add", "-A")
    hostile.git("commit", "-qm", "tasks")
    hostile.arm()
    return hostile


def test_a_whole_life_fires_nothing(armed: Any) -> None:
    (armed.root / "u.txt").write_text("uncommitted\n")
    (armed.root / "sub/i.f").write_text("changed\n")
    nested = armed.root / "nested"
    nested.mkdir()
    armed.git("init", "-q", cwd=nested)
    armed.git("config", "include.path", str(armed.root / ".git/config"), cwd=nested)
    armed.traps.reset()
    said = b""

    def loop(*argv: str) -> None:
        nonlocal said
        done = armed.loop(*argv)
        said += done.stdout + done.stderr
        assert b"Traceback" not in done.stderr, said.decode()
        assert armed.traps.names() == set(), (argv, said.decode())

    # One after another: what a worker without confinement writes while the harness's git starts for
    # another task, only confinement can keep from being read.
    loop("--jobs", "1", "--unattended", "--max-loops", "2")
    assert landed(armed) == {"T1", "T2"}, said.decode()
    plant_in_the_harness_folder(armed)
    loop("answer", "T4", "yes")
    assert landed(armed) == {"T1", "T2", "T4"}
    plant_in_the_harness_folder(armed)
    loop("resume")
    loop("status")
    loop("doctor", "--gate")
    listed = json.loads(armed.loop("recover", "--json").stdout)
    ref = next(one["ref"] for one in listed["kept"] if "T5" in one["ref"])
    loop("recover", ref, "--branch", "again")
    assert armed.git("show", "again:kept") == "kept"
    loop("clean")
    loop("land")
    assert (armed.root / "swapped").read_text() == "swapped\n"


def landed(hostile: Any) -> set[str]:
    """Return the tasks on the integration branch."""
    form = "--format=%(trailers:key=Loop-Task,valueonly)"
    said = hostile.git("log", "--no-show-signature", form, "loop/integration")
    hostile.traps.reset()
    return set(said.split())


def plant_in_the_harness_folder(hostile: Any) -> None:
    """Do what a worker without any confinement can do while nothing else runs."""
    local, outside = hostile.root / ".local", hostile.root.parent
    planted = (outside / "planted").read_text()
    for git_dir in (local / "git", local / ".git"):
        hostile.traps.hooks(git_dir / "hooks", "planted-hook")
        (git_dir / "info").mkdir(exist_ok=True)
        (git_dir / "info/attributes").write_text("* filter=w diff=w merge=w\n")
        (git_dir / "config.worktree").write_text(planted)
        with (git_dir / "config").open("a") as config:
            config.write(planted)
    (local / "gitconfig").write_text(planted + "[safe]\n\tdirectory = *\n")


def test_what_only_the_port_can_ask_for_fires_nothing(armed: Any) -> None:
    (armed.root / "u.txt").write_text("untracked\n")
    (armed.root / "sub/i.f").write_text("changed\n")
    repo = OwnedRepository(
        armed.root, armed.root / ".local", branch="loop/integration", env=armed.env
    )
    repo.sync()
    repo.uncommitted()
    start, _ = repo.prepare_branch()
    sandbox = repo.open_sandbox("T1", start, rescue_ref="refs/loop/r/T1/main+interrupted")
    for name in ("t.c", "t.e", "t.m", "new"):
        with (sandbox.workdir / name).open("a") as file:
            file.write("more\n")
    tree = sandbox.snapshot()
    sandbox.restore(tree)
    sandbox.left_out()
    repo.keep("refs/loop/r/T1/main", tree, start, "kept")
    commit = repo.commit(tree, start, "T1\n\nLoop-Task: T1\nLoop-Key: k\n")
    repo.changes(start, tree)
    repo.changed_lines(start, tree)
    other = repo.open_sandbox("T2", start)
    (other.workdir / "t.m").write_text(f"less\n{LINES}")
    carried = repo.carry(start, other.snapshot(), commit)
    assert carried.tree
    repo.advance(commit, None)
    repo.landings()
    repo.recover("refs/loop/r/T1/main", "again")
    wip = repo.snapshot_checkout()
    assert wip != start
    wip_tree = repo.tree_of(wip)
    repo.apply_to_checkout(wip_tree, carry_onto(repo, start, tree, wip_tree), wip_tree)
    assert (armed.root / "new").read_text() == "more\n"
    repo.retire_branch(commit)
    (sandbox.workdir / "left").write_text("left\n")
    sandbox.rescue()
    for one in (sandbox, other):
        one.close()
    assert repo.rescue_leftovers() == ()
    assert armed.traps.names() == set()


def carry_onto(repo: OwnedRepository, base: str, tree: str, onto: str) -> str:
    carried = repo.carry(base, tree, onto)
    assert carried.tree
    return str(carried.tree)


@pytest.mark.parametrize("name", ["t.f", "t.p", "t.l"])
def test_a_filtered_file_among_the_uncommitted_is_refused(armed: Any, name: str) -> None:
    (armed.root / name).write_text("changed\n")
    repo = OwnedRepository(
        armed.root, armed.root / ".local", branch="loop/integration", env=armed.env
    )
    with pytest.raises(RepositoryError, match=f"{re.escape(name)} goes through the filter"):
        repo.snapshot_checkout()
    assert armed.traps.names() == set()


def test_attributes_that_a_worker_plants_run_nothing(armed: Any) -> None:
    repo = OwnedRepository(
        armed.root, armed.root / ".local", branch="loop/integration", env=armed.env
    )
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    (sandbox.workdir / ".gitattributes").write_text("* filter=i\n*.z filter=w\n")
    for name in ("w.z", "w"):
        (sandbox.workdir / name).write_text("x")
    plant_in_the_harness_folder(armed)
    with pytest.raises(SandboxError, match="goes through the filter"):
        sandbox.snapshot()
    assert armed.traps.names() == set()
    sandbox.close()


LEAST = 24
PLAIN = (
    "git add -A",
    "git commit -qm x",
    "git -c commit.gpgSign=false commit -m x",
    "git -c commit.gpgSign=false -c core.hooksPath=.git/hooks commit --allow-empty -qm x",
    "git -c diff.external= log -p -2 -- t.c",
    "git diff HEAD~1 -- t.f",
    "git -c diff.external= diff HEAD~1 -- t.e",
    "git checkout -q -b side HEAD~1",
    "rm t.f t.p t.l t.i; git checkout t.f t.p t.l t.i",
    "git -c commit.gpgSign=false commit --no-edit -qam z --allow-empty",
    "git -c commit.gpgSign=false -c gpg.format=ssh commit --allow-empty -S -m x",
    "git -c commit.gpgSign=false commit --amend",
    "git -c core.hooksPath=.git/hooks update-ref refs/heads/x HEAD",
    "git update-ref refs/heads/y HEAD",
    "git -c commit.gpgSign=false rebase -q -i HEAD~1",
    "git format-patch -q -1 -o ../patches --no-signature; git -c commit.gpgSign=false am ../patches/*",
    "git checkout -qf -b left HEAD; git -c commit.gpgSign=false commit --allow-empty -qm l",
    "(echo l; cat t.m) > n; mv n t.m; git -c commit.gpgSign=false commit -qam l",
    "git checkout -qf -b right HEAD~1; (cat t.m; echo r) > n; mv n t.m",
    "git -c commit.gpgSign=false commit -qam r",
    "git -c merge.verifySignatures=false -c commit.gpgSign=false merge -q left -m x",
    "git merge left",
    "git -c gpg.format=openpgp commit --allow-empty -S -m x",
    "git trap",
    "git clone -q . ../cloned",
    "git init -q ../made && cd ../made && git -c commit.gpgSign=false commit --allow-empty -qm x",
    "git init -q --bare ../bare && git push -q ../bare HEAD:refs/heads/pushed",
    "git fetch far",
    "git push far HEAD",
    "git fetch web",
    "git fetch odd",
    "git fetch old",
    "git fetch /evil/",
    'git fetch "$PWD/.local/git"',
    'git push "$PWD/.local/git" HEAD',
    'git fetch "$PWD"',
    "git submodule update --force sub",
    "echo changed > sub/i.f; git status; git diff; (cd sub; git add -A)",
    "git archive --format=tr HEAD",
    "echo x | git interpret-trailers",
    "git difftool -y -t t HEAD~1 -- a t.c",
    "git -c core.askPass= credential fill <<E\nprotocol=https\nhost=h\nE",
    "printf 'protocol=https\\nhost=h\\n' | git credential fill",
    "git -c credential.helper= ls-remote http://x@127.0.0.1:9/y",
)


def test_the_traps_fire_where_git_is_as_usual(armed: Any) -> None:
    for name in ("t.f", "t.p", "t.c", "t.e", "t.l", "t.i", "a"):
        (armed.root / name).write_text(f"changed\n{LINES}")
    for command in PLAIN:
        armed.plain(command)
    for command in ("git log -1", "git -c pager.log=true -c core.pager= show -1"):
        armed.plain(command, TTY="yes")
    for command in ("git status", "git diff HEAD~1", "git fetch far", "git fetch old"):
        armed.plain(command, **armed.bait)
    fired = armed.traps.names()
    kinds = {name for name in fired if not name.startswith(("hook-", "path-", "template-"))}
    assert len(kinds) >= LEAST, sorted(kinds)
    assert {"clean", "smudge", "process", "textconv", "external", "fsmonitor", "ssh"} <= kinds
    assert {"sub-clean", "info-attributes", "credential", "editor", "gpg", "driver"} <= kinds
    for mark in ("hook", "path", "template"):
        assert f"{mark}-reference-transaction" in fired
    assert {"path-post-checkout", "path-post-index-change", "path-pre-push"} <= fired
