"""The work tools of one sandbox, in the order in which a model is told of them."""

from loopctl.ports import Sandbox
from loopctl.sandbox.tools.editing import editor
from loopctl.sandbox.tools.reading import reader
from loopctl.sandbox.tools.searching import searcher
from loopctl.sandbox.tools.shell import TIMEOUT_S, shell
from loopctl.sandbox.tools.tool import WorkTool
from loopctl.sandbox.tools.tree import Tree
from loopctl.sandbox.tools.writing import writer

WORK_TOOLS = ("bash", "read_file", "write_file", "edit_file", "search")
"""Their names; their effects stay in the sandbox."""


def work_tools(sandbox: Sandbox, *, timeout_s: float = TIMEOUT_S) -> tuple[WorkTool, ...]:
    """Return the tools that work in ``sandbox``.

    Args:
        sandbox: Whose files and commands they are about.
        timeout_s: Of one command.
    """
    tree = Tree(sandbox.workdir, "the worktree")
    scratch = Tree(sandbox.scratch, "the folder of temporary files")
    return (
        shell(sandbox, scratch, timeout_s),
        reader(tree, scratch),
        writer(tree),
        editor(tree),
        searcher(tree, sandbox),
    )
