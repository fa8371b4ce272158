"""Begins a drive: checks what can be checked, takes the lease, opens what is needed, drives.

New run, resumed run and answered run differ only in the record they start from and in the tasks
that are driven.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Final

from loopctl import start
from loopctl.ability import obstacle
from loopctl.aim import Aim, is_made, manifest_now, refuse_unaskable, take_aim
from loopctl.assembly import Drive, gate_of, open_repository
from loopctl.clock import SystemClock, stamp
from loopctl.domain import (
    Manifest,
    RunOptions,
    RunStatus,
    Scope,
)
from loopctl.drawing import UNENDED, Bench, Source, cut_short, keep
from loopctl.driveplan import DrivePlan, Plans
from loopctl.engine import answers as answering
from loopctl.engine import naming
from loopctl.engine.run import Beginning
from loopctl.errors import LoopctlError, UsageError
from loopctl.events import AnyEvent, Noticed, RunEnded
from loopctl.landhere import Landing, land_here
from loopctl.manifest.frontier import Frontier
from loopctl.modelling import models
from loopctl.place import Place
from loopctl.records import RunRecord
from loopctl.sandbox.interrupt import cancel_on_signals
from loopctl.sandbox.repository import OwnedRepository
from loopctl.sources.kickoff import check_goal
from loopctl.store import lease
from loopctl.store.eventlog import check_events, has_events
from loopctl.store.kickoffs import KickoffFile
from loopctl.store.pause import PauseFile
from loopctl.store.stores import Stores
from loopctl.store.unwritten import UnwrittenFile
from loopctl.toolports import Consent
from loopctl.worker.link import ModelProcess

_SEVERITY: Final = (0, 4, 3, 5, 2, 1, 130)
"""Exit codes in the order in which they count, the last one first."""

Ask = Callable[[threading.Event], Consent]
"""Makes who is asked; the event is set when the run is asked to stop."""


class Launch:
    """Drives runs of one checkout, one after the other.

    Args:
        listeners: Called with every event of the run, in order, after it is written.
        person: Makes who is asked while a run goes on; ``None`` where nobody is there.
    """

    def __init__(
        self,
        place: Place,
        listeners: Sequence[Callable[[AnyEvent], None]],
        person: Ask | None = None,
    ) -> None:
        self._place = place
        self._person = person
        self._listeners = listeners
        self._clock = SystemClock()
        self._cancel = threading.Event()
        self._lease: lease.Lease | None = None

    def run(self, options: RunOptions) -> RunEnded:
        """Drive a new run, or the one that was interrupted with the same scope."""
        manifest = self._place.file.load()
        self._refuse_unworkable(manifest, options.scope)
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            manifest = self._place.file.load()
            unended = [
                one
                for one in stores.runs.runs()
                if one.status in UNENDED and self._place.of_run(one.id).own is None
            ]
            same = next((one for one in unended[:1] if one.scope == options.scope), None)
            if same is not None and not options.wip and same.verify_cmd == options.verify_cmd:
                plan = self._plans(stores, repository).carried_on(same, manifest)
            else:
                plan = self._plans(stores, repository).new(manifest, options, self._clock.now())
            return self._drive(stores, repository, replace(plan, land=options.land))

    def pursue(self, aim: Aim, options: RunOptions) -> RunEnded:
        """Make tasks of a goal, write them to the manifest, and drive a new run over it.

        A goal that the manifest has tasks for already is driven on.

        Raises:
            UserError: What stands in the way; the manifest is as it was.
        """
        check_goal(aim.text)
        manifest = manifest_now(self._place)
        if is_made(manifest, aim.text):
            return self.run(options)
        refuse_unaskable(self._place, is_attended=self._person is not None)
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            goal = replace(manifest, goal=replace(manifest.goal, text=aim.text))
            # Until there is something to drive it is no run that could be carried on.
            plan = self._plans(stores, repository).new(
                goal, options, self._clock.now(), RunStatus.FAILED
            )
            # What makes the tasks does them: its process takes seconds to start.
            process = stack.enter_context(
                closing(models(self._place, self._place.settings, self._clock, self._cancel))
            )
            take_aim(
                self._place,
                aim,
                stores,
                repository,
                run_id=plan.record.id,
                base=plan.start,
                clock=self._clock,
                process=process,
            )
            plan = replace(plan, manifest=self._place.file.load(), land=options.land)
            return self._drive(stores, repository, plan, process)

    def draw(self, source: Source, options: RunOptions) -> RunEnded | None:
        """Drive a new run over tasks that are drawn from the tree; ``None`` where there are none.

        A run that was cut short while it did the same is driven on. ``options.wip`` counts only
        where the checkout has uncommitted changes; the source knows the verify commands.

        Raises:
            UserError: What stands in the way; no run was begun.
        """
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            found = repository.uncommitted(leaving_out=self._place.manifest_in_tree)
            is_wip = options.wip and bool(found.changed + found.untracked)
            options = replace(options, wip=is_wip, verify_cmd=None)
            gate = gate_of(self._place, stores, repository, self._clock)
            now = self._clock.now()
            run_id = naming.run_id(now)
            bench = Bench(self._place, repository, gate, repository.head(), run_id)
            left = cut_short(bench, source, stores.runs.runs(), is_wip=is_wip)
            if left is not None:
                self._place = self._place.of_run(left.id)
                plan = self._plans(stores, repository).carried_on(left, self._place.file.load())
                return self._drive(stores, repository, replace(plan, land=options.land))
            begin = start.new(repository, self._place, wip=is_wip)
            bench = replace(bench, base=begin[0])
            manifest = source.draw(bench)
            if manifest is None:
                return None
            self._refuse_unworkable(manifest, options.scope)
            self._place = keep(bench, source.own, manifest)
            manifest = self._place.file.load()
            plan = self._plans(stores, repository).new(
                manifest, options, now, begin=begin, run_id=run_id
            )
            return self._drive(stores, repository, replace(plan, land=options.land))

    def resume(self, run_id: str | None) -> RunEnded:
        """Drive a run on; the newest one that has something left when none is named."""
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            begun = [one for one in stores.runs.runs() if self._is_begun(one)]
            record = start.chosen(begun, run_id)
            self._place = self._place.of_run(record.id)
            plan = self._plans(stores, repository).carried_on(record, self._place.file.load())
            return self._drive(stores, repository, plan)

    def answer(self, given: Sequence[answering.Answer]) -> RunEnded:
        """Record the answers, all or none; then drive what they set free, run by run.

        Where none is given, what was recorded beside the newest run is driven.
        """
        users = self._place
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            decisions = answering.check(given, stores.decisions.decisions())
            run_ids = tuple(dict.fromkeys(decision.run_id for decision in decisions))
            for run_id in run_ids:
                users.of_run(run_id).file.load()
            ended: list[RunEnded] = []
            newest = [record.id for record in stores.runs.runs()[:1]]
            for run_id in run_ids or newest:
                self._place = users.of_run(run_id)
                ids = {decision.id for decision in decisions if decision.run_id == run_id}
                mine = [answer for answer in given if answer.decision_id in ids]
                ended.append(self._answer_run(stores, repository, run_id, mine))
            return max(ended, key=lambda end: _SEVERITY.index(end.exit_code))

    def land(self) -> Landing:
        """Take what landed onto the user's branch, or onto the files that a run was begun with.

        Raises:
            LandingRefusedError: Nothing was changed; says why.
        """
        with ExitStack() as stack:
            stores, repository = self._open(stack)
            return land_here(stores, repository)

    def _is_begun(self, record: RunRecord) -> bool:
        """Return whether there is a run to go on with: its goal has become tasks."""
        is_failed = record.status is RunStatus.FAILED
        return not is_failed or has_events(self._place.run_folder(record.id))

    def _open(self, stack: ExitStack) -> tuple[Stores, OwnedRepository]:
        """Open the repository under the lease, and the stores; look before anything is made."""
        start.refuse_sandbox(self._place)
        repository = open_repository(self._place, self._place.settings, self._cancel)
        self._lease = stack.enter_context(lease.hold(self._place.local))
        stack.enter_context(cancel_on_signals(self._cancel))
        stack.callback(repository.drain)
        repository.sync()
        UnwrittenFile(self._place.local).settle(self._place.file)
        return stack.enter_context(
            Stores(self._place.local, redact=self._place.redactor())
        ), repository

    def _plans(self, stores: Stores, repository: OwnedRepository) -> Plans:
        return Plans(self._place, stores, repository)

    def _answer_run(
        self,
        stores: Stores,
        repository: OwnedRepository,
        run_id: str,
        given: Sequence[answering.Answer],
    ) -> RunEnded:
        record = stores.runs.run(run_id)
        if record is None:
            raise UsageError(f"there is no run {run_id}; `loop runs` lists them")
        check_events(self._place.run_folder(run_id))
        # Where a crash came before the tasks of earlier answers were driven, they are driven now.
        untold = start.untold(stores, record, self._place)
        is_crash = record.status is RunStatus.RUNNING
        late = start.answered(stores, record) if is_crash else untold
        # From here on the run is under way: a crash before its tasks are driven is carried on.
        stores.runs.set_run_status(run_id, RunStatus.RUNNING, None)
        answered = answering.record(given, stores.decisions, stamp(self._clock.now()))
        plan = self._plans(stores, repository).freed(record, (*late, *answered))
        return self._drive(stores, repository, replace(plan, answered=(*untold, *answered)))

    def _after(self, stores: Stores, repository: OwnedRepository, ended: RunEnded) -> RunEnded:
        """Drive what answers set free that came after the drive's last look, if any did.

        Who records beside a run that is going drives the answers where it finds that run ended.
        """
        record = stores.runs.run(ended.run)
        if record is None or ended.status is RunStatus.INTERRUPTED:
            return ended
        late = start.untold(stores, record, self._place)
        if not late:
            return ended
        plan = self._plans(stores, repository).freed(record, late)
        return self._drive(stores, repository, replace(plan, answered=late))

    def _drive(
        self,
        stores: Stores,
        repository: OwnedRepository,
        plan: DrivePlan,
        process: ModelProcess | None = None,
    ) -> RunEnded:
        record, scope = plan.record, plan.scope
        # Whoever asks from here on means this drive.
        PauseFile(self._place.run_folder(record.id)).withdraw()
        if self._lease is not None:
            self._lease.name_run(record.id)
        with Drive(
            self._place,
            record,
            plan.settings,
            stores,
            repository,
            manifest=plan.manifest,
            start=plan.start,
            scope=scope,
            listeners=self._listeners,
            cancel=self._cancel,
            report_fault=self._report_fault,
            person=self._person(self._cancel) if self._person is not None else None,
            process=process,
        ) as drive:
            kept = KickoffFile(self._place.local)
            suppositions, settled = kept.load(record.goal)
            beginning = Beginning(
                reason=plan.reason,
                tasks=start.members(plan.manifest, record.scope),
                scope=record.scope,
                notices=(*drive.notices, *plan.notices),
                answered=plan.answered,
                freed=plan.freed,
                suppositions=suppositions,
                settled=settled,
                recorded=kept.clear,
                overturned=plan.overturned,
            )
            should_land = plan.land or plan.settings.land.auto
            ended = drive.run.drive(
                beginning,
                lambda: self._land_here(stores, repository, drive) if should_land else None,
            )
        return self._after(stores, repository, ended)

    def _land_here(self, stores: Stores, repository: OwnedRepository, drive: Drive) -> str | None:
        """Fast-forward the user's branch at the end of a run; a refusal is a notice."""
        try:
            return land_here(stores, repository).new
        except LoopctlError as exc:
            drive.log.append(Noticed(text=f"not landed on the current branch: {exc}"))
            return None

    def _refuse_unworkable(self, manifest: Manifest, scope: Scope) -> None:
        """Refuse a run none of whose ready tasks can be worked on; some are enough to begin."""
        ready = Frontier(manifest, scope).ready()
        is_attended = self._person is not None
        reasons = {
            task.id: obstacle(task, self._place, self._place.settings, is_attended=is_attended)
            for task in ready
        }
        if ready and all(reasons.values()):
            raise UsageError("\n".join(f"{task} {reason}" for task, reason in reasons.items()))

    def _report_fault(self, fault: BaseException) -> str:
        return start.write_down(fault, self._place, self._clock.now())
