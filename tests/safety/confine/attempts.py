"""Runs attempts, each in a process of its own, and prints how each ended: 0 is "got out".

Called with a file of ``{name: [kind, text]}``; ``sh`` is for a shell, ``py`` is Python.
"""

import json
import subprocess
import sys

PRELUDE = """\
import ctypes, os, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *words):
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), name)
"""


def main(table: str) -> None:
    """Print a JSON object of exit codes and what was said, by name."""
    with open(table, encoding="utf-8") as file:  # noqa: PTH123 - starts fast
        attempts = json.load(file)
    ended = {}
    for name, (kind, text) in attempts.items():
        shell = ["sh", "-c", text]
        argv = shell if kind == "sh" else [sys.executable, "-S", "-E", "-c", PRELUDE + text]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
        )
        said = (done.stdout + done.stderr).decode(errors="replace")
        ended[name] = [done.returncode, said[-2000:]]
    print(json.dumps(ended))


if __name__ == "__main__":
    main(sys.argv[1])
