"""What commands may reach, by the settings and by what is on the machine; for every mechanism."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopctl.sandbox.confine import places

_NOT_FOUND: Final = re.compile(
    rb"(?:^|: |line \d+: )([\w.+/-]+): (?:command )?not found"
    rb"|failed to execute ([\w.+/-]+): No such file"
    rb"|env: \W{0,3}([\w.+/-]+?)\W{0,3}: (?:No such file|Permission denied)"
    rb"|(?:^|: |line \d+: )([\w.+/-]+): Permission denied",
    re.MULTILINE,
)
_LOOKED_AT: Final = 4096


@dataclass(frozen=True, slots=True)
class Reach:
    """What commands of a repository may reach.

    Attributes:
        checkout: The user's checkout; never shown itself, but for ``share``.
        git_dir: The harness's own repository, in ``.local``.
        shim: The folder that holds ``loop`` for commands.
        env: The caller's environment.
        own: What this harness runs from.
        share: Folders of the checkout that can be read.
        read: More that may be read; ``~`` is the caller's home folder.
        write: More that may be written.
        network: Commands may use the network.
    """

    checkout: Path
    git_dir: Path
    shim: Path
    env: Mapping[str, str]
    own: tuple[Path, ...] = ()
    share: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False

    def readable(self) -> tuple[Path, ...]:
        """Return the places outside the checkout that can be read beside the system, sorted."""
        known = places.readable(self.env, self.home, (*self.own, *self._shared_bases()))
        shown = [place for place in known if not self.is_in_checkout(place)]
        return places.outermost([*shown, *self.named(self.read)])

    def hidden(self) -> tuple[Path, ...]:
        """Return what of those places and the writable ones holds keys, and was not named."""
        named = (*self.named(self.read), *self.named(self.write))
        found = places.keys_below([*self.readable(), *named], self.home)
        return tuple(key for key in found if key not in named)

    @property
    def home(self) -> Path:
        """The caller's home folder."""
        return Path(self.env.get("HOME") or os.devnull)

    def named(self, words: Sequence[str]) -> list[Path]:
        """Return the places outside the checkout that a setting names."""
        found = []
        for word in words:
            whole = self.home / word[2:] if word.startswith("~/") else Path(self.checkout, word)
            place = self.home if word == "~" else Path(os.path.normpath(whole))
            if place.exists() and not self.is_in_checkout(place):
                found.append(place)
        return found

    def is_in_checkout(self, place: Path) -> bool:
        """Return whether a place is the checkout or lies below it."""
        return place == self.checkout or self.checkout in place.parents

    def folders(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Yield those of the names that are folders of the checkout, and where; none of its own."""
        for word in names:
            name = os.path.normpath(word.strip("/") if word.startswith("/") else word)
            first = next(iter(Path(name).parts), "")
            is_within = not Path(word).is_absolute() or not Path(word).exists()
            if first in {"", ".", "..", ".git", ".local", "~"} or not is_within:
                continue
            if (self.checkout / name).is_dir():
                yield name, self.checkout / name

    def lacks(self, output: bytes) -> str:
        """Return which program a command did not get that the machine has, and how to show it."""
        for found in _NOT_FOUND.finditer(output[-_LOOKED_AT:]):
            name = os.fsdecode(found[1] or found[2] or found[3] or found[4])
            is_relative = os.sep in name and not name.startswith(os.sep)
            place = None if is_relative else shutil.which(name, path=self.env.get("PATH"))
            if place is not None and not self._is_shown(Path(os.path.realpath(place))):
                folder = Path(os.path.realpath(place)).parent
                return (
                    f"{name} is on this machine as {place}, but cannot be seen inside the "
                    f'confinement; show it with [sandbox] read = ["{folder}"]'
                )
        return ""

    def _is_shown(self, program: Path) -> bool:
        roots = (*map(Path, places.SYSTEM), *self.readable(), *self.named(self.write))
        return self.is_in_checkout(program) or any(root in program.parents for root in roots)

    def _shared_bases(self) -> Iterator[Path]:
        """Yield what the virtual environments among the shared folders are based on."""
        for name in self.share:
            yield from places.installation(self.checkout / name / "bin")
