"""Let handlers in ``tally/`` that swallow an error raise another one instead.

``raise_errors.py 'RowError(records.line_num, exc)'`` looks at bare ``except:`` handlers only;
``--broad`` adds ``except Exception:``, which swallows as much.
"""

import argparse
import ast
from pathlib import Path

from source import change, replacing

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("error", help="the exception to raise; the one that was caught is `exc`")
parser.add_argument("--broad", action="store_true", help="`except Exception:` as well")
options = parser.parse_args()


def swallows(node: ast.AST) -> bool:
    """Return whether ``node`` is a handler that drops whatever was raised."""
    if not isinstance(node, ast.ExceptHandler) or not isinstance(node.body[0], ast.Pass):
        return False
    caught = ast.unparse(node.type) if node.type else ""
    return caught == "" or options.broad and caught == "Exception"


changed = 0
for path in sorted(Path("tally").glob("*.py")):
    handlers = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if swallows(node)
    ]
    edits = []
    for node in handlers:
        indent = " " * node.body[0].col_offset
        text = f"except Exception as exc:\n{indent}raise {options.error} from exc"
        edits.append(replacing(node, text))
    changed += change(path, edits)
looked_for = "`except:` and `except Exception:`" if options.broad else "`except:`"
print(f"{changed} handlers changed; looked for {looked_for} that pass")
