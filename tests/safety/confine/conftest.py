"""A checkout with what surrounds a user's, and a confined worktree of it."""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loopctl.domain import ExecResult
from loopctl.sandbox.confine import landlock
from loopctl.sandbox.confine.choice import choose
from loopctl.sandbox.confine.trying import tried
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.worktree import Worktree
from loopctl.settings import SandboxSettings

HERE = Path(__file__).parent
SECRET = "planted-4f1c9d"  # noqa: S105 - the point of it
LIMIT_S = 240.0
KEYS = (
    *(".ssh/id_rsa", ".aws/credentials", ".netrc", ".npmrc", ".git-credentials", ".pypirc"),
    *(".cargo/credentials.toml", ".docker/config.json", ".kube/config", ".bash_history"),
)


@dataclass
class Ground:
    """The folders. ``outside`` is beside the checkout, as another project of the user's."""

    root: Path
    env: dict[str, str]
    closing: ExitStack
    repositories: list[OwnedRepository] = field(default_factory=list)
    box: Worktree = field(init=False)

    @property
    def checkout(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.checkout,
            env=self.env,
            check=True,
            capture_output=True,
            timeout=60,
        )
        return done.stdout.decode().strip()

    def put(self, path: Path, text: str, mode: int = 0o600) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    @property
    def landlocked(self) -> dict[str, str]:
        """The environment of a user whose bubblewrap does not hold."""
        broken = self.root / "broken"
        self.put(broken / "bwrap", "#!/bin/sh\nexit 1\n", 0o700)
        return {**self.env, "PATH": f"{broken}{os.pathsep}{self.env['PATH']}"}

    def open(
        self,
        name: str = "T1-main",
        *,
        by: str = "bubblewrap",
        cancel: threading.Event | None = None,
        **settings: Any,
    ) -> Worktree:
        """Return a new sandbox that is confined with these settings."""
        env = self.landlocked if by == "landlock" else self.env
        chosen = SandboxSettings.model_validate({"confine": "require", **settings})
        local = self.checkout / ".local"
        repository = OwnedRepository(
            self.checkout,
            local,
            branch="loop/integration",
            share=chosen.share,
            env=env,
            cancel=cancel,
            confinement=choose(chosen, self.checkout, Layout(local), env),
        )
        # While one is held on to, the next does not take its worktrees for what a dead one left.
        self.repositories.append(repository)
        repository.sync()
        box = repository.open_sandbox(name, repository.head())
        self.closing.callback(box.close)
        return box

    def seen(self) -> dict[str, str]:
        """Return what is in the user's folders, but for the harness's own."""
        return {
            str(path): path.read_text(errors="replace")
            for folder in (self.checkout, self.home, self.outside)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and ".local" not in path.relative_to(folder).parts
        }


@pytest.fixture(scope="session")
def bubblewrap() -> str:
    """The program; where CI has none that holds, that is a failure and no reason to skip."""
    trial = tried(os.environ)
    if not trial.program:
        why = f"{trial.why}; {trial.mend}"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    return trial.program


def require_landlock() -> None:
    """Skip where the kernel has no Landlock that holds, which in CI has to be said."""
    if why := landlock.why_not(landlock.abi(), platform.machine()):
        pytest.skip(why)


@pytest.fixture(params=["bubblewrap", "landlock"])
def by(request: pytest.FixtureRequest) -> str:
    """The name of each mechanism in turn."""
    if request.param == "landlock":
        require_landlock()
    return str(request.param)


@pytest.fixture(scope="module")
def ground(bubblewrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    del bubblewrap
    with ExitStack() as closing:
        # Sockets have short paths, and so have the folders that hold them.
        root = Path(tempfile.mkdtemp(prefix="held-"))
        closing.callback(shutil.rmtree, root, ignore_errors=True)
        before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("tmp"))
        closing.callback(setattr, tempfile, "tempdir", before)
        home = root / "home"
        path = f"{home / '.cargo/bin'}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "LOOP_PLANTED": SECRET}
        made = Ground(root, env, closing)
        for key in KEYS:
            made.put(home / key, SECRET)
        made.put(home / ".gitconfig", "[user]\n\tname = Some One\n\temail = one@example.org\n")
        made.put(home / ".cargo/bin/users-tool", "#!/bin/sh\necho tool runs\n", 0o700)
        made.put(home / "hidden/bin/far-tool", "#!/bin/sh\necho far\n", 0o700)
        made.put(made.outside / "secret", SECRET)
        made.put(made.outside / "data", "to be read\n")
        made.put(made.checkout / "a", "one\n")
        made.put(made.checkout / ".gitignore", ".env\n.venv\nnode_modules\n")
        made.put(made.checkout / ".env", SECRET)
        made.put(made.checkout / ".venv/marker", "the user's\n")
        made.put(made.checkout / "node_modules/marker", "the user's\n")
        made.git("init", "-q", "-b", "main")
        made.git("add", "-A")
        made.git("commit", "-q", "-m", "begin")
        made.box = made.open()
        made.put(made.checkout / ".local/loop.db", SECRET)
        yield made


def tell(attempts: Mapping[str, tuple[str, str]], into: Path) -> list[str]:
    """Write the attempts down; return the command that makes them."""
    into.mkdir(exist_ok=True)
    (into / "attempts.json").write_text(json.dumps(attempts))
    shutil.copy(HERE / "attempts.py", into / "attempts.py")
    return [sys.executable, str(into / "attempts.py"), str(into / "attempts.json")]


def heard(ended: ExecResult) -> dict[str, tuple[int, str]]:
    """Return exit code and words of each attempt."""
    assert ended.returncode == 0, ended.stdout
    return {name: (code, said) for name, (code, said) in json.loads(ended.stdout).items()}


@pytest.fixture(scope="module")
def listening(ground: Ground) -> dict[str, str]:
    """What listens outside, and a process there, by the names that attempts know them by."""
    close = ground.closing.callback
    tcp = socket.create_server(("127.0.0.1", 0))
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    unix.bind(str(ground.outside / "s"))
    abstract.bind(f"\0{ground.root}")
    for one in (unix, abstract):
        one.listen()
    for one in (tcp, unix, abstract):
        close(one.close)
    victim = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"LOOP_PLANTED": SECRET})
    close(victim.communicate)
    return {
        "PORT": str(tcp.getsockname()[1]),
        "SOCK": str(ground.outside / "s"),
        "ABSTRACT": str(ground.root),
        "VICTIM": str(victim.pid),
    }
