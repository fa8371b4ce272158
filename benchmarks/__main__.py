"""``python -m benchmarks``: every module here that has a ``run()``, against its limit.

Each such module has ``NAME``, what is measured; ``LIMIT``, the largest ratio allowed; and
``run()``, which returns ``"ratio"`` and the raw figures in seconds by name. Ends with 1 when one
is over its limit. Module names on the command line choose among them; one with
``ONLY_WHEN_NAMED`` runs in no other way.
"""

import importlib
import pkgutil
import sys
from types import ModuleType

import benchmarks


def measured(wanted: list[str]) -> list[ModuleType]:
    """Return the modules to be run, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    unknown = sorted(set(wanted) - set(names))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [name for name in names if not name.startswith("_") and (not wanted or name in wanted)]
    modules = [importlib.import_module(f"benchmarks.{name}") for name in chosen]
    return [
        module
        for module in modules
        if hasattr(module, "run") and (wanted or not getattr(module, "ONLY_WHEN_NAMED", False))
    ]


def main(wanted: list[str]) -> int:
    """Print a line for each benchmark; return the exit code."""
    over = 0
    print(f"{'benchmark':<58} {'ratio':>7} {'limit':>7}")
    for module in measured(wanted):
        figures = dict(module.run())
        ratio = figures.pop("ratio")
        is_over = ratio > module.LIMIT
        over += is_over
        verdict = "over" if is_over else "ok"
        print(f"{module.NAME:<58} {ratio:>7.2f} {module.LIMIT:>7.2f}  {verdict}")
        print("    " + ", ".join(f"{name} {value:.3f} s" for name, value in figures.items()))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
