"""Count in ``Decimal`` where ``tally/`` counts in ``float``: names, annotations and literals."""

import ast
from pathlib import Path

from source import Edit, after_imports, change, inserting, replacing


def edits(text: str) -> list[Edit]:
    """Return what has to change in one module."""
    tree = ast.parse(text)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "float":
            found.append(replacing(node, "Decimal"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            found.append(replacing(node, f'Decimal("{node.value}")'))
    if found:
        found.append(inserting(after_imports(tree), "from decimal import Decimal\n"))
    return found


for path in sorted(Path("tally").glob("*.py")):
    if change(path, edits(path.read_text(encoding="utf-8"))):
        print(f"{path} counts in Decimal now")
