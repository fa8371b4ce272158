"""What is known of trees from earlier, so that a base is judged once."""

from collections.abc import Callable
from threading import Lock

from loopctl.storeports import VerdictCache
from loopctl.verdict import Blame, Check, CheckResult


class Bases:
    """Verdicts on trees, each found out once for each check and command.

    What an environment's fault or a flaky run told is never kept. ``setup_cmd`` is part of what
    a verdict depends on, so another one makes another entry.
    """

    def __init__(self, cache: VerdictCache, setup_cmd: str = "") -> None:
        self._cache = cache
        self._setup_cmd = setup_cmd
        self._guard = Lock()
        self._locks: dict[tuple[str, str, str], Lock] = {}

    def verdict(
        self, tree: str, check: Check, command: str, find: Callable[[], CheckResult]
    ) -> CheckResult:
        """Return what is known of ``tree``; where that is nothing, what ``find`` returns.

        Two callers who ask the same at once wait for one answer.
        """
        with self._lock(tree, check, command):
            known = self._cache.get(tree, check.value, self._named(command))
            if known is None:
                known = find()
                self.remember(tree, check, command, known)
        return known

    def remember(self, tree: str, check: Check, command: str, result: CheckResult) -> None:
        """Keep what was found, unless it says more of the machine than of the tree."""
        if result.blame not in {Blame.ENVIRONMENT, Blame.FLAKY}:
            self._cache.put(tree, check.value, self._named(command), result)

    def _lock(self, tree: str, check: Check, command: str) -> Lock:
        with self._guard:
            return self._locks.setdefault((tree, check.value, command), Lock())

    def _named(self, command: str) -> str:
        return f"{command}\n# setup: {self._setup_cmd}" if self._setup_cmd else command
