"""Small Python programs with one wrong line each, and the tests that show it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class TinyBug:
    """One program.

    Attributes:
        name: Of its module, ``NAME.py``; its tests are ``tests/test_NAME.py``.
        right: The whole module without the flaw.
        good: The line that the flaw stands in, as it should be; stands in ``right`` once.
        bad: What stands there instead.
        wrong: Another line for that place, which is no mending either.
        tests: The whole test module.
    """

    name: str
    right: str
    good: str
    bad: str
    wrong: str
    tests: str

    @property
    def broken(self) -> str:
        """The module with its flaw."""
        return self.right.replace(self.good, self.bad)

    @property
    def miss(self) -> str:
        """The module after a mending that is none."""
        return self.right.replace(self.good, self.wrong)

    @property
    def files(self) -> dict[str, str]:
        """The project to begin from, by path."""
        return {
            f"{self.name}.py": self.broken,
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
            f"tests/test_{self.name}.py": self.tests,
        }


def _bug(name: str, right: str, line: tuple[str, str, str], *asserts: str) -> TinyBug:
    good, bad, wrong = line
    tests = "\n\n".join(
        f"def test_{name}_{number}():\n    assert {one}\n" for number, one in enumerate(asserts, 1)
    )
    return TinyBug(name, right, good, bad, wrong, f"from {name} import {name}\n\n\n{tests}")


BUGS: Final = (
    _bug(
        "clip",
        "def clip(value, low, high):\n    return max(low, min(value, high))\n",
        ("max(low, min(value, high))", "min(low, max(value, high))", "max(low, value)"),
        "clip(5, 0, 3) == 3", "clip(-1, 0, 3) == 0", "clip(2, 0, 3) == 2",
    ),
    _bug(
        "leap",
        "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
        ("(year % 100 != 0 or year % 400 == 0)", "year % 100 != 0", "year % 400 == 0"),
        "leap(2024)", "not leap(1900)", "leap(2000)",
    ),
    _bug(
        "runs",
        "def runs(text):\n    out = []\n    for letter in text:\n"
        "        if out and out[-1][0] == letter:\n            out[-1][1] += 1\n"
        "        else:\n            out.append([letter, 1])\n    return out\n",
        ("out.append([letter, 1])", "out.append([letter, 0])", "out.append([letter, 2])"),
        "runs('') == []", "runs('aab') == [['a', 2], ['b', 1]]",
    ),
    _bug(
        "chunks",
        "def chunks(items, size):\n"
        "    return [items[at:at + size] for at in range(0, len(items), size)]\n",
        ("range(0, len(items), size)", "range(0, len(items) - size, size)", "range(len(items))"),
        "chunks([1, 2, 3], 2) == [[1, 2], [3]]", "chunks([], 2) == []",
    ),
    _bug(
        "middle",
        "def middle(numbers):\n    ranked = sorted(numbers)\n    half = len(ranked) // 2\n"
        "    if len(ranked) % 2:\n        return ranked[half]\n"
        "    return (ranked[half - 1] + ranked[half]) / 2\n",
        ("ranked = sorted(numbers)", "ranked = list(numbers)", "ranked = numbers[::-1]"),
        "middle([3, 1, 2]) == 2", "middle([4, 1, 3, 2]) == 2.5",
    ),
    _bug(
        "common",
        "def common(a, b):\n    while b:\n        a, b = b, a % b\n    return a\n",
        ("a, b = b, a % b", "a, b = b, a // b", "a, b = b, b - 1"),
        "common(12, 18) == 6", "common(7, 0) == 7", "common(35, 21) == 7",
    ),
    _bug(
        "balanced",
        "def balanced(text):\n    depth = 0\n    for mark in text:\n"
        "        depth += {'(': 1, ')': -1}.get(mark, 0)\n        if depth < 0:\n"
        "            return False\n    return depth == 0\n",
        ("return depth == 0", "return True", "return depth >= 0"),
        "balanced('(a)(b)')", "not balanced('((')", "not balanced(')(')",
    ),
    _bug(
        "find",
        "def find(ranked, wanted):\n    low, high = 0, len(ranked)\n    while low < high:\n"
        "        at = (low + high) // 2\n        if ranked[at] < wanted:\n"
        "            low = at + 1\n        else:\n            high = at\n"
        "    return low if low < len(ranked) and ranked[low] == wanted else -1\n",
        ("low, high = 0, len(ranked)", "low, high = 1, len(ranked)", "low, high = 0, 1"),
        "find([1, 3, 5], 1) == 0", "find([1, 3, 5], 5) == 2", "find([1, 3], 2) == -1",
    ),
    _bug(
        "flat",
        "def flat(nested):\n    out = []\n    for item in nested:\n"
        "        out.extend(flat(item) if isinstance(item, list) else [item])\n    return out\n",
        ("flat(item) if", "item if", "[] if"),
        "flat([1, [2, [3]]]) == [1, 2, 3]", "flat([]) == []",
    ),
    _bug(
        "roman",
        "VALUES = {'I': 1, 'V': 5, 'X': 10, 'L': 50}\n\n\ndef roman(text):\n    total = 0\n"
        "    for here, after in zip(text, text[1:] + ' '):\n        value = VALUES[here]\n"
        "        total += -value if value < VALUES.get(after, 0) else value\n    return total\n",
        ("-value if value <", "-value if value <=", "value if value <"),
        "roman('XIV') == 14", "roman('III') == 3", "roman('XL') == 40",
    ),
    _bug(
        "unique",
        "def unique(items):\n    seen = []\n    for item in items:\n"
        "        if item not in seen:\n            seen.append(item)\n    return seen\n",
        ("if item not in seen:", "if item in seen:", "if item != seen[-1:]:"),
        "unique([2, 1, 2]) == [2, 1]", "unique([]) == []",
    ),
    _bug(
        "mean",
        "def mean(numbers):\n    return sum(numbers) / len(numbers) if numbers else 0\n",
        ("sum(numbers) / len(numbers)", "sum(numbers) // len(numbers)", "sum(numbers) / 2"),
        "mean([1, 2]) == 1.5", "mean([]) == 0", "mean([1, 1, 4]) == 2",
    ),
    _bug(
        "rotate",
        "def rotate(items, by):\n    by = by % len(items) if items else 0\n"
        "    return items[by:] + items[:by]\n",
        ("items[by:] + items[:by]", "items[by:] + items[by:]", "items[:by] + items[by:]"),
        "rotate([1, 2, 3], 1) == [2, 3, 1]", "rotate([], 4) == []",
    ),
    _bug(
        "slug",
        "import re\n\n\ndef slug(title):\n"
        "    return re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')\n",
        (".strip('-')", ".strip()", ".lstrip('-')"),
        "slug('Hello, World!') == 'hello-world'", "slug('  a b') == 'a-b'",
    ),
)  # fmt: skip
"""Fourteen, each red as it begins and after the wrong mending, and green after the right one."""

RUNNER: Final = """\
import importlib.util, pathlib, sys
sys.path.insert(0, ".")
red = []
for path in sorted(pathlib.Path("tests").glob("test_*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, test in sorted(vars(module).items()):
        if name.startswith("test_"):
            try:
                test()
            except Exception as error:
                red.append(f"FAILED {path}::{name} - {error!r}")
print(*red, sep="\\n")
sys.exit(bool(red))
"""
"""Runs the tests below ``tests``, and starts many times faster than pytest."""
