"""Puts together what asks models: their process, the worker, what it is shown, what it may spend.

Nothing here is started before a step needs it, but for :meth:`Modelling.warm`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from types import TracebackType

from loopctl.clock import Clock
from loopctl.context.compaction import BackgroundCompactor
from loopctl.context.recall import LocalRecall
from loopctl.domain import Manifest, Task
from loopctl.engine.work import Tools
from loopctl.place import Place
from loopctl.ports import Emit, Worker
from loopctl.records import RunRecord
from loopctl.sandbox.desk import ToolDesks
from loopctl.sandbox.hooks.asking import Hooks
from loopctl.sandbox.mcp.servers import Servers
from loopctl.sandbox.policy import ApprovalPolicy
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sandbox.service import ProcessService
from loopctl.sandbox.tools.catalogue import WORK_TOOLS
from loopctl.settings import ContextSettings, Settings
from loopctl.store.caps import run_caps
from loopctl.store.history import RunHistory
from loopctl.store.memories import SqliteMemories
from loopctl.store.stores import Stores
from loopctl.worker.host import GraphWorker
from loopctl.worker.link import CHILD, ModelProcess
from loopctl.worker.model.routes import NETWORK_VARIABLES, Routes, routes_of
from loopctl.worker.names import GRAPH
from loopctl.worker.oracle import ChildOracle
from loopctl.worker.variables import child_environment


class Modelling(AbstractContextManager["Modelling"]):
    """Everything of one drive that asks a model.

    Args:
        place: Where.
        record: The run.
        settings: Frozen at its start.
        manifest: As it was when the drive began; the modes of its tasks count.
        tree: Returns the tree whose files are recalled.
    """

    def __init__(
        self,
        place: Place,
        record: RunRecord,
        settings: Settings,
        stores: Stores,
        repository: OwnedRepository,
        *,
        manifest: Manifest,
        tree: Callable[[], str],
        clock: Clock,
        emit: Emit,
        cancel: threading.Event,
    ) -> None:
        self.routes = routes_of(settings.models, place.env)
        self._closing = ExitStack()
        self._replies = stores.replies
        self._purse = stores.purse(run_caps(settings.budget))
        process = _process(place, self.routes, clock, cancel)
        self._closing.callback(process.close)
        servers = self._closing.enter_context(
            Servers(
                settings.mcp,
                checkout=place.checkout,
                folder=place.local / f"mcp-{record.id}",
                env=place.env,
                confinement=repository.confinement,
                pins=stores.pins,
                cancel=cancel,
            )
        )
        repository.before_close(servers.leave)
        desks = ToolDesks(
            stores.ledger,
            clock=clock,
            emit=emit,
            policy_of=lambda tools, sandbox: ApprovalPolicy(
                settings.policy.approve,
                settings.policy.deny,
                work=WORK_TOOLS,
                servers=tools,
                roots=(str(sandbox.workdir), str(sandbox.scratch)),
            ),
            wall_s=settings.budget.wall_s,
            servers=servers.tools,
            hooks=Hooks(
                settings.policy.pre_tool_use,
                settings.hooks,
                run_id=record.id,
                checkout=place.checkout,
                env=place.env,
                pins=stores.pins,
                emit=emit,
                cancel=cancel,
            ),
            redact=place.redactor(),
        )
        self._worker = GraphWorker(process, desks, self._purse, stores.replies, clock=clock)
        self.oracle = oracle = ChildOracle(
            process, self._purse, clock=clock, run_id=record.id, is_there=self.routes.is_there
        )
        self._compactor = BackgroundCompactor(
            record.id, oracle, _contexts(settings, manifest.tasks), emit
        )
        self._closing.callback(self._compactor.close)
        memories = SqliteMemories(place.local, place.redactor())
        self._closing.callback(memories.close)
        embed = settings.models.embed
        self._recall = LocalRecall(
            memories,
            repository,
            RunHistory(place.local / "runs", record.id),
            oracle,
            tree=tree,
            emit=emit,
            embed_model=embed.name if embed is not None else "",
        )

    @property
    def workers(self) -> Mapping[str, Worker]:
        """The workers that ask models, by name."""
        return {GRAPH: self._worker}

    def equip(self, tools: Tools) -> Tools:
        """Return what plan loops share, with what steps of models need of it."""
        return replace(
            tools,
            purse=self._purse,
            replies=self._replies,
            compactor=self._compactor,
            recall=self._recall,
        )

    def warm(self) -> None:
        """Begin the slow imports of the models' process, while sandboxes are made."""
        self._worker.warm()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process and what is under way."""
        self._closing.close()


def _process(place: Place, routes: Routes, clock: Clock, cancel: threading.Event) -> ModelProcess:
    env = child_environment(place.env, routes.variables | frozenset(NETWORK_VARIABLES))
    return ModelProcess(
        lambda: ProcessService(CHILD, cwd=place.local, env=env),
        routes.to_json(),
        clock=clock,
        cancel=cancel,
        redact=place.redactor(),
    )


def _contexts(settings: Settings, tasks: tuple[Task, ...]) -> Callable[[str], ContextSettings]:
    modes = {task.id: task.mode or settings.loop.mode for task in tasks}
    own = {mode: settings.for_mode(mode).context for mode in {*modes.values(), settings.loop.mode}}
    return lambda task: own[modes.get(task, settings.loop.mode)]  # type: ignore[call-overload]


@contextmanager
def asking(
    place: Place,
    settings: Settings,
    stores: Stores,
    run_id: str,
    clock: Clock,
    cancel: threading.Event,
) -> Iterator[ChildOracle]:
    """Ask models outside of any drive; ``run_id`` pays, and is in the store already."""
    routes = routes_of(settings.models, place.env)
    purse = stores.purse(run_caps(settings.budget))
    with closing(_process(place, routes, clock, cancel)) as process:
        yield ChildOracle(process, purse, clock=clock, run_id=run_id, is_there=routes.is_there)
