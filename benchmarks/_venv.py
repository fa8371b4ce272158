"""An environment of its own for what is only compared with: made once, below the temporary folder."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def python_with(requirement: str) -> Path:
    """Return the interpreter of an environment that has ``requirement`` (``NAME==VERSION``).

    Raises:
        subprocess.CalledProcessError: It cannot be installed; no half of it is left behind.
    """
    user = Path.home().name
    folder = Path(tempfile.gettempdir()) / f"loop-bench-{user}" / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    is_whole = folder / "whole"
    if not is_whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", requirement], check=True)
        is_whole.touch()
    return python
