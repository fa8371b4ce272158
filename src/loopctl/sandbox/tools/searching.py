"""``search``: a regular expression over the files that git does not ignore.

git itself does it, inside the sandbox and under a time limit: a pattern that goes on for ever
ends there and not in this process. git knows what is ignored, follows no link and waits for no
pipe. Without a repository to ask (a worker has removed it) the ignore files alone count.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopctl.calls import Effect, ToolResult
from loopctl.domain import ExecResult
from loopctl.ports import Sandbox
from loopctl.sandbox.tools.tool import SHOWN_BYTES, RefusalError, WorkTool, spec_of
from loopctl.sandbox.tools.tree import Tree

TIMEOUT_S: Final = 30.0
_MATCHES: Final = 200
_LINE_CHARS: Final = 300
_FOUND: Final = frozenset({0, 1})
_GIT: Final = (
    *("git", "--no-pager", "--literal-pathspecs", "-c", "submodule.recurse=false"),
    *("grep", "--no-color", "--no-heading", "--no-break", "--no-column", "-n", "-I", "-z"),
)
_RECORD: Final = re.compile(rb"([^\0]+)\0(\d+)\0(.*)")
_SPEC: Final = spec_of(
    "search",
    "Search the files of the worktree for a regular expression, line by line. Files that git "
    f"ignores are left out. Perl's syntax where git has it. Shows {_MATCHES} matches at most.",
    1,
    pattern={"type": "string", "description": "A regular expression; it matches within a line."},
    path={"type": "string", "description": "A file or folder to search in; all if left out."},
)

Match = tuple[str, int, str]
"""Path, line, and the line's text."""


def searcher(tree: Tree, sandbox: Sandbox) -> WorkTool:
    """Return the tool."""

    def search(arguments: Mapping[str, Any], _key: str) -> ToolResult:
        pattern = arguments["pattern"]
        if not pattern or "\n" in pattern or "\0" in pattern:
            raise RefusalError("pattern is a regular expression on one line, and not empty")
        where = arguments.get("path", ".")
        with tree.walk(where) as place:
            if place.found is None:
                raise RefusalError(f"{where} does not exist")
            where = place.path
        return ToolResult(_shown(_Search(sandbox, pattern, where).matches()))

    return WorkTool(_SPEC, Effect.NONE, search)


class _Search:
    """One search; falls back where git lacks something."""

    def __init__(self, sandbox: Sandbox, pattern: str, path: str) -> None:
        self._sandbox = sandbox
        self._pattern = pattern
        self._path = path
        self._syntax = "-P"

    def matches(self) -> list[Match]:
        """Return all matches, by path and line.

        Raises:
            RefusalError: git cannot search for that, or not in time.
        """
        found: dict[tuple[str, int], str] = {}
        # Files that git knows are searched though a pattern ignores them; a search of the
        # others leaves those out.
        for options in ((), ("--untracked",)):
            result = self._grep(options)
            if result.returncode not in _FOUND:
                result = self._grep(("--no-index", "--exclude-standard"))
            if result.returncode not in _FOUND:
                raise RefusalError(f"the search was given up: {_reason(result)}")
            found |= {(path, line): text for path, line, text in _read(result.stdout)}
        return sorted((path, line, text) for (path, line), text in found.items())

    def _grep(self, options: Sequence[str]) -> ExecResult:
        result = self._run(options)
        if b"USE_LIBPCRE" in result.stdout and self._syntax == "-P":
            self._syntax = "-E"
            result = self._run(options)
        if result.timed_out:
            raise RefusalError(
                f"the search took longer than {TIMEOUT_S:.0f} seconds; use a simpler pattern, or "
                "name a path"
            )
        return result

    def _run(self, options: Sequence[str]) -> ExecResult:
        return self._sandbox.run(
            [*_GIT, self._syntax, *options, "-e", self._pattern, "--", self._path],
            timeout_s=TIMEOUT_S,
            env={
                "LC_ALL": "C.UTF-8",
                "GIT_OPTIONAL_LOCKS": "0",
                # Where the worktree has no repository, none of a folder above is meant.
                "GIT_CEILING_DIRECTORIES": str(self._sandbox.inside.parent),
            },
        )


def _reason(result: ExecResult) -> str:
    said = result.stdout.decode("utf-8", "replace").strip().splitlines()
    faults = [line for line in said if line.startswith(("fatal: ", "error: "))]
    last = (faults or said or [f"git ended with {result.returncode}"])[-1]
    return last.removeprefix("fatal: ").removeprefix("error: ").removeprefix("-e option, ")


def _read(output: bytes) -> list[Match]:
    records = (_RECORD.fullmatch(line) for line in output.split(b"\n"))
    return [
        (match[1].decode("utf-8", "replace"), int(match[2]), match[3].decode("utf-8", "replace"))
        for match in records
        if match is not None
    ]


def _shown(matches: Sequence[Match]) -> str:
    if not matches:
        return "no match (files that git ignores are not searched)"
    rows: list[str] = []
    room = SHOWN_BYTES
    for path, line, text in matches[:_MATCHES]:
        row = f"{path}:{line}:{text.removesuffix(chr(13))[:_LINE_CHARS]}"
        room -= len(row.encode()) + 1
        if room < 0:
            break
        rows.append(row)
    left = len(matches) - len(rows)
    if left:
        files = len({path for path, _, _ in matches[len(rows) :]})
        rows.append(f"({left} more in {files} files; narrow the pattern or name a path)")
    return "\n".join(rows)
