"""A repository in which every way of git's to run a program is a trap that tells when it fires."""

import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 120.0

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout"),
    *("post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive"),
    *("post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite"),
    *("sendemail-validate", "post-index-change"),
)
ATTRIBUTES = "*.f filter=x\n*.p filter=p\n*.c diff=c\n*.e diff=e\n*.m merge=m\n*.l filter=lfs\n"
FILES = ("t.f", "t.p", "t.c", "t.e", "t.m", "t.l", "t.i")
LINES = "".join(f"{number}\n" for number in range(20))


@dataclass
class Traps:
    """Each trap is a file that is made when it fires."""

    fired: Path

    def shell(self, name: str, then: str = "cat") -> str:
        """Return a command line that tells, then does something harmless."""
        return f"touch '{self.fired}/{name}'; {then}"

    def program(self, path: Path, name: str, then: str = "exit 0") -> Path:
        """Return a program that does so."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{self.shell(name, then)}\n")
        path.chmod(0o755)
        return path

    def hooks(self, folder: Path, mark: str) -> Path:
        """Fill a folder with every hook that there is."""
        for name in HOOKS:
            self.program(folder / name, f"{mark}-{name}")
        return folder

    def names(self) -> set[str]:
        """Return what has fired."""
        return {path.name for path in self.fired.iterdir()}

    def reset(self) -> None:
        for path in self.fired.iterdir():
            path.unlink()


@dataclass
class Hostile:
    """The repository; its traps are set by :meth:`arm`."""

    root: Path
    env: dict[str, str]
    traps: Traps
    bait: dict[str, str] = field(default_factory=dict)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """Run git as a user who trusts the repository would."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            env=self.env,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def plain(self, command: str, **variables: str) -> None:
        """Run a command line with everything left on, the traps in the environment too.

        What git says goes to a terminal, without which it starts no pager.
        """
        leader, terminal = pty.openpty()
        try:
            subprocess.run(
                ["sh", "-c", command],
                cwd=self.root,
                env={**self.env, "TERM": "xterm", **variables},
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=terminal if "TTY" in variables else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE_S,
            )
        finally:
            os.close(terminal)
            os.close(leader)

    def loop(self, *argv: str) -> "subprocess.CompletedProcess[bytes]":
        """Run a command of ``loop``, with the traps in its environment too."""
        return subprocess.run(
            [sys.executable, "-m", "loopctl", *argv],
            cwd=self.root,
            env={**self.env, **self.bait},
            check=False,
            capture_output=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )

    def arm(self) -> None:
        """Set every trap."""
        outside = self.root.parent
        self.traps.hooks(self.root / ".git/hooks", "hook")
        self.traps.hooks(outside / "hooks", "path")
        self.traps.hooks(outside / "template/hooks", "template")
        for number, (key, value) in enumerate(self._settings(outside).items()):
            # One half of them by way of included files.
            where = ["--file", str(self.root / ".git/more")] if number % 2 else []
            self.git("config", *where, key, value)
        self.git("config", "include.path", "more")
        self.git("config", f"includeIf.gitdir:{self.root}/.path", "even-more")
        (self.root / ".git/even-more").write_text(
            f'[alias]\n\tincluded = "!{self.traps.shell("included")}"\n'
        )
        (self.root / ".git/info/attributes").write_text("*.i filter=i\n")
        self.git("config", "--global", "filter.i.clean", self.traps.shell("info-attributes"))
        self.git("config", "--global", "init.templateDir", str(outside / "template"))
        inside = self.root / ".git/modules/sub"
        self.git(f"--git-dir={inside}", "config", "core.fsmonitor", self._program("sub-fsmonitor"))
        self.git(f"--git-dir={inside}", "config", "filter.x.clean", self.traps.shell("sub-clean"))
        self.bait = self._environment()
        self.traps.reset()

    def _program(self, name: str, then: str = "exit 1") -> str:
        return str(self.traps.program(self.root.parent / "programs" / name, name, then))

    def _settings(self, outside: Path) -> Mapping[str, str]:
        shell = self.traps.shell
        own = f"{self.root}/.local/git"
        return {
            "core.hooksPath": str(outside / "hooks"),
            "core.fsmonitor": self._program("fsmonitor"),
            "filter.x.clean": shell("clean"),
            "filter.x.smudge": shell("smudge"),
            "filter.p.process": shell("process", "exit 1"),
            "filter.lfs.clean": shell("lfs-clean"),
            "filter.lfs.smudge": shell("lfs-smudge"),
            "diff.c.textconv": shell("textconv", "cat"),
            "diff.e.command": shell("diff-command", "true"),
            "diff.external": shell("external", "true"),
            "merge.m.driver": shell("driver", "true"),
            "core.sshCommand": shell("ssh", "exit 1"),
            "core.gitProxy": self._program("proxy"),
            "core.pager": shell("pager"),
            "pager.log": shell("pager-log"),
            "interactive.diffFilter": shell("diff-filter"),
            "core.editor": shell("editor", "true"),
            "sequence.editor": shell("sequence-editor", "true"),
            "core.askPass": self._program("askpass"),
            "credential.helper": f"!{shell('credential')}",
            "gpg.program": self._program("gpg"),
            "gpg.ssh.program": self._program("gpg-ssh"),
            "gpg.ssh.defaultKeyCommand": self._program("gpg-key"),
            "commit.gpgSign": "true",
            "log.showSignature": "true",
            "merge.verifySignatures": "true",
            "tag.gpgSign": "true",
            "push.gpgSign": "true",
            "core.alternateRefsCommand": shell("alternates", "true"),
            "uploadpack.packObjectsHook": shell("pack-objects"),
            "alias.trap": f"!{shell('alias')}",
            "gc.auto": "1",
            "gc.autoDetach": "false",
            "gc.recentObjectsHook": shell("gc-recent", "true"),
            "maintenance.auto": "true",
            "fetch.recurseSubmodules": "true",
            "submodule.recurse": "true",
            "submodule.sub.update": f"!{shell('submodule-update', 'true')}",
            "trailer.sign.command": shell("trailer", "true"),
            "trailer.sign.ifmissing": "add",
            "tar.tr.command": shell("tar"),
            "difftool.t.cmd": shell("difftool", "true"),
            "mergetool.t.cmd": shell("mergetool", "true"),
            f"remote.{own}.uploadpack": shell("uploadpack", "false"),
            f"remote.{own}.receivepack": shell("receivepack", "false"),
            f"remote.{self.root}.uploadpack": shell("uploadpack-self", "false"),
            "remote.far.url": "ssh://git@127.0.0.1:9/x",
            "remote.web.url": "http://127.0.0.1:9/x",
            "remote.odd.url": f"ext::sh -c touch% {self.traps.fired}/ext",
            "remote.old.url": "git://127.0.0.1:9/x",
            f"url.ext::sh -c touch% {self.traps.fired}/instead% .insteadOf": "/evil/",
            "protocol.ext.allow": "always",
            "protocol.allow": "always",
        }

    def _environment(self) -> dict[str, str]:
        shell = self.traps.shell
        programs = {
            name: self._program(f"env-{name}")
            for name in ("GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND")
        }
        return {
            **programs,
            "GIT_SSH_COMMAND": shell("env-ssh-command", "exit 1"),
            "GIT_EXTERNAL_DIFF": self._program("env-external-diff", "exit 0"),
            "GIT_EDITOR": shell("env-editor", "true"),
            "GIT_SEQUENCE_EDITOR": shell("env-sequence-editor", "true"),
            "GIT_PAGER": shell("env-pager"),
            "GIT_TEMPLATE_DIR": str(self.root.parent / "template"),
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": self._program("env-fsmonitor"),
            "GIT_CONFIG_KEY_1": "core.hooksPath",
            "GIT_CONFIG_VALUE_1": str(self.root.parent / "hooks"),
        }


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a user's shell has; temporary files go with the test."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "home/.gitconfig").write_text(
        "[user]\n\tname = Some One\n\temail = someone@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path / "tmp"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def hostile(tmp_path: Path, env: dict[str, str]) -> Any:
    """The repository, with its traps not set yet."""
    fired = tmp_path / "fired"
    fired.mkdir()
    made = Hostile(tmp_path / "project", env, Traps(fired))
    inner = tmp_path / "inner"
    for folder in (made.root, inner):
        folder.mkdir()
        made.git("init", "-q", cwd=folder)
    (inner / "i.f").write_text("inner\n")
    (inner / ".gitattributes").write_text("*.f filter=x\n")
    made.git("add", "-A", cwd=inner)
    made.git("commit", "-qm", "inner", cwd=inner)
    for name in FILES:
        (made.root / name).write_text(LINES)
    (made.root / "a").write_text("one\n")
    (made.root / ".gitattributes").write_text(ATTRIBUTES)
    add = ("submodule", "add", "-q", str(inner), "sub")
    made.git("-c", "protocol.file.allow=always", *add)
    made.git("add", "-A")
    made.git("commit", "-qm", "start")
    return made
