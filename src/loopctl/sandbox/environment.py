"""What a command may know of the caller's environment, and the folder its ``loop`` is found in."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

_FIXED = {
    "TERM": "dumb",
    "CI": "1",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    # Byte code beside the sources would enter the diff of a project that does not ignore it.
    "PYTHONDONTWRITEBYTECODE": "1",
    # What a command says must come in the order in which it says it, and not be lost by a kill.
    "PYTHONUNBUFFERED": "1",
}
_ALLOWED = frozenset(
    [
        "LANG",
        "LANGUAGE",
        "TZ",
        "USER",
        "LOGNAME",
        "SHELL",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "JAVA_HOME",
        "JDK_HOME",
        "GOROOT",
        "GOPATH",
        "GOMODCACHE",
        "GOTOOLCHAIN",
        "GRADLE_HOME",
        "M2_HOME",
        "MAVEN_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "CARGO_HOME",
        "PYENV_ROOT",
        "PYENV_VERSION",
        "RBENV_ROOT",
        "RBENV_VERSION",
        "NVM_DIR",
        "NVM_BIN",
        "NODENV_ROOT",
        "FNM_DIR",
        "VOLTA_HOME",
        "BUN_INSTALL",
        "DENO_DIR",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_DATA_DIR",
        "SDKMAN_DIR",
        "DOTNET_ROOT",
        "ANDROID_HOME",
        "UV_PYTHON_INSTALL_DIR",
        "CC",
        "CXX",
        "LD",
        "AR",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "PKG_CONFIG_PATH",
        "CMAKE_PREFIX_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NIX_PROFILES",
        "NIX_SSL_CERT_FILE",
    ]
)
_DENIED = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|^LD_|^PYTHON|^NODE_OPTIONS$|^GIT_", re.IGNORECASE
)
_UNDER_HOME = {
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "RUSTUP_HOME": ".rustup",
    "CARGO_HOME": ".cargo",
    "NVM_DIR": ".nvm",
    "ASDF_DATA_DIR": ".asdf",
    "VOLTA_HOME": ".volta",
    "SDKMAN_DIR": ".sdkman",
    "GOPATH": "go",
    "MISE_DATA_DIR": ".local/share/mise",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
}
_GITCONFIG = """\
[user]
\tname = worker
\temail = worker@localhost
[init]
\tdefaultBranch = main
[gc]
\tauto = 0
"""


def command_environment(
    caller: Mapping[str, str],
    extra: Mapping[str, str],
    *,
    shim: Path,
    home: Path,
    scratch: Path,
) -> dict[str, str]:
    """Return the whole environment of a command.

    Args:
        caller: The harness's own environment. Its toolchain variables pass; what may hold a secret
            or changes how programs load code does not.
        extra: Added at the end, unchecked: the harness's own variables.
        shim: The folder that holds ``loop``; comes first on the PATH.
        home: A private folder. The toolchains below the caller's own HOME are still found, since
            they are named by their variables.
        scratch: A private folder for temporary files.
    """
    passed = {
        name: value
        for name, value in caller.items()
        if (name in _ALLOWED or name.startswith("LC_")) and not _DENIED.search(name)
    }
    path = caller.get("PATH") or os.defpath
    return {
        "LANG": "C.UTF-8",
        **_toolchains(caller),
        **passed,
        **_FIXED,
        "PATH": f"{shim}{os.pathsep}{path}",
        "HOME": str(home),
        "TMPDIR": str(scratch),
        **extra,
    }


def write_shim(folder: Path) -> Path:
    """Return ``folder``, with a ``loop`` in it that is this very installation."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = folder / "loop"
    # -P: the worktree may hold a folder named loopctl, which must not be taken for the harness.
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m loopctl "$@"\n'
    if not program.is_file() or program.read_text() != text:
        fresh = folder / f"loop.{os.getpid()}"
        fresh.write_text(text)
        fresh.chmod(0o700)
        fresh.replace(program)
    return folder


def write_home(home: Path) -> None:
    """Make a private HOME in which tests can commit to repositories of their own."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / ".gitconfig").write_text(_GITCONFIG)


def _toolchains(caller: Mapping[str, str]) -> dict[str, str]:
    home = caller.get("HOME")
    if not home:
        return {}
    roots = {name: Path(home, folder) for name, folder in _UNDER_HOME.items()}
    return {name: str(root) for name, root in roots.items() if root.is_dir()}
