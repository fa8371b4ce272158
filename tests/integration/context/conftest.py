import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loopctl.context.recall import LocalRecall
from loopctl.events import Noticed
from loopctl.sandbox.repository import OwnedRepository
from loopctl.store.history import RunHistory
from loopctl.store.memories import SqliteMemories
from loopctl.testing import MemoryEventLog
from loopctl.testing.context import ScriptedOracle

FILES = {
    "shop/cart.py": "class ShoppingCart:\n    def add_item(self, item):\n        self.items.append(item)\n",
    "shop/money.py": "def parse_amount(text):\n    # a decimal comma is refused\n    return Decimal(text)\n",
    "shop/login.py": "def check_password(user, password):\n    return hash(password) == user.digest\n",
    "shop/mailer.py": "def send_invoice(address):\n    # SMTP with a retry\n    smtp.send(address)\n",
    "shop/reader.py": "def read_header(row):\n    # the first row of a CSV names the columns\n    return row\n",
    "shop/cache.py": "class EvictingCache:\n    # least recently used entries are dropped\n    limit = 100\n",
    "shop/dates.py": "def to_utc(moment):\n    # timezones: all timestamps are stored as UTC\n    return moment\n",
    "shop/search.py": "def rank(documents):\n    # scores by inverse document frequency\n    return documents\n",
    "web/router.py": "ROUTES = {'/checkout': checkout}\n# maps URLs to views\n",
    "web/session.py": "def expire(cookie):\n    # logs a visitor out after an hour\n    cookie.clear()\n",
    "docs/deploy.md": "# Deploying\n\nBuild the container image, push it, restart the pods.\n",
    "docs/style.md": "# Style\n\nIndent by four spaces. Names of functions are verbs.\n",
    "Makefile": "lint:\n\truff check .\n",
}


@dataclass
class Checkout:
    """A user's repository with the harness's own one beside it."""

    root: Path
    env: dict[str, str]

    def git(self, *args: str) -> None:
        subprocess.run(
            ["git", *args], cwd=self.root, env=self.env, check=True, capture_output=True, timeout=60
        )

    def commit(self, files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A", "-f", ":!.local")
        self.git("commit", "-q", "-m", "work")

    @property
    def local(self) -> Path:
        return self.root / ".local"

    def repository(self) -> OwnedRepository:
        owned = OwnedRepository(self.root, self.local, branch="loop/integration", env=self.env)
        owned.sync()
        return owned


@dataclass
class Reads:
    """A repository that counts the blobs that are read."""

    owned: OwnedRepository
    read: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.owned, name)

    def read_blobs(self, blobs: list[str]) -> object:
        self.read += blobs
        return self.owned.read_blobs(blobs)


@dataclass
class Bench:
    """A recall over a checkout, as one process has it."""

    checkout: Checkout
    oracle: ScriptedOracle = field(default_factory=ScriptedOracle)
    embed_model: str = ""
    current: str = "now"

    def __post_init__(self) -> None:
        self.repository = Reads(self.checkout.repository())
        self.index = SqliteMemories(self.checkout.local)
        self.log = MemoryEventLog()
        self.recaller = LocalRecall(
            self.index,
            self.repository,  # type: ignore[arg-type]
            RunHistory(self.checkout.local / "runs", self.current),
            self.oracle,
            tree=lambda: self.repository.owned.tree_of(self.repository.owned.head()),
            emit=self.log.emit,
            embed_model=self.embed_model,
        )

    def sources(self, query: str, limit: int = 3) -> list[str]:
        return [memory.source for memory in self.recaller.recall(query, limit)]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.log.events if isinstance(event, Noticed)]


Open = Callable[..., Bench]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Some One\n\temail = someone@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    root = tmp_path / "project"
    root.mkdir()
    made = Checkout(root, {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"})
    made.git("init", "-q")
    made.commit(dict(FILES))
    return made


@pytest.fixture
def bench(checkout: Checkout) -> Iterator[Open]:
    opened: list[Bench] = []

    def make(**options: object) -> Bench:
        opened.append(Bench(checkout, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for one in opened:
        one.index.close()
