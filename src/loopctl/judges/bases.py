"""What is known of trees from earlier, so that a base is judged once."""

from collections.abc import Callable
from threading import Lock
from weakref import WeakValueDictionary

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
        # Each is gone when nobody holds or waits for it any more: every landing is another tree.
        self._turns: WeakValueDictionary[tuple[str, str, str], _Turn] = WeakValueDictionary()

    def verdict(
        self, tree: str, check: Check, command: str, find: Callable[[], CheckResult]
    ) -> CheckResult:
        """Return what is known of ``tree``; where that is nothing, what ``find`` returns.

        Two callers who ask the same at once wait for one answer.
        """
        turn = self._turn(tree, check, command)
        with turn.lock:
            known = self._cache.get(tree, check.value, self._named(command))
            if known is None:
                known = find()
                self.remember(tree, check, command, known)
        return known

    def remember(self, tree: str, check: Check, command: str, result: CheckResult) -> None:
        """Keep what was found, unless it says more of the machine than of the tree."""
        if result.blame not in {Blame.ENVIRONMENT, Blame.FLAKY}:
            self._cache.put(tree, check.value, self._named(command), result)

    def _turn(self, tree: str, check: Check, command: str) -> "_Turn":
        with self._guard:
            return self._turns.setdefault((tree, check.value, command), _Turn())

    def _named(self, command: str) -> str:
        return f"{command}\n# setup: {self._setup_cmd}" if self._setup_cmd else command


class _Turn:
    """Held by those who find out the same, one after the other."""

    def __init__(self) -> None:
        self.lock = Lock()
