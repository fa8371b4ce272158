"""Let ``tally.__version__`` say the version that pyproject.toml says."""

import re
import tomllib
from pathlib import Path

version = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
path = Path("tally/__init__.py")
text = path.read_text(encoding="utf-8")
text = re.sub(r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"', text)
path.write_text(text, encoding="utf-8")
print(f"__version__ is {version}")
