"""Works on the objects and refs of the harness's own repository; touches no files of a tree."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from loopctl.domain import Sha
from loopctl.records import Carried
from loopctl.sandbox.git import Git
from loopctl.sandbox.library import Library, can_write
from loopctl.trees import Change, ChangeType, TreeFile

KEPT = "refs/loop/"


class Objects:
    """The object store of the harness's own repository.

    Args:
        git: git on that repository, without files.
        library: The same repository, to write without a process.
        scratch: Where temporary indexes are made; private.
    """

    def __init__(self, git: Git, library: Library, scratch: Path) -> None:
        self._git = git
        self._library = library
        self.scratch = scratch

    def tree_of(self, commit: str) -> str:
        """Return the tree id of a commit, or of a tree."""
        return self._git.line("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")

    def keep(self, ref: str, tree: str, base: Sha, message: str) -> Sha:
        """Commit ``tree`` on ``base`` and point ``ref`` (below ``refs/loop/``) at it."""
        if not ref.startswith(KEPT):
            raise ValueError(f"{ref} is not below {KEPT}")
        commit = self.commit(tree, base, message)
        if can_write(commit):
            self._library.point(ref, commit)
        else:
            self._git.ask("update-ref", "--no-deref", ref, commit)
        return commit

    def kept(self, prefix: str = KEPT) -> Mapping[str, Sha]:
        """Return the refs that keep trees, with their commits."""
        # for-each-ref matches whole parts of a name; a prefix may end within one.
        said = self._git.ask("for-each-ref", "--format=%(objectname) %(refname)", KEPT)
        lines = said.decode(errors="surrogateescape").splitlines()
        pairs = (line.split(" ", 1) for line in lines)
        return {ref: Sha(commit) for commit, ref in pairs if ref.startswith(prefix)}

    def kept_trees(self) -> Mapping[str, tuple[str, Sha]]:
        """Return for each ref that keeps a tree that tree, and the commit that it builds on."""
        said = self._git.ask("for-each-ref", "--format=%(tree) %(parent) %(refname)", KEPT)
        fields = (line.split(" ") for line in said.decode(errors="surrogateescape").splitlines())
        return {ref: (tree, Sha(parent)) for tree, parent, ref in fields}

    def drop(self, ref: str) -> None:
        """Forget a kept tree; missing ones are none."""
        if not ref.startswith(KEPT):
            raise ValueError(f"{ref} is not below {KEPT}")
        self._git.ask("update-ref", "--no-deref", "-d", ref)

    def commit(self, tree: str, parent: Sha, message: str) -> Sha:
        """Return a new commit in the harness's own repository."""
        text = message.encode(errors="surrogateescape")
        if can_write(parent):
            return Sha(self._library.commit(tree, parent, text))
        return Sha(self._git.line("commit-tree", "-p", parent, "-F", "-", tree, stdin=text))

    def changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Return what differs between two trees, by path; renames are two changes."""
        said = self._git.ask(*_diff_tree("--raw", "--no-abbrev"), old, new)
        fields = said.decode(errors="surrogateescape").split("\0")
        return tuple(
            _change(meta, path) for meta, path in zip(fields[::2], fields[1::2], strict=False)
        )

    def changed_lines(self, old: str, new: str) -> int:
        """Return the number of added and removed lines; a binary file counts as one."""
        said = self._git.ask(*_diff_tree("--numstat"), old, new)
        total = 0
        for record in filter(None, said.split(b"\0")):
            added, removed, _ = record.split(b"\t", 2)
            total += 1 if added == b"-" else int(added) + int(removed)
        return total

    def messages(self, tip: Sha, count: int) -> tuple[tuple[str, str], ...]:
        """Return ids and messages of the newest commits, the newest first, merges left out."""
        said = self._git.ask("log", "-z", "--no-merges", f"-n{count}", "--format=%H%n%B", tip, "--")
        records = filter(None, said.decode(errors="replace").split("\0"))
        pairs = (record.partition("\n") for record in records)
        return tuple((commit, message) for commit, _, message in pairs)

    def patch(self, commit: str) -> str:
        """Return what a commit changed, as a patch without context and without prefixes."""
        said = self._git.ask(
            *("diff-tree", "--root", "--no-commit-id", "-r", "-p", "--unified=0", "--no-prefix"),
            *("--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", commit, "--"),
        )
        return said.decode(errors="replace")

    def read_blob(self, tree: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return at most ``limit`` bytes of a file of a tree; ``None`` where there is none."""
        name = path.encode(errors="surrogateescape")
        said = self._git.ask("ls-tree", "-z", "--full-tree", tree, "--", name)
        for record in filter(None, said.split(b"\0")):
            meta, _, found = record.partition(b"\t")
            kind, blob = meta.split()[1:3]
            if found == name and kind == b"blob":
                # Half of what is kept of an output is its head.
                args = ("cat-file", "blob", blob)
                result = self._git.run(*args, max_output_bytes=2 * limit)
                if result.returncode != 0:
                    raise self._git.error(args, result)
                return result.stdout[:limit]
        return None

    def files(self, tree: str) -> tuple[TreeFile, ...]:
        """Return the regular files of a tree by path; no links, nothing of submodules."""
        said = self._git.ask("ls-tree", "-r", "-z", "-l", "--full-tree", tree)
        found = []
        for record in filter(None, said.decode(errors="surrogateescape").split("\0")):
            meta, _, path = record.partition("\t")
            mode, kind, blob, size = meta.split()
            if kind == "blob" and mode.startswith("100"):
                found.append(TreeFile(path, blob, int(size)))
        return tuple(found)

    def read_blobs(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        """Return the whole contents of several blobs in one go; one that is missing is left out."""
        asked = list(dict.fromkeys(blobs))
        said = self._git.ask("cat-file", "--batch", stdin="".join(f"{b}\n" for b in asked).encode())
        found, at = {}, 0
        for blob in asked:
            end = said.index(b"\n", at)
            header, at = said[at:end].split(), end + 1
            if header[-1] == b"missing":
                continue
            size = int(header[2])
            found[blob] = said[at : at + size]
            at += size + 1
        return found

    def carry(self, base: str, tree: str, onto: str) -> Carried:
        """Return the diff from ``base`` to ``tree`` applied to the tree of ``onto``."""
        old, new, target = (self.tree_of(name) for name in (base, tree, onto))
        if target in {old, new}:
            return Carried(new)
        if old == new:
            return Carried(target)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="carry-") as folder:
            # Between two commands by a file: a diff may be larger than what memory should hold.
            patch = Path(folder, "patch")
            self._git.ask(
                *_diff_tree("--patch", "--binary", "--full-index"), f"--output={patch}", old, new
            )
            git = self._git.having(GIT_INDEX_FILE=str(Path(folder, "index")))
            git.ask("read-tree", target)
            args = ("apply", "--cached", "--3way", "--whitespace=nowarn", str(patch))
            applied = git.run(*args)
            if applied.returncode != 0:
                detail = applied.stderr.decode(errors="replace").strip()
                return Carried(None, detail or f"git apply ended with {applied.returncode}")
            return Carried(git.line("write-tree"))

    def overlaid(self, tree: str, changes: Sequence[Change]) -> str:
        """Return a tree that has the files of ``tree``, and over them the new side of changes."""
        lines = (f"{one.new_mode} {one.new_blob}\t{one.path}\0" for one in changes)
        with tempfile.TemporaryDirectory(dir=self.scratch, prefix="carry-") as folder:
            git = self._git.having(GIT_INDEX_FILE=str(Path(folder, "index")))
            git.ask("read-tree", tree)
            text = "".join(lines).encode(errors="surrogateescape")
            git.ask("update-index", "--replace", "-z", "--index-info", stdin=text)
            return git.line("write-tree")

    def has(self, names: Iterable[str]) -> dict[str, bool]:
        """Return for each object id whether it is here."""
        asked = list(dict.fromkeys(names))
        text = "".join(f"{name}\n" for name in asked).encode()
        lines = self._git.ask("cat-file", "--batch-check=%(objecttype)", stdin=text).splitlines()
        return {
            name: not line.endswith(b"missing") for name, line in zip(asked, lines, strict=True)
        }

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether ``newer`` contains ``older``; both are commits that are here."""
        args = ("merge-base", "--is-ancestor", older, newer)
        result = self._git.run(*args)
        if result.returncode not in {0, 1}:
            raise self._git.error(args, result)
        return result.returncode == 0


def copy_objects(
    source: Git, target: Git, wanted: Iterable[str], known: Iterable[str], scratch: Path
) -> None:
    """Copy objects from one repository to another, by pack and not by fetch.

    A fetch would read the user's configuration for the remote, which can name programs to run.

    Args:
        source: Where the objects are.
        target: Where they go; what they refer to must be there or come along.
        wanted: Commits, with all that they reach, or single blobs.
        known: Commits that the target has, with all that they reach.
        scratch: Where the pack lies on its way; private.

    Raises:
        GitError: The target would lack something; nothing refers to what was copied.
    """
    with tempfile.TemporaryDirectory(dir=scratch, prefix="pack-") as folder:
        lines = [*wanted, *(f"^{name}" for name in known)]
        text = "".join(f"{line}\n" for line in lines).encode()
        pack = Path(folder, "pack")
        # By its output and not by a file's name, which git can rename within one disk only.
        source.ask("pack-objects", "--revs", "--quiet", "--stdout", stdin=text, output=pack)
        target.ask("unpack-objects", "-q", "--strict", stdin=pack)


def _diff_tree(*how: str) -> tuple[str, ...]:
    # Tree against tree: submodules are two ids here and nothing enters them, so they may be shown.
    common = ("--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none")
    ending = () if "--patch" in how else ("-z",)
    return ("diff-tree", "-r", *common, *how, *ending)


def _change(meta: str, path: str) -> Change:
    old_mode, new_mode, old_blob, new_blob, letter = meta.removeprefix(":").split(" ")
    return Change(path, ChangeType(letter), old_mode, new_mode, old_blob, new_blob)
