"""Which changes touch what a task is judged by: protected paths, and ``loop``'s own settings.

* A path that a ``gate.protect`` glob covers may not be changed, removed or replaced; a new file
  below a protected folder is welcome, for it only adds a check.
* Files that configure tests, types, lint, coverage or continuous integration, and those that Python runs or reads at its
  start, are protected anywhere, new ones too. Their names are compared without case.
* A new file may not have the name of a module by which pytest itself is loaded.
* Files with many masters are compared by their parts (``sections.py``).
* What the task's own ``verify_cmd`` runs (``runs.py``) may not be changed where the base has it; a
  script that is not there yet may be the task's work.
* ``may_edit`` lifts all of that. It never lifts ``loop.toml``, ``[tool.loopctl]`` and the manifest.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from loopctl.judges.globs import Match, match, matches_any
from loopctl.judges.paths import FILE_MODES, GONE
from loopctl.judges.runs import Runs
from loopctl.judges.sections import READERS, differing, guarded, settings_table
from loopctl.trees import Change

ReadBlob = Callable[[str], bytes | None]
"""A file of one tree by its path; ``None`` where there is none."""

_CONFIGURATION: Final = re.compile(
    r"""conftest\.py | \.?pytest\.(ini|toml) | tox\.(ini|toml) | noxfile\.py
    | .*\.(pth|egg-link) | pyvenv\.cfg | \.coveragerc(\..*)? | \.?mypy\.ini | \.?ruff\.toml
    | \.?ty\.toml | pyrightconfig\.json | pyrefly\.toml | \.flake8 | \.?pylintrc(\.toml)?
    | \.pre-commit-config\.ya?ml | \.pyre_configuration | \.bandit
    | tsconfig(\..*)?\.json | jsconfig\.json | (jest|vitest|karma|playwright|cypress)\.config\..*
    | karma\.conf\..* | \.eslintrc(\..*)? | eslint\.config\..* | \.eslintignore | biome\.jsonc?
    | \.mocharc(\..*)? | \.nycrc(\..*)? | \.c8rc(\..*)? | \.?codecov\.ya?ml
    | \.?(gitlab-ci|travis|drone|woodpecker|appveyor|cirrus)\.ya?ml | jenkinsfile(\..*)?
    | (azure|bitbucket)-pipelines\.ya?ml | (buildspec|cloudbuild)\.ya?ml
    | \.?clippy\.toml | \.?nextest\.toml | \.golangci\..* | phpunit\.xml(\.dist)? | \.rspec
    """,
    re.VERBOSE,
)
_FOLDER: Final = re.compile(
    r"""(site|user)customize(\..*)? | .*\.(egg|dist)-info | \.venv | node_modules | \.cargo
    | \.circleci | \.buildkite | \.woodpecker | \.gitlab | \.semaphore | \.teamcity
    """,
    re.VERBOSE,
)

_SHADOW: Final = re.compile(
    r"(pytest|_pytest|pluggy|loopctl_pytest_report|loopctl_originals)(\..*)?"
)
"""What Python would import from the project in the place of pytest, or of our own plugin."""


@dataclass(frozen=True, slots=True)
class Surface:
    """What a result may not touch, and what it was given leave to.

    Attributes:
        protect: Globs of the settings.
        may_edit: Globs of the task.
        manifest: The manifest's path in the tree, empty where it is not part of it.
        runs: What the task's verify command runs.
    """

    protect: tuple[str, ...]
    may_edit: tuple[str, ...] = ()
    manifest: str = ""
    runs: Runs = field(default_factory=Runs)

    def fault(self, change: Change, base: ReadBlob, now: ReadBlob) -> str:
        """Return what is wrong with a change and what would mend it; empty where nothing is."""
        if fault := self._settings_fault(change.path, base, now):
            return fault
        if matches_any(self.may_edit, change.path):
            return ""
        reason = self.protects(change) or self._runs(change.path, base)
        if not reason and PurePosixPath(change.path).name.casefold() in READERS:
            reason = _sections_fault(change.path, base, now, self.runs.scripts)
        if not reason:
            return ""
        return f"{reason}; undo the change, or name the path in the task's may_edit"

    def _settings_fault(self, path: str, base: ReadBlob, now: ReadBlob) -> str:
        if path.casefold() == "loop.toml":
            return "holds loop's own settings, which no task may change; undo the change"
        if self.manifest and path.casefold() == self.manifest.casefold():
            return "is the manifest, which only the user and loop write; undo the change"
        if path == "pyproject.toml":
            try:
                if settings_table(base(path)) != settings_table(now(path)):
                    return (
                        "changes [tool.loopctl], loop's own settings, which no task may change; "
                        "undo the change"
                    )
            except ValueError as exc:
                return f"cannot be read, so that [tool.loopctl] cannot be compared ({exc}); mend it"
        return ""

    def _runs(self, path: str, base: ReadBlob) -> str:
        if self.runs.is_run(path, lambda other: base(other) is not None):
            return "is run by verify_cmd, by which this task is judged"
        return ""

    def protects(self, change: Change) -> str:
        """Return why the path of a change is protected, whatever its contents; empty if not."""
        parts = change.path.casefold().split("/")
        if _CONFIGURATION.fullmatch(parts[-1]):
            return "configures tests, types, lint, coverage or CI, and is protected anywhere"
        if any(_FOLDER.fullmatch(part) for part in parts):
            return "is read or run by the tools that judge, and is protected anywhere"
        if change.old_mode == GONE and any(_SHADOW.fullmatch(part) for part in parts):
            return "could be imported in the place of pytest or of a plugin of it"
        is_new_file = change.old_mode == GONE and change.new_mode in FILE_MODES
        for glob in self.protect:
            found = match(glob, change.path)
            if found is Match.PATH or (found is Match.BELOW and not is_new_file):
                return f"is protected by gate.protect ({glob})"
        return ""


def _sections_fault(path: str, base: ReadBlob, now: ReadBlob, scripts: frozenset[str]) -> str:
    name = PurePosixPath(path).name.casefold()
    try:
        after = guarded(name, now(path), scripts)
    except ValueError as exc:
        return f"cannot be read, so that its protected sections cannot be compared ({exc})"
    try:
        before = guarded(name, base(path), scripts)
    except ValueError:
        before = {}
    changed = differing(before, after)
    return f"changes protected sections ({', '.join(changed)})" if changed else ""
