"""Write down which number of a date like 03/04/2026 comes first, as a person decided it.

Exit code 3: the answer says neither day nor month, so there is nothing to write.
"""

import ast
import re
import sys
from pathlib import Path

from source import change, replacing

answer = " ".join(sys.argv[1:]).lower()
named = set(re.findall(r"\b(day|month)s?\b", answer))
if len(named) == 2:
    named = set(re.findall(r"\b(day|month)s?\W+(?:comes\W+)?first\b", answer))
if len(named) != 1:
    print(f"{answer!r} does not say whether the day or the month comes first")
    raise SystemExit(3)
[first] = named
path = Path("tally/dates.py")
[value] = [
    node.value
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FIRST"
]
change(path, [replacing(value, f'"{first}"')])
print(f"the {first} comes first")
