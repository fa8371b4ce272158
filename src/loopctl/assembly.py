"""Puts the parts of one drive together: concrete classes behind the engine's ports.

Everything that starts a process or opens the store is made here, when a run begins, so that
``bootstrap.py`` can open a project by reading files alone.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from types import TracebackType

from loopctl.ability import asks_models, classifier, judges_by_model, obstacle
from loopctl.clock import Clock, SystemClock
from loopctl.context.brain import LocalBrain
from loopctl.domain import Goal, Manifest, Scope, Sha, Task, TaskId
from loopctl.engine.anchor import Anchor
from loopctl.engine.board import Board
from loopctl.engine.driver import Driver
from loopctl.engine.landing import Landing
from loopctl.engine.late import LateAnswers
from loopctl.engine.permission import Permission
from loopctl.engine.refill import Refill
from loopctl.engine.run import Run
from loopctl.engine.taskrun import RunContext
from loopctl.engine.work import Tools
from loopctl.errors import RepositoryError
from loopctl.events import AnyEvent, Noticed
from loopctl.judges.criterion import CriterionJudge
from loopctl.judges.cross import CrossJudge
from loopctl.judges.evidence import observation
from loopctl.judges.gate import CodeGate, code_gate
from loopctl.judges.jury import Jury
from loopctl.judges.scope import ScopeJudge
from loopctl.judges.trial import Trial
from loopctl.manifest.frontier import Frontier
from loopctl.place import Own, Place
from loopctl.ports import Confinement, Worker
from loopctl.records import RunRecord
from loopctl.sandbox.confine.choice import choose
from loopctl.sandbox.owned import Layout
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import Settings
from loopctl.sources import fixing
from loopctl.store.audit import AuditLog
from loopctl.store.eventlog import JsonLinesEventLog, read_events
from loopctl.store.pause import PauseFile
from loopctl.store.stores import Stores
from loopctl.store.unwritten import UnwrittenFile
from loopctl.toolports import Consent
from loopctl.verdict import GateResult
from loopctl.worker.command import CommandWorker
from loopctl.worker.link import ModelProcess
from loopctl.worker.names import COMMAND


def light_workers() -> dict[str, Worker]:
    """Return the workers that need nothing but a sandbox, by name."""
    return {COMMAND: CommandWorker()}


def open_repository(
    place: Place, settings: Settings, cancel: threading.Event | None = None
) -> OwnedRepository:
    """Return the harness's own repository beside the user's.

    Raises:
        RepositoryError: The user's repository cannot be worked on; says why.
        MachineError: git is missing or too old, or confinement is required and there is none.
    """
    if place.local.exists() and not place.local.is_dir():
        raise RepositoryError(
            f"{place.local} is no folder, and everything that loop keeps lies in there; move that "
            "file away and run the command again"
        )
    return OwnedRepository(
        place.checkout,
        place.local,
        branch=settings.land.branch,
        share=settings.sandbox.share,
        env=place.env,
        cancel=cancel,
        confinement=choose(settings.sandbox, place.checkout, Layout(place.local), place.env),
        redact=place.redactor(),
    )


def confinement_notice(confinement: Confinement, settings: Settings) -> Noticed:
    """Return what the report says about confinement; a warning where nothing holds."""
    what = confinement.describe()
    if confinement.is_holding:
        return Noticed(text=f"commands and gates run confined ({what})", level="info")
    asked = ", as asked for (--no-sandbox)" if settings.sandbox.confine == "off" else ""
    return Noticed(text=f"commands and gates run with {what}{asked}: they can do what you can")


def protecting(settings: Settings, globs: Sequence[str]) -> Settings:
    """Return the settings with more that no task may change."""
    protect = tuple(dict.fromkeys((*settings.gate.protect, *globs)))
    gate = settings.gate.model_copy(update={"protect": protect})
    return settings.model_copy(update={"gate": gate})


def gate_of(
    place: Place,
    stores: Stores,
    repository: OwnedRepository,
    clock: Clock,
    settings: Settings | None = None,
    jury: Jury | None = None,
) -> CodeGate:
    """Return the gate, by the settings of a run or by those of now; a jury judges prose."""
    settings = settings or place.settings
    return code_gate(
        repository,
        stores.verdicts,
        settings.gate,
        clock=clock,
        setup_cmd=settings.sandbox.setup_cmd,
        manifest=place.manifest_in_tree,
        signature=fixing.signature if place.own is Own.FIX else None,
        jury=jury,
        redact=place.redactor(),
    )


def fix_observation(result: GateResult) -> str:
    """Return what the worker is shown of a gate that did not pass, one failing piece first."""
    return fixing.observed(result, observation(result))


class Drive(AbstractContextManager["Drive"]):
    """One drive of one run: its events, board, landing and driver, made from the parts.

    Args:
        place: Where.
        record: The run; in the store already.
        manifest: As it was when the drive began.
        tasks: The ids that are driven; others of the manifest are left alone.
        start: The commit that new worktrees are made from.
        cancel: Set when the user asks the run to stop.
        person: Who is asked while the run goes on; ``None`` where nobody is there.
        process: Of the models, where one was begun already.
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
        start: Sha,
        scope: Scope | None,
        listeners: Sequence[Callable[[AnyEvent], None]],
        cancel: threading.Event,
        report_fault: Callable[[BaseException], str],
        person: Consent | None = None,
        process: ModelProcess | None = None,
    ) -> None:
        clock: Clock = SystemClock()
        is_fix = place.own is Own.FIX
        if is_fix:
            settings = protecting(settings, fixing.PROTECT)
        stores.ledger.purge(clock.now())
        folder = place.run_folder(record.id)
        # All of them: a run is not carried on whose history somebody has changed.
        known = tuple(read_events(folder))
        self._closing = ExitStack()
        audit = AuditLog(folder)
        self._closing.callback(audit.close)
        self.notices = (Noticed(text=f"{audit.notice} (`loop audit verify`)"),) * bool(audit.notice)
        goal = Goal(text=record.goal, done_when=manifest.goal.done_when)
        refill = Refill(
            goal,
            settings.loop.refills,
            lambda criterion: anchor.is_open(criterion, Sha(landing.head)),
            lambda command: trial(command, is_met_ok=False),
        )
        self._scope = scope
        late = LateAnswers(
            record.id, stores.decisions, lambda: read_events(folder), self._take_into_scope
        )
        for one in (refill, late):
            one.recall(known)
        hearers: tuple[Callable[[AnyEvent], None], ...] = (
            audit,
            refill.listen,
            late.listen,
            *listeners,
        )
        self.log = JsonLinesEventLog(folder, record.id, clock, hearers, place.redactor())
        self._closing.callback(self.log.close)
        self.brain = LocalBrain(folder, record.goal, place.redactor())
        gate = gate_of(place, stores, repository, clock, settings)
        tools = Tools(
            gate=gate,
            repository=repository,
            sessions=stores.sessions,
            calls=stores.call_decisions,
            brain=self.brain,
            clock=clock,
            emit=self.log.append,
            describe=fix_observation if is_fix else observation,
            comparison=CrossJudge(repository, settings.gate, settings.sandbox.setup_cmd),
            pause=PauseFile(folder),
            permission=Permission(
                record.id,
                settings.policy.approve,
                settings.policy.approve_timeout_s,
                decisions=stores.decisions,
                clock=clock,
                emit=self.log.append,
                person=person,
                classify=classifier(settings),
            ),
        )
        workers = light_workers()
        judge_text = None
        is_judging = judges_by_model(goal, manifest.tasks, settings, place.env)
        if is_judging or any(asks_models(task, settings) for task in manifest.tasks):
            # Loading what speaks to models takes as long as a small task.
            from loopctl.modelling import Modelling  # noqa: PLC0415

            models = self._closing.enter_context(
                Modelling(
                    place,
                    record,
                    settings,
                    stores,
                    repository,
                    manifest=manifest,
                    tree=lambda: repository.tree_of(landing.head),
                    clock=clock,
                    emit=self.log.append,
                    cancel=cancel,
                    process=process,
                )
            )
            jury = Jury(models.oracle, goal, record.id, settings.budget, stores.verdicts)
            gate = gate_of(place, stores, repository, clock, settings, jury)
            choose = ScopeJudge(models.oracle, goal, record.id)
            tools = replace(models.equip(tools), gate=gate, choose=choose)
            workers.update(models.workers)
            if is_judging:
                judge_text = CriterionJudge(
                    models.oracle, repository, goal, record.id, Sha(record.base)
                )
            if notice := models.routes.notice:
                self.notices = (*self.notices, Noticed(text=notice, level="info"))
            ready = _frontier(manifest, scope, None).ready()
            if any(asks_models(task, settings) for task in ready):
                models.warm()
        context = RunContext(record.id, goal, settings, tools, workers)
        board = Board(place.file, manifest, self.log.append, UnwrittenFile(place.local).keep)
        landing = Landing(tools, record.id, record.branch, start, repository.integration())
        trial = Trial(gate, lambda: Sha(landing.head))
        anchor = Anchor(goal, gate, judge_text)
        driver = Driver(
            context,
            board,
            landing,
            stores.decisions,
            make_frontier=lambda now: _frontier(now, self._scope, record.verify_cmd),
            is_goal_met=anchor.is_met
            if scope is not None and scope.is_whole
            else lambda _head: False,
            refill=refill,
            late=late,
            workable=lambda task: (
                obstacle(task, place, settings, is_attended=person is not None)
                or _came_late(task, settings, workers)
            ),
            cancel=cancel,
            report_fault=report_fault,
        )
        self.run = Run(
            record,
            context,
            board,
            landing,
            driver,
            anchor=anchor,
            runs=stores.runs,
            decisions=stores.decisions,
            cancel=cancel,
        )

    def _take_into_scope(self, tasks: Sequence[TaskId]) -> None:
        if self._scope is None:
            self._scope = Scope(ids=tuple(tasks)) if tasks else None
        elif not self._scope.is_whole:
            self._scope = replace(self._scope, ids=(*self._scope.ids, *tasks))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the event log."""
        self._closing.close()


def _came_late(task: Task, settings: Settings, workers: Mapping[str, Worker]) -> str | None:
    name = task.worker or settings.loop.worker
    if name in workers:
        return None
    return f"needs the worker {name}, which no task needed when the run began; run it again"


def _frontier(manifest: Manifest, scope: Scope | None, verify_cmd: str | None) -> Frontier:
    """Return the frontier of what is driven; with no scope, of nothing.

    A task that has left the manifest during the run is left out of the scope.
    """
    if scope is None:
        return Frontier(replace(manifest, tasks=()))
    if verify_cmd is not None:
        tasks = tuple(replace(task, verify_cmd=verify_cmd) for task in manifest.tasks)
        manifest = replace(manifest, tasks=tasks)
    if scope.is_whole:
        return Frontier(manifest)
    known: set[TaskId] = {task.id for task in manifest.tasks}
    areas = {area for task in manifest.tasks for area in task.area}
    left = replace(
        scope,
        ids=tuple(task for task in scope.ids if task in known),
        areas=tuple(area for area in scope.areas if area in areas),
    )
    return Frontier(replace(manifest, tasks=()) if left.is_whole else manifest, left)
