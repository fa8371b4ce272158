"""Calls git: the only module that does.

No list of flags makes a foreign repository's configuration safe, so git works in the harness's own
repository, named by ``--git-dir`` and never searched for, with an environment built from nothing.
Where the user's repository has to be asked or moved, the same flags take away its hooks, monitors,
signers, pagers and helpers.
"""

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from loopctl.domain import ExecResult
from loopctl.errors import GitError, MachineError
from loopctl.sandbox import process
from loopctl.sandbox.files import disk_errors, remove_tree, write_if_changed

OLDEST = (2, 34)
COMMITTER = "loop"
COMMITTER_EMAIL = "loop@localhost"
MAX_OUTPUT_BYTES = 256 << 20

_TIMEOUT_S = 1800.0
_REFUSED_PATH = re.compile(r"invalid path '(.*?)'", re.IGNORECASE)
_FLAGS = (
    "--no-pager",
    "--no-replace-objects",
    "--no-optional-locks",
)
_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.pager=cat",
    "core.askPass=/bin/false",
    "core.alternateRefsCommand=/bin/false",
    # Objects and refs survive a power cut once a command has returned; the checkouts need not.
    "core.fsync=committed,reference",
    "core.fsyncMethod=batch",
    "credential.helper=",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "diff.ignoreSubmodules=all",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=/bin/false",
    "transfer.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
# Only for the harness's own repository: a user's checkout keeps its own line endings and modes.
_OWN_CONFIG = (
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.symlinks=true",
    "core.fileMode=true",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    # Several files are written at once; more than there are processors, since they wait for disks.
    "checkout.workers=4",
)
_IDENTITY = {
    "GIT_AUTHOR_NAME": COMMITTER,
    "GIT_AUTHOR_EMAIL": COMMITTER_EMAIL,
    "GIT_COMMITTER_NAME": COMMITTER,
    "GIT_COMMITTER_EMAIL": COMMITTER_EMAIL,
}
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "SSH_ASKPASS": "/bin/false",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_SSH_COMMAND": "false",
    **_IDENTITY,
}

_versions: dict[str, tuple[int, ...]] = {}


@dataclass(frozen=True, slots=True)
class Git:
    """git on one repository.

    Attributes:
        path: The caller's PATH.
        global_config: Taken for the user's global configuration. It is the harness's own file and
            holds ``safe.directory`` entries alone: the user's repository may belong to another
            account (root in a container), and the child of a fetch that reads it ignores ``-c``.
            ``None`` only to ask what the user's own one says. Read by what needs it alone: calls
            that look for a repository, and fetches, whose child works in another one.
        global_content: What that file must hold, put right before it is read.
        git_dir: The repository, ``None`` for calls that need none.
        work_tree: Its files; none for work on objects.
        index: The index file; git's own place where ``None``.
        is_own: The repository is the harness's own, not the user's.
        config: What the repository's own configuration file must hold, put right before each call:
            a worker without confinement can write to it, in good faith too. Attributes beside it
            go.
        settings: More ``-c`` values.
        extra_env: More variables.
    """

    path: str
    global_config: Path | None
    git_dir: Path | None = None
    work_tree: Path | None = None
    index: Path | None = None
    is_own: bool = True
    config: bytes | None = None
    global_content: bytes | None = None
    settings: tuple[str, ...] = ()
    extra_env: Mapping[str, str] = field(default_factory=dict)

    def at(self, git_dir: Path, work_tree: Path | None = None, index: Path | None = None) -> "Git":
        """Return git on the harness's own repository, or on a part of it."""
        return replace(self, git_dir=git_dir, work_tree=work_tree, index=index)

    def on_users(self, git_dir: Path, work_tree: Path | None = None) -> "Git":
        """Return git on the user's repository, whose own line endings and modes count."""
        return replace(
            self, git_dir=git_dir, work_tree=work_tree, index=None, is_own=False, config=None
        )

    def keeping(self, config: bytes) -> "Git":
        """Return the same, with what the repository's configuration must hold."""
        return replace(self, config=config)

    def having(self, *settings: str, **variables: str) -> "Git":
        """Return the same with more ``-c`` values and variables."""
        return replace(
            self,
            settings=(*self.settings, *settings),
            extra_env={**self.extra_env, **variables},
        )

    def as_user(self, env: Mapping[str, str]) -> "Git":
        """Return the same with the user's own global configuration, to ask what it says."""
        names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
        variables = {name: env[name] for name in names if name in env}
        return replace(self, global_config=None).having(**variables)

    def run(
        self,
        *args: str | bytes,
        stdin: bytes | Path | None = None,
        output: Path | None = None,
        cwd: Path | None = None,
        timeout_s: float = _TIMEOUT_S,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
    ) -> ExecResult:
        """Return how a git command ended.

        Raises:
            MachineError: There is no git.
            SandboxError: ``cwd`` is gone.
        """
        needs_global = self._needs_global(args)
        self._put_right(needs_global=needs_global)
        result = process.run(
            [*self._prefix(), *self._pathspecs(args), *args],
            cwd=cwd or Path("/"),
            env=self._environment(needs_global=needs_global),
            timeout_s=timeout_s,
            stdin=stdin,
            output=output,
            max_output_bytes=max_output_bytes,
            is_trusted=True,
        )
        if result.returncode == process.NOT_FOUND and not shutil.which("git", path=self.path):
            raise MachineError("git is missing; install git 2.34 or newer")
        return result

    def ask(
        self,
        *args: str | bytes,
        stdin: bytes | Path | None = None,
        output: Path | None = None,
    ) -> bytes:
        """Return what a git command that must succeed has said, all of it.

        What goes to the file ``output`` is not returned.

        Raises:
            GitError: It did not succeed.
        """
        result = self.run(*args, stdin=stdin, output=output)
        if result.returncode != 0 or result.truncated:
            raise self.error(args, result)
        return result.stdout

    def line(self, *args: str | bytes, stdin: bytes | Path | None = None) -> str:
        """Return the one line that a git command that must succeed has said."""
        return self.ask(*args, stdin=stdin).decode(errors="surrogateescape").strip()

    def error(self, args: tuple[str | bytes, ...], result: ExecResult) -> GitError:
        """Return the error for a command that did not succeed."""
        words = tuple(arg if isinstance(arg, str) else arg.decode(errors="replace") for arg in args)
        said = result.stderr.decode(errors="replace").strip()
        if result.timed_out:
            said = f"{said}\nthe time limit ended it".strip()
        if result.truncated:
            said = f"{said}\nit said more than can be held".strip()
        return GitError(words, result.returncode, said[-4000:])

    def _needs_global(self, args: tuple[str | bytes, ...]) -> bool:
        return self.git_dir is None or args[0] == "fetch"

    def _put_right(self, *, needs_global: bool) -> None:
        with disk_errors(f"the configuration of {self.git_dir} cannot be put right"):
            if self.config is not None and self.git_dir is not None:
                write_if_changed(self.git_dir / "config", self.config)
                remove_tree(self.git_dir / "info" / "attributes")
            if needs_global and self.global_content is not None and self.global_config is not None:
                write_if_changed(self.global_config, self.global_content)

    def _prefix(self) -> list[str]:
        argv = ["git", *_FLAGS]
        for setting in (*_CONFIG, *(_OWN_CONFIG if self.is_own else ()), *self.settings):
            argv += ["-c", setting]
        if self.git_dir is not None:
            argv.append(f"--git-dir={self.git_dir}")
        if self.work_tree is not None:
            argv.append(f"--work-tree={self.work_tree}")
        return argv

    @staticmethod
    def _pathspecs(args: tuple[str | bytes, ...]) -> tuple[str, ...]:
        # Names are names, whatever they look like; the one command that does not know the flag
        # is handed names that look like nothing else.
        return () if "check-ignore" in args else ("--literal-pathspecs",)

    def _environment(self, *, needs_global: bool) -> dict[str, str]:
        env = {
            **_ENVIRONMENT,
            "PATH": self.path,
            **self.extra_env,
        }
        if self.global_config is not None:
            env["GIT_CONFIG_GLOBAL"] = str(self.global_config) if needs_global else os.devnull
        if self.index is not None:
            env["GIT_INDEX_FILE"] = str(self.index)
        return env


def require_git(git: Git) -> None:
    """Make sure that git is there and new enough; asked once for each PATH.

    Raises:
        MachineError: It is missing or too old.
    """
    if git.path in _versions:
        return
    said = git.line("--version")
    match = re.search(r"(\d+)\.(\d+)", said)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST:
        raise MachineError(f"{said or 'git'} is too old; install git 2.34 or newer")
    _versions[git.path] = version


def global_config_text(*directories: Path) -> str:
    """Return the text of a ``global_config`` file that trusts these folders, whoever owns them."""
    lines = ["[safe]"]
    lines += [f"\tdirectory = {quoted(directory)}" for directory in directories]
    return "\n".join(lines) + "\n"


def quoted(path: Path) -> str:
    """Return a path as a value of a configuration file."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def git_version(path: str) -> str:
    """Return the version of the git on ``path``.

    Raises:
        MachineError: It is missing or too old.
    """
    require_git(Git(path, None))
    return ".".join(str(number) for number in _versions[path])


def in_folder(folder: Path, path: str) -> Callable[[Sequence[str]], str]:
    """Return git in a new folder that nobody works in yet: runs it, returns what it says."""
    git = Git(path, Path(os.devnull))

    def run(args: Sequence[str]) -> str:
        result = git.run(*args, cwd=folder)
        if result.returncode != 0:
            raise git.error(tuple(args), result)
        return result.stdout.decode(errors="surrogateescape")

    return run


def git_words(error: GitError) -> str:
    """Return what git said; in words of ours where it is a full disk, or a path that it refuses."""
    said = error.args[2].strip() or str(error)
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return f"the disk is full; free some space and run the command again ({said})"
    if refused := _REFUSED_PATH.search(said):
        # What looks like another character, or like none, is told by its number.
        return (
            f"git does not take the path {refused[1]!a}, since on some file system it would be "
            "a .git folder or one with another name; rename or remove it"
        )
    return str(said)
