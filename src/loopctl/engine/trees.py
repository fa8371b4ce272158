"""The files of one candidate between its steps: kept after each, put back where one was no step."""

from dataclasses import replace

from loopctl.engine import naming, suspension
from loopctl.engine.pursuit import Step
from loopctl.engine.recovery import rescue_notice
from loopctl.engine.work import Tools, Work
from loopctl.errors import SandboxError
from loopctl.events import Noticed
from loopctl.ports import Sandbox
from loopctl.records import Rescued


class Trees:
    """The worktree of one candidate, and the ref that keeps its tree.

    Attributes:
        tree: As the last step left it.
        base: Of the commit that the worktree was made from.
    """

    def __init__(self, tools: Tools, sandbox: Sandbox, work: Work) -> None:
        self._tools = tools
        self._sandbox = sandbox
        self._work = work
        self.tree = work.tree
        self.base = tools.repository.tree_of(sandbox.base)
        self._seen = {self.base, self.tree}
        self._kept = ""

    @property
    def ref(self) -> str:
        """What keeps the tree; empty where nothing was made."""
        return self._work.ref if self.tree != self.base else ""

    def keep(self, step: Step, iteration: int) -> tuple[Step, bool]:
        """Keep the worktree's tree under the candidate's ref; say whether it is a new one.

        A worktree that the step has destroyed, or that git must not touch, is put back to the
        tree before the step, and the worker is told; its files are kept under a ref of their own.
        Where even that cannot be done they are left as they are: the machine is at fault.
        """
        try:
            tree = self._sandbox.snapshot()
        except SandboxError as exc:
            return self._unkept(step, exc), False
        changed = tree not in self._seen
        self._seen.add(tree)
        self.tree = tree
        self.hold(iteration)
        return step, changed

    def hold(self, iteration: int) -> None:
        """Point the candidate's ref at its tree, unless it keeps it already."""
        if self.tree in {self._kept, self.base}:
            return
        message = f"{self._work.task.id}: step {iteration} ({self._work.session.candidate})"
        self._tools.repository.keep(self._work.ref, self.tree, self._sandbox.base, message)
        self._kept = self.tree

    def undo(self) -> Rescued:
        """Make the files those before the step again, once they are saved as they are.

        What the step has changed is kept under a ref of its own, ignored files stay. Where not
        all files can be saved they are left alone.
        """
        try:
            tree = self._sandbox.snapshot()
        except SandboxError:
            return self._put_back()
        if tree == self.tree:
            return Rescued()
        rescued = Rescued(self._free_ref())
        message = f"{self._work.task.id}: a step that was cut short"
        self._tools.repository.keep(rescued.ref, tree, self._sandbox.base, message)
        self._tell(rescued)
        self._sandbox.restore(self.tree)
        return rescued

    def _put_back(self) -> Rescued:
        """Do the same with files in a state that git must not touch; the worktree is made anew."""
        rescued = self._sandbox.rescue()
        self._tell(rescued)
        if rescued.is_complete:
            self._sandbox.restore(self.tree)
        return rescued

    def _tell(self, rescued: Rescued) -> None:
        notice = rescue_notice(rescued, self._work.task.id)
        if notice is not None:
            self._tools.emit(notice)

    def _free_ref(self) -> str:
        """Return a ref for the files of a cut step under which nothing is kept yet."""
        session = self._work.session
        first = ref = naming.rescue_ref(session.run_id, session.task, session.candidate)
        kept = self._tools.repository.kept(first)
        number = 1
        while ref in kept:
            number += 1
            ref = f"{first}-{number}"
        return ref

    def _unkept(self, step: Step, fault: SandboxError) -> Step:
        """Return the step as one that did not close its todo, its files rescued."""
        cause = "; ".join(str(fault).splitlines())
        self._tools.emit(Noticed(task=self._work.task.id, text=f"a step was not kept: {cause}"))
        step = replace(step, interrupt=suspension.restarting(step.interrupt))
        rescued = self._put_back()
        if not rescued.is_complete:
            said = f"{fault}; its files are left in {rescued.folder}"
            return replace(step, said=said, closed=None, is_environment=True)
        said = f"{fault}\nThe worktree was put back to how it was before the step.\n{step.said}"
        progress = replace(step.progress, tool_calls_errored=True)
        return replace(step, said=said, closed=None, progress=progress)
