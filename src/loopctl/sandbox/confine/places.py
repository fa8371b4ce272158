"""Which folders of the machine a confined command may read, and which it never may.

System folders are read whole, but for ``/etc``, of which a list is: root inside could read what is
root's. Of a home folder only toolchains can be seen, and of them not the files that hold keys.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix")
ETC: Final = (
    *("passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "host.conf", "gai.conf"),
    *("protocols", "services", "localtime", "timezone", "locale.alias", "locale.conf"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl", "pki", "mime.types"),
    *("ca-certificates", "ca-certificates.conf", "fonts", "java", "java-11-openjdk", "terminfo"),
    *("java-17-openjdk", "java-21-openjdk", "python3", "perl", "profile", "shells", "os-release"),
    *("debian_version", "lsb-release", "machine-id", "magic", "inputrc", "bash.bashrc"),
)
"""Below ``/etc``: what programs need to start, find names, and trust certificates."""

TOOLCHAINS: Final = (
    *(".pyenv", ".rbenv", ".nodenv", ".goenv", ".nvm", ".fnm", ".asdf", ".volta", ".sdkman"),
    *(".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", ".local/bin"),
    *(".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/mise", ".bun/bin"),
    *(".local/share/fnm", ".local/share/pnpm", ".local/share/rtx", ".local/lib", ".deno/bin"),
    *(".npm-global", ".yarn/bin", "go/bin", "go/pkg", ".ghcup/bin", ".ghcup/ghc", ".juliaup"),
    *(".gem/ruby", ".poetry/bin", ".local/share/pypoetry", ".rye", ".pixi/bin", ".dotnet"),
    *("miniconda3", "miniforge3", "mambaforge", "anaconda3"),
)
"""Below a home folder."""

KEYS: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh"),
    *(".config/hub", ".config/op", ".config/doctl", ".config/rclone", ".config/sops", ".netrc"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".terraform.d"),
    *(".terraformrc", ".vault-token", ".pgpass", ".my.cnf", ".boto", ".s3cfg", ".password-store"),
    *(".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".thunderbird", ".claude", ".claude.json", ".codex", ".gemini"),
    *(".config/anthropic", ".config/openai", ".huggingface/token", ".cache/huggingface/token"),
    *(".local/share/uv/credentials", ".config/pypoetry/auth.toml", ".m2/settings.xml", ".env"),
    *(".gradle/gradle.properties", ".config/containers/auth.json", ".bash_history", ".zsh_history"),
    *(".python_history", ".psql_history", ".node_repl_history"),
)
"""Below a home folder: what holds keys stays out of sight, even below what is to be read."""

_PARTS: Final = ("bin", "lib", "lib64", "libexec", "include", "share")


def readable(env: Mapping[str, str], home: Path, own: Iterable[Path]) -> tuple[Path, ...]:
    """Return the places outside the system's folders that tools need, parents first.

    Args:
        env: The caller's environment, for its PATH.
        home: The caller's home folder.
        own: What this harness itself runs from.
    """
    found: dict[Path, None] = {}
    for place in (*_of_path(env), *(home / name for name in TOOLCHAINS), *own):
        for each in {place, Path(os.path.realpath(place))}:
            if each.exists() and is_mountable(each, home):
                found[each] = None
    return outermost(found)


def is_mountable(place: Path, home: Path) -> bool:
    """Return whether a place may be shown as a whole: no home folder, nothing above one."""
    homes = {home, Path(os.path.realpath(home))}
    if place == Path("/") or any(each == place or place in each.parents for each in homes):
        return False
    return not any(place == Path(root) or Path(root) in place.parents for root in SYSTEM)


def outermost(places: Iterable[Path]) -> tuple[Path, ...]:
    """Return the places that lie below no other one, sorted."""
    kept: list[Path] = []
    for place in sorted(set(places)):
        if not any(other in place.parents for other in kept):
            kept.append(place)
    return tuple(kept)


def keys_below(places: Iterable[Path], home: Path) -> tuple[Path, ...]:
    """Return what holds keys and lies in one of the places."""
    homes = {home, Path(os.path.realpath(home))}
    wanted = tuple(places)
    return tuple(
        sorted(
            key
            for each in homes
            for key in (each / name for name in KEYS)
            if os.path.lexists(key) and any(key == one or one in key.parents for one in wanted)
        )
    )


def _of_path(env: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of the PATH and what belongs to them, as far as it can be told."""
    for word in (env.get("PATH") or os.defpath).split(os.pathsep):
        folder = Path(word)
        if not folder.is_absolute() or not folder.is_dir():
            continue
        yield folder
        yield from _installation(folder)
        for program in folder.iterdir():
            if program.is_symlink():
                yield from _installation(Path(os.path.realpath(program)).parent)


def _installation(folder: Path) -> Iterator[Path]:
    """Yield what stands beside a folder of programs: libraries, and a virtual environment's base."""
    if folder.name != "bin":
        yield folder
        return
    settings = folder.parent / "pyvenv.cfg"
    if settings.is_file():
        yield folder.parent
        for line in settings.read_text(errors="replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                yield from _installation(Path(value.strip()))
                yield from _installation(Path(os.path.realpath(value.strip())))
    for part in _PARTS:
        if (folder.parent / part).is_dir():
            yield folder.parent / part
