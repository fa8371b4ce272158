# ruff: noqa: INP001 - no package: Python imports it by name from a PYTHONPATH of this folder
"""Has unittest leave a machine-read account of what it counted, in any Python below a command.

Python imports a module of this name at its start. It needs nothing but the standard library, and
costs next to nothing until unittest is imported. One JSON line is appended when unittest begins
and one when it ends; what unittest starts in its turn, in this process or in others, reports
nothing. A ``sitecustomize`` that this one stands in front of is run after it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAMES = ("LOOP_TEST_REPORT", "LOOP_TEST_TOKEN")
_CAUSE_CHARS = 200
_MOST_CAUSES = 200
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib starts slowly


class _Account:
    """What the outermost use of unittest in this process has done so far."""

    def __init__(self) -> None:
        self.uses = 0
        self.runs = 0
        self.pid = 0
        self.held: dict[str, str] = {}
        self.told: list[dict[str, Any]] = []

    def begin(self) -> None:
        self.uses += 1
        if self.uses > 1:
            return
        self.pid, self.told = os.getpid(), []
        self.held = {name: os.environ.pop(name) for name in _NAMES if name in os.environ}
        self.write("began")

    def end(self) -> None:
        self.uses -= 1
        if self.uses or os.getpid() != self.pid:
            return
        if self.told:
            sums = {
                key: sum((one[key] for one in self.told[1:]), self.told[0][key])
                for key in self.told[0]
            }
            sums["exit"] = int(any(one["exit"] for one in self.told))
            self.write("ended", **sums, replaced=_replaced())
        os.environ.update(self.held)

    def run(self, work: Callable[[], Any], suite: Any, found: Callable[[Any], Any]) -> Any:
        """Do the work; tell of its result where no other run is around this one."""
        counted = _count(suite)
        self.begin()
        self.runs += 1
        result = None
        try:
            result = work()
            return result
        finally:
            self.runs -= 1
            if self.runs == 0 and (ended := found(result)) is not None:
                self.told.append(_told(counted, ended))
            self.end()

    def write(self, event: str, **fields: Any) -> None:
        path = self.held.get("LOOP_TEST_REPORT")
        if not path:
            return
        import json  # noqa: PLC0415 - not before it is needed: every Python imports this module

        fields.update(event=event, token=self.held.get("LOOP_TEST_TOKEN", ""), pid=os.getpid())
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, (json.dumps(fields, sort_keys=True) + "\n").encode("ascii"))
        finally:
            os.close(handle)


_account = _Account()


def _replaced() -> list[str]:
    from loopctl_originals import replaced  # noqa: PLC0415 - as for json

    names: list[str] = replaced()
    return names


def _count(suite: Any) -> int:
    try:
        return int(suite.countTestCases())
    except Exception:  # noqa: BLE001 - a suite of the project's own may do anything
        return 0


def _told(counted: int, result: Any) -> dict[str, Any]:
    """Return the counts of a result; a class or module that broke as a whole is one more failure."""
    seen: set[str] = set()
    whole: set[str] = set()
    sets: dict[str, set[str]] = {}
    causes: dict[str, str] = {}
    for kind in ("failures", "errors", "unexpectedSuccesses", "skipped", "expectedFailures"):
        sets[kind] = set()
        for entry in getattr(result, kind, ()):
            test = entry[0] if isinstance(entry, tuple) else entry
            name = _name(test)
            (whole if type(test).__name__ == "_ErrorHolder" else seen).add(name)
            sets[kind].add(name)
            if kind in {"failures", "errors"} and isinstance(entry, tuple):
                causes.setdefault(name, _cause(entry[1]))
    failed = sets["failures"] | sets["errors"] | sets["unexpectedSuccesses"]
    skipped = sets["skipped"] - failed
    xfailed = sets["expectedFailures"] - failed - skipped
    ran = int(getattr(result, "testsRun", 0))
    return {
        "exit": 0 if result.wasSuccessful() else 1,
        "collected": max(counted, ran),
        "passed": max(ran - len(seen), 0),
        "skipped": len(skipped),
        "xfailed": len(xfailed),
        "failed": sorted(failed),
        "causes": sorted(causes.items())[:_MOST_CAUSES],
    }


def _cause(trace: Any) -> str:
    """Return the error that ends a traceback, in one line."""
    lines = [line for line in str(trace).splitlines() if line and not line[0].isspace()]
    errors = [line for line in lines if line.split(":")[0].rpartition(".")[2].isidentifier()]
    return (errors[-1] if errors else "")[:_CAUSE_CHARS]


def _name(test: Any) -> str:
    """Return the id of a test; the parts that one test tells apart count as that test."""
    test = getattr(test, "test_case", test)
    named = getattr(test, "id", None)
    return str(named() if callable(named) else test)


def _around(module: Any) -> None:
    """Put the account around what unittest's main module defines."""
    program, runner = module.TestProgram, module.runner.TextTestRunner
    begins, runs, run = program.__init__, program.runTests, runner.run

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - in its place
        _account.begin()
        try:
            begins(self, *args, **kwargs)
        finally:
            _account.end()

    def run_tests(self: Any) -> None:
        # A runner that is none of unittest's own leaves its result here all the same.
        _account.run(lambda: runs(self), self.test, lambda _: getattr(self, "result", None))

    def run_suite(self: Any, test: Any) -> Any:
        return _account.run(lambda: run(self, test), test, lambda result: result)

    program.__init__, program.runTests, runner.run = __init__, run_tests, run_suite
    from loopctl_originals import hold  # noqa: PLC0415 - every Python imports this module

    # Nobody but us has had unittest in hand so far: this is the last of its modules to be loaded.
    hold("unittest")


class _Watch:
    """Waits for unittest's main module; that of the project, in its place, reports nothing."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's spec, whose loader puts the account around it."""
        if name != "unittest.main":
            return None
        sys.meta_path.remove(cls)
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = spec.loader if spec is not None else None
        if spec is None or loader is None or not _is_pythons(spec.origin):
            return spec
        loads = loader.exec_module

        def exec_module(module: Any) -> None:
            loads(module)
            _around(module)

        loader.exec_module = exec_module
        return spec


def _is_pythons(origin: str | None) -> bool:
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    return os.path.dirname(os.path.dirname(os.path.abspath(origin or ""))) == library  # noqa: PTH100, PTH120


def _others() -> Iterator[str]:
    for path in sys.path:
        if os.path.abspath(path or os.curdir) != _HERE:  # noqa: PTH100
            yield path


def _run_next() -> None:
    """Run the ``sitecustomize`` that would be imported without this one, if there is one."""
    spec = PathFinder.find_spec("sitecustomize", list(_others()))
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if all(name in os.environ for name in _NAMES):
    sys.meta_path.insert(0, _Watch)
_run_next()
