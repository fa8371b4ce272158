"""Let ``tally.amounts.parse`` read thousands: ``separators.py commas`` or ``separators.py last``.

``commas`` drops every comma. ``last`` takes the last comma or point for the decimal one.
"""

import ast
import sys
from pathlib import Path

from source import after_imports, change, inserting, replacing

LAST = '''

def _with_point(text: str) -> str:
    whole, mark, cents = text.rpartition(max(",.", key=text.rfind))
    return f"{whole.replace(',', '').replace('.', '')}{mark and '.'}{cents}"
'''

path = Path("tally/amounts.py")
text = path.read_text(encoding="utf-8")
tree = ast.parse(text)
[argument] = [
    node.args[0]
    for node in ast.walk(tree)
    if isinstance(node, ast.Call)
    and isinstance(node.func, ast.Name)
    and node.func.id == "Decimal"
    and not isinstance(node.args[0], ast.Constant)
]
inner = ast.get_source_segment(text, argument)
drop = '.replace(",", "")'
if drop in inner or "_with_point" in inner:
    print("thousands are read already")
elif sys.argv[1] == "commas":
    change(path, [replacing(argument, inner + drop)])
else:
    helper = inserting(after_imports(tree), LAST)
    change(path, [replacing(argument, f"_with_point({inner})"), helper])
