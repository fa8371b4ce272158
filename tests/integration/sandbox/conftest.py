import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopctl.sandbox.repository import OwnedRepository


@dataclass
class Users:
    """A user's repository, worked on with plain git."""

    root: Path
    env: dict[str, str]
    cancel: threading.Event = field(default_factory=threading.Event)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            env=self.env,
            check=True,
            capture_output=True,
            timeout=60,
        )
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / name).write_text(text)

    def commit(self, message: str = "work", **files: str) -> str:
        self.write(**files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def owned(self, root: Path | None = None, **options: object) -> OwnedRepository:
        checkout = root or self.root
        chosen = {"branch": "loop/integration", "env": self.env, "cancel": self.cancel, **options}
        return OwnedRepository(checkout, checkout / ".local", **chosen)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _temporary_files_go_with_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Some One\n\temail = someone@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


@pytest.fixture
def make(tmp_path: Path, env: dict[str, str]) -> Callable[..., Users]:
    def made(name: str = "project", *init: str) -> Users:
        root = tmp_path / name
        root.mkdir(parents=True)
        users = Users(root, env)
        users.git("init", "-q", *init)
        return users

    return made


@pytest.fixture
def users(make: Callable[..., Users]) -> Users:
    """A repository with two commits."""
    made = make()
    made.commit("first", a="one\n", b="two\n")
    made.commit("second", a="one\nmore\n")
    return made


@pytest.fixture
def repo(users: Users) -> OwnedRepository:
    owned = users.owned()
    owned.sync()
    return owned
