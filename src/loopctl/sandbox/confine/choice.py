"""Finds out by trying what can keep commands inside here, and makes it for a repository."""

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import loopctl
from loopctl.errors import MachineError, SandboxError
from loopctl.ports import Confinement
from loopctl.sandbox import process
from loopctl.sandbox.confine.bubblewrap import Bubblewrap
from loopctl.sandbox.confine.none import Unconfined
from loopctl.sandbox.owned import Layout
from loopctl.settings import SandboxSettings

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
test -z "$(tail -n +3 /proc/net/dev | grep -v '^ *lo:')" || exit 13
echo out 2>/dev/null > .git && exit 14
exit 0
"""
_FAULTS: Final = {
    11: "the worktree could not be written",
    12: "commands keep capabilities",
    13: "commands keep the network",
    14: "what is read-only can be written",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found by trying.

    Attributes:
        program: ``bwrap``, where it holds commands here; else empty.
        why: Why nothing holds here.
        mend: What makes it hold, as a command where one does.
    """

    program: str
    why: str = ""
    mend: str = ""


def choose(
    settings: SandboxSettings, checkout: Path, layout: Layout, env: Mapping[str, str]
) -> Confinement:
    """Return what keeps commands of the worktrees of a checkout inside.

    Raises:
        MachineError: Confinement is required, and nothing holds here; says what mends it.
    """
    if settings.confine == "off":
        return Unconfined()
    trial = tried(env)
    if not trial.program:
        if settings.confine == "require":
            raise MachineError(
                f'sandbox.confine = "require", and {trial.why}; {trial.mend} '
                '(or set it to "auto": commands can do what you can then, which the report says)'
            )
        return Unconfined(f"{trial.why}; {trial.mend}")
    return Bubblewrap(
        trial.program,
        checkout,
        layout.git_dir,
        layout.shim,
        env,
        own=_own_places(),
        share=settings.share,
        read=settings.read,
        write=settings.write,
        network=settings.network,
    )


def tried(env: Mapping[str, str]) -> Trial:
    """Return what holds commands here, by starting one confined, once in a process."""
    path = os.pathsep.join((env.get("PATH") or os.defpath, _SYSTEM_PATH))
    program = shutil.which("bwrap", path=path)
    if program is not None:
        return _tried(program)
    if sys.platform != "linux":
        return Trial("", "confinement needs Linux", "run loop in a Linux container or machine")
    mend = next(
        (words for name, words in _INSTALL.items() if shutil.which(name, path=path)),
        "install bubblewrap",
    )
    return Trial("", "bubblewrap is not installed", _as_command(mend))


@lru_cache(maxsize=8)
def _tried(program: str) -> Trial:
    try:
        said = _fault(program)
    except (OSError, SandboxError) as error:
        said = str(error)
    return Trial(program) if not said else Trial("", f"{program} does not hold: {said}", _mend())


def _fault(program: str) -> str:
    """Return what was wrong with a confined command that tried to get out; empty for nothing."""
    with tempfile.TemporaryDirectory(prefix="loop-trial-") as name:
        root = Path(name)
        checkout, work, writable = root / "checkout", root / "work", root / "writable"
        layout = Layout(checkout / ".local")
        for folder in (layout.git_dir, layout.shim, work, writable):
            folder.mkdir(parents=True)
        outside = checkout / "outside"
        (work / ".git").write_text("")
        held = Bubblewrap(program, checkout, layout.git_dir, layout.shim, {"PATH": _SYSTEM_PATH})
        ended = process.run(
            held.wrap(["sh", "-c", _PROBE], workdir=work, writable=[writable]),
            cwd=work,
            env={
                "PATH": _SYSTEM_PATH,
                "OUTSIDE": str(root / "outside"),
                "WRITABLE": str(writable),
                "LC_ALL": "C",
            },
            timeout_s=_LIMIT_S,
            merge_stderr=True,
            is_trusted=True,
        )
        if ended.returncode != 0:
            lines = ended.stdout.decode(errors="replace").strip().splitlines()
            said = lines[-1] if lines else f"it ended with {ended.returncode}"
            return _FAULTS.get(ended.returncode, said)
        if (root / "outside").exists() or outside.exists():
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


def _own_places() -> tuple[Path, ...]:
    """Return what ``loop`` itself runs from, which the ``loop`` of commands needs."""
    package = Path(loopctl.__file__).parent
    return (Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.prefix)), package)
