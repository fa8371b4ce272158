from collections.abc import Iterator
from pathlib import Path

import pytest

from loopctl.domain import RunStatus, Scope, Sha
from loopctl.ports import RunRecord
from loopctl.store.database import Database, open_database
from loopctl.store.runs import SqliteRuns


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = open_database(tmp_path / "loop.db")
    SqliteRuns(found).create_run(record("r1"))
    yield found
    found.close()


def record(run_id: str) -> RunRecord:
    return RunRecord(
        id=run_id,
        status=RunStatus.RUNNING,
        goal="the goal",
        base=Sha("c1"),
        branch="loop/integration",
        started="2026-01-02T03:04:05.000Z",
        scope=Scope(areas=("import",)),
        settings_json="{}",
        settings_hash="h",
        verify_cmd="make test",
        is_wip=True,
    )
