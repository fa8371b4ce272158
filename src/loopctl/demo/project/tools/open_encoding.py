"""Give every ``open`` in ``tally/`` that names no encoding the one on the command line."""

import ast
import sys
from pathlib import Path

from source import Edit, change

for path in sorted(Path("tally").glob("*.py")):
    edits = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_open = isinstance(node, ast.Call) and ast.unparse(node.func) == "open"
        if is_open and "encoding" not in {keyword.arg for keyword in node.keywords}:
            end = (node.end_lineno, node.end_col_offset - 1)
            edits.append(Edit(end, end, f', encoding="{sys.argv[1]}"'))
    if change(path, edits):
        print(f"{path} is read as {sys.argv[1]} now")
