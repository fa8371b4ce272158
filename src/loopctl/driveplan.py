"""What a drive is made of: a run's record and settings, its tasks, and why they are driven.

A new run, one that goes on and one that was answered differ in nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from loopctl import settings as setting
from loopctl import start
from loopctl.clock import stamp
from loopctl.domain import (
    Decision,
    Manifest,
    RunOptions,
    RunStatus,
    Scope,
    Sha,
    TaskId,
    TaskStatus,
)
from loopctl.engine import answers as answering
from loopctl.engine import naming
from loopctl.events import Noticed
from loopctl.place import Place
from loopctl.records import RunRecord
from loopctl.sandbox.repository import OwnedRepository
from loopctl.settings import Settings
from loopctl.store.eventlog import read_events
from loopctl.store.stores import Stores

Reason = Literal["answer", "resume", "crash"]


@dataclass(frozen=True, slots=True)
class DrivePlan:
    """What is driven.

    Attributes:
        scope: Of this drive; ``None`` for nothing but the end of the run.
        reason: Why an earlier run is driven on; ``None`` for a new one.
    """

    record: RunRecord
    settings: Settings
    manifest: Manifest
    start: Sha
    scope: Scope | None
    reason: Reason | None
    notices: tuple[Noticed, ...]
    answered: tuple[Decision, ...] = ()
    freed: tuple[TaskId, ...] = ()
    overturned: Mapping[TaskId, Decision] = field(default_factory=dict)
    land: bool = False


@dataclass(frozen=True, slots=True)
class Plans:
    """Makes the plans of one checkout's drives."""

    place: Place
    stores: Stores
    repository: OwnedRepository

    def new(
        self,
        manifest: Manifest,
        options: RunOptions,
        now: datetime,
        status: RunStatus = RunStatus.RUNNING,
        *,
        begin: start.Start | None = None,
        run_id: str | None = None,
    ) -> DrivePlan:
        """Return the plan of a new run, whose record is written.

        Args:
            manifest: What it drives.
            options: What the user asks of it.
            now: When it begins.
            status: Of the record; one that has failed cannot be carried on.
            begin: The commit and its notices, where they are known already.
            run_id: Where it has been given away already.
        """
        commit, notices = begin or start.new(self.repository, self.place, wip=options.wip)
        record = RunRecord(
            id=run_id or naming.run_id(now),
            status=status,
            goal=manifest.goal.text,
            base=commit,
            branch=self.place.settings.land.branch,
            started=stamp(now),
            scope=options.scope,
            settings_json=self.place.loaded.json,
            settings_hash=self.place.loaded.hash,
            verify_cmd=options.verify_cmd,
            is_wip=options.wip,
        )
        self.stores.runs.create_run(record)
        return DrivePlan(
            record, self.place.settings, manifest, commit, options.scope, None, notices
        )

    def _continued(
        self,
        record: RunRecord,
        manifest: Manifest,
        scope: Scope | None,
        reason: Reason,
    ) -> DrivePlan:
        """Return the plan of a run that goes on, with the settings frozen at its start."""
        snapshot = record.base if record.is_wip else None
        commit, notices = start.again(self.repository, self.place, snapshot=snapshot)
        if record.settings_hash != self.place.loaded.hash:
            changed = "; ".join(setting.differences(record.settings_json, self.place.loaded.json))
            text = f"run {record.id} goes on with the settings of its start, not with {changed}"
            notices = (*notices, *([Noticed(text=text, level="info")] if changed else ()))
        frozen = setting.from_json(record.settings_json)
        return DrivePlan(record, frozen, manifest, commit, scope, reason, notices)

    def carried_on(self, record: RunRecord, manifest: Manifest) -> DrivePlan:
        """Return the plan of a whole run that goes on; a crash may have come just after answers."""
        is_crash = record.status is RunStatus.RUNNING
        untold = start.untold(self.stores, record, self.place)
        answered = start.answered(self.stores, record) if is_crash else untold
        freed = answering.freed(answered, self.stores.decisions.decisions())
        reason: Reason = "crash" if is_crash else "resume"
        plan = self._continued(record, manifest, record.scope, reason)
        over = self._overturned(record, answered, manifest)
        return replace(plan, answered=untold, freed=freed, overturned=over)

    def freed(
        self,
        record: RunRecord,
        answered: tuple[Decision, ...],
    ) -> DrivePlan:
        """Return the plan of exactly the answered tasks and what waited for them."""
        manifest = self.place.file.load()
        freed = answering.freed(answered, self.stores.decisions.decisions())
        freed = tuple(
            task.id
            for task in manifest.tasks
            if task.id in freed and task.status is not TaskStatus.DONE
        )
        overturned = self._overturned(record, answered, manifest)
        reached = dict.fromkeys((*answering.reach(manifest, freed).ids, *overturned))
        scope = Scope(ids=tuple(reached)) if reached else None
        plan = self._continued(record, manifest, scope, "answer")
        return replace(plan, freed=freed, overturned=overturned)

    def _overturned(
        self, record: RunRecord, answered: Sequence[Decision], manifest: Manifest
    ) -> Mapping[TaskId, Decision]:
        """Return the tasks that rest on what the answers contradict, as the events tell it."""
        if not any(map(answering.is_contradiction, answered)):
            return {}
        events = read_events(self.place.run_folder(record.id))
        return answering.overturned(answered, events, manifest)
