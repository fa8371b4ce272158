"""A hostile repository fires nothing; plain git on the same repository fires, so the traps work."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from loopctl.errors import SandboxError

_HOOKS = (
    "pre-commit",
    "post-checkout",
    "post-merge",
    "post-commit",
    "reference-transaction",
    "post-index-change",
    "post-rewrite",
    "pre-auto-gc",
    "update",
    "post-update",
)


def armed(users: Any) -> Path:
    """Set every trap that a repository's own configuration can hold; return where they tell."""
    fired = Path(users.root.parent, "fired")
    fired.mkdir()

    def trap(name: str, then: str = "cat") -> str:
        return f"touch '{fired}/{name}'; {then}"

    users.write(**{".gitattributes": "*.f filter=x diff=x merge=x\n", "t.f": "text\n"})
    users.commit("with attributes")
    for name in _HOOKS:
        hook = users.root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{trap(f'hook-{name}', 'exit 0')}\n")
        hook.chmod(0o755)
    own = f"{users.root}/.local/git"
    program = Path(users.root.parent, "gpg")
    program.write_text(f"#!/bin/sh\n{trap('gpg')}\n")
    program.chmod(0o755)
    settings = {
        "core.fsmonitor": trap("fsmonitor", "false"),
        "filter.x.clean": trap("clean"),
        "filter.x.smudge": trap("smudge"),
        "diff.x.textconv": trap("textconv"),
        "diff.external": trap("external"),
        "merge.x.driver": trap("driver", "true"),
        "core.sshCommand": trap("ssh"),
        "core.pager": trap("pager"),
        "pager.log": trap("pager-log"),
        "core.editor": trap("editor"),
        "core.askPass": trap("askpass"),
        "credential.helper": f"!{trap('credential')}",
        "gpg.program": str(program),
        "commit.gpgSign": "true",
        "log.showSignature": "true",
        "core.alternateRefsCommand": trap("alternates"),
        "uploadpack.packObjectsHook": trap("pack-objects"),
        "alias.status": f"!{trap('alias')}",
        f"remote.{own}.uploadpack": trap("uploadpack"),
        f"remote.{own}.vcs": "evil",
        f"remote.{users.root}.uploadpack": trap("uploadpack-self"),
        f"url.ext::sh -c '{trap('url')}'.insteadOf": "/",
        "protocol.ext.allow": "always",
    }
    for name, value in settings.items():
        users.git("config", name, value)
    for path in fired.iterdir():
        path.unlink()
    return fired


def test_nothing_of_the_users_configuration_runs(users: Any) -> None:
    fired = armed(users)
    users.write(a="uncommitted\n", **{"u.f": "untracked\n"})
    repo = users.owned()
    repo.sync()
    repo.uncommitted()
    start, _ = repo.prepare_branch()
    sandbox = repo.open_sandbox("T1", start)
    (sandbox.workdir / "b").write_text("work\n")
    tree = sandbox.snapshot()
    sandbox.restore(tree)
    repo.keep("refs/loop/r/T1/main", tree, start, "kept")
    commit = repo.commit(tree, start, "T1\n\nLoop-Task: T1\nLoop-Key: k\n")
    repo.changes(start, tree)
    repo.changed_lines(start, tree)
    repo.carry(start, tree, start)
    repo.advance(commit, None)
    repo.landings()
    repo.recover("refs/loop/r/T1/main", "rescued")
    (users.root / "u.f").unlink()
    wip = repo.snapshot_checkout()
    again = repo.open_sandbox("T2", wip)
    (again.workdir / "new").write_text("x")
    wip_tree = repo.tree_of(wip)
    repo.apply_to_checkout(wip_tree, again.snapshot(), wip_tree)
    repo.fast_forward()
    again.close()
    sandbox.close()
    assert [path.name for path in fired.iterdir()] == []


def test_a_filtered_file_among_the_uncommitted_is_refused_without_running_it(users: Any) -> None:
    fired = armed(users)
    users.write(**{"t.f": "changed\n"})
    repo = users.owned()
    with pytest.raises(Exception, match=r"t\.f goes through the filter"):
        repo.snapshot_checkout()
    assert list(fired.iterdir()) == []


def test_the_traps_fire_where_git_is_not_hardened(users: Any) -> None:
    fired = armed(users)
    users.write(a="uncommitted\n", **{"t.f": "changed\n"})
    for command in (
        "git add -A",
        "git -c commit.gpgSign=false commit -qm x",
        "git -c diff.external= log -p -1",
        "git diff HEAD~1",
        "git checkout -q -b side HEAD~1",
        "rm t.f; git checkout t.f",
        "git -c commit.gpgSign=true commit --allow-empty -m x",
        "git update-ref refs/heads/x HEAD",
        f"git fetch -q '{users.root}/.local/git'",
        f"git fetch -q '{users.root}'",
    ):
        subprocess.run(
            ["sh", "-c", command],
            cwd=users.root,
            env=users.env,
            check=False,
            capture_output=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    names = {path.name for path in fired.iterdir()}
    expected = {"clean", "smudge", "external", "fsmonitor", "gpg", "hook-pre-commit"}
    assert expected <= names
    assert {"hook-reference-transaction", "hook-post-checkout", "hook-post-index-change"} <= names


def test_attributes_that_a_worker_plants_run_nothing(users: Any) -> None:
    fired = armed(users)
    users.git("config", "--global", "filter.y.clean", f"touch '{fired}/global'; cat")
    repo = users.owned()
    repo.sync()
    sandbox = repo.open_sandbox("T1", repo.head())
    script = f"""
    git config filter.z.clean "touch '{fired}/own'; cat"
    echo '* filter=y' > .gitattributes; echo '*.z filter=z' >> .gitattributes
    rm -f '{fired}'/*; echo x > w.z; echo x > w
    """
    sandbox.run(script, timeout_s=20)
    with pytest.raises(SandboxError, match="goes through the filter"):
        sandbox.snapshot()
    assert list(fired.iterdir()) == []
