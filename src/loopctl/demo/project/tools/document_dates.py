"""Say in the README how a date is read that can be read in two ways: ask the code."""

import sys
from pathlib import Path

sys.path.insert(0, ".")

from tally import dates

EXAMPLE = "03/04/2026"
path = Path("README.md")
text = path.read_text(encoding="utf-8")
old = "One that can be read in two ways is refused."
new = f"The {dates.FIRST} comes first: {EXAMPLE} is {dates.parse(EXAMPLE).isoformat()}."
path.write_text(text.replace(old, new), encoding="utf-8")
