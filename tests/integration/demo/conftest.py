"""Git for the demo's tests, away from the settings of whoever runs them."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


@pytest.fixture
def git_in() -> Callable[[Path], Callable[[Sequence[str]], str]]:
    """Return what makes a git that runs in a folder, returns what it says, and raises."""

    def bind(folder: Path) -> Callable[[Sequence[str]], str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

        def git(words: Sequence[str]) -> str:
            return subprocess.run(
                ["git", *words],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout

        return git

    return bind
