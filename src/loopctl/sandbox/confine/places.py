"""Which folders of the machine a confined command may read, and which it never may.

System folders are read whole, but for ``/etc``, of which a list is: root inside could read what is
root's. Of a home folder only toolchains can be seen, and of them not the files that hold keys.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from loopctl.sandbox.files import write_if_changed

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix")
ETC: Final = (
    *("passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "host.conf", "gai.conf"),
    *("protocols", "services", "localtime", "timezone", "locale.alias", "locale.conf"),
    *("ld.so.cache", "ld.so.conf", "alternatives", "mime.types", "profile", "shells"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem"),
    *("pki/tls/openssl.cnf", "pki/ca-trust", "fonts", "java-11-openjdk", "java-17-openjdk"),
    *("java-21-openjdk", "os-release", "debian_version", "lsb-release", "inputrc", "bash.bashrc"),
)
"""Below ``/etc``: what programs need to start, find names, and trust certificates."""


def copy_settings(folder: Path, *, etc: Path = Path("/etc")) -> Iterator[Path]:
    """Copy the files among :data:`ETC` into a folder; yield the folders among them.

    One mount instead of dozens: each takes longer than all else that starts a command.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ETC:
        source, copy = etc / name, folder / name
        with suppress(OSError):
            if source.is_dir():
                _make(copy, folder)
                yield source
            elif source.is_file() and source.stat().st_size <= _LARGEST:
                _make(copy.parent, folder)
                write_if_changed(copy, source.read_bytes())


def _make(folder: Path, below: Path) -> None:
    """Make a folder and those above it, private as all that is below ``.local``."""
    for one in (*reversed(folder.parents), folder):
        if below in one.parents:
            one.mkdir(mode=0o700, exist_ok=True)


_LARGEST: Final = 8 << 20

TOOLCHAINS: Final = (
    *(".pyenv", ".rbenv", ".nodenv", ".goenv", ".nvm", ".fnm", ".asdf", ".volta", ".sdkman"),
    *(".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".local/bin"),
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


_NEVER: Final = (
    *("/etc", "/proc", "/sys", "/dev", "/boot", "/run", "/var/run", "/lost+found"),
    *("/var/lib/docker", "/var/spool", "/var/mail"),
)
_TOO_HIGH: Final = (
    *("/", "/home", "/root", "/mnt", "/media", "/srv", "/var", "/var/lib"),
    *("/tmp", "/var/tmp", "/dev/shm"),  # noqa: S108 - never shown
)
_STILL: Final = ("/run/current-system", "/run/wrappers", "/dev/shm")  # noqa: S108 - as a name
"""Where NixOS keeps its programs, and where a project may lie in memory."""


def readable(env: Mapping[str, str], home: Path, own: Iterable[Path]) -> tuple[Path, ...]:
    """Return the places outside the system's folders that tools need, parents first.

    Args:
        env: The caller's environment, for its PATH.
        home: The caller's home folder.
        own: What this harness itself runs from.
    """
    found: dict[Path, None] = {}
    seen = dict.fromkeys((*_of_path(env), *(home / name for name in TOOLCHAINS), *own))
    for place in seen:
        for each in {place, Path(os.path.realpath(place))}:
            if os.path.exists(each) and is_mountable(each, home):  # noqa: PTH110 - never raises
                found[each] = None
    return outermost(found)


def is_mountable(place: Path, home: Path) -> bool:
    """Return whether a place may be shown as a whole.

    No home folder and nothing above one may, nothing of the running system, and none of what is
    there already.
    """
    homes = {home, Path(os.path.realpath(home))}
    if str(place) in _TOO_HIGH or any(each == place or place in each.parents for each in homes):
        return False
    if any(_is_within(place, root) for root in _STILL):
        return True
    return not any(_is_within(place, root) for root in (*SYSTEM, *_NEVER))


def _is_within(place: Path, root: str) -> bool:
    return place == Path(root) or Path(root) in place.parents


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
        if not folder.is_absolute():
            continue
        yield folder
        yield from installation(folder)
        with suppress(OSError), os.scandir(folder) as entries:
            targets = {os.path.realpath(one.path) for one in entries if one.is_symlink()}
            for parent in {os.path.dirname(one) for one in targets}:  # noqa: PTH120 - many
                yield from installation(Path(parent))


def installation(folder: Path) -> Iterator[Path]:
    """Yield what stands beside a folder of programs: libraries, and a virtual environment's base."""
    if folder.name != "bin":
        yield folder
        return
    yield folder
    settings = folder.parent / "pyvenv.cfg"
    with suppress(OSError):
        text = settings.read_text(errors="replace")
        yield folder.parent
        for line in text.splitlines():
            name, _, value = line.partition("=")
            base = Path(value.strip())
            if name.strip() == "home" and base.is_absolute() and base.parent != folder.parent:
                yield from _beside(base)
                yield from _beside(Path(os.path.realpath(base)))
                yield from _beside(Path(os.path.realpath(base / "python3")).parent)
    yield from _beside(folder)


def _beside(folder: Path) -> Iterator[Path]:
    yield folder
    for part in _PARTS:
        with suppress(OSError):
            if (folder.parent / part).is_dir():
                yield folder.parent / part
