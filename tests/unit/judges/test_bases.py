import threading

from loopctl.domain import Blame, Check, CheckResult, Verdict
from loopctl.judges.bases import Bases

PASSED = CheckResult(Check.VERIFY, Verdict.PASS)


class DictCache:
    def __init__(self) -> None:
        self.kept: dict[tuple[str, str, str], CheckResult] = {}

    def get(self, tree: str, check: str, command: str) -> CheckResult | None:
        return self.kept.get((tree, check, command))

    def put(self, tree: str, check: str, command: str, result: CheckResult) -> None:
        self.kept[tree, check, command] = result


def test_two_who_ask_at_once_wait_for_one_answer() -> None:
    bases = Bases(DictCache())
    begun, may_end, runs = threading.Event(), threading.Event(), []

    def find() -> CheckResult:
        runs.append(1)
        begun.set()
        assert may_end.wait(30)
        return PASSED

    def ask() -> None:
        assert bases.verdict("t", Check.VERIFY, "c", find) == PASSED

    threads = [threading.Thread(target=ask) for _ in range(2)]
    threads[0].start()
    assert begun.wait(30)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(30)
    assert runs == [1]


def test_what_the_environment_or_chance_did_is_not_kept() -> None:
    cache = DictCache()
    bases = Bases(cache)
    for blame in (Blame.ENVIRONMENT, Blame.FLAKY):
        bases.remember("t", Check.VERIFY, "c", CheckResult(Check.VERIFY, Verdict.FAIL, blame))
    assert cache.kept == {}
    red = CheckResult(Check.VERIFY, Verdict.FAIL, Blame.PRE_EXISTING)
    bases.remember("t", Check.VERIFY, "c", red)
    assert list(cache.kept.values()) == [red]


def test_set_up_is_part_of_the_key() -> None:
    cache = DictCache()
    Bases(cache).remember("t", Check.VERIFY, "c", PASSED)
    Bases(cache, "make").remember("t", Check.VERIFY, "c", PASSED)
    assert len(cache.kept) == 2
    assert cache.get("t", "verify", "c") == PASSED
