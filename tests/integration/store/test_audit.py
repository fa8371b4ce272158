import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loopctl.domain import Axis, DecisionKind, RunStatus, Scope, TaskStatus
from loopctl.errors import MachineError
from loopctl.events import (
    AnyEvent,
    CallFinished,
    DecisionAnswered,
    DecisionRaised,
    GateFinished,
    Noticed,
    PlanCreated,
    PlanRevised,
    RunEnded,
    RunResumed,
    RunStarted,
    StatusChanged,
    StepFinished,
    StepStarted,
    TaskLanded,
    TaskStopped,
    TodoClosed,
    TodoReopened,
)
from loopctl.plan import StepProgress
from loopctl.store.audit import GENESIS, AuditLog, canonical, hash_of, read_entry
from loopctl.store.auditcheck import CHANGED, DROPPED, INSERTED, REORDERED, Checked, check
from loopctl.store.eventlog import JsonLinesEventLog, read_lines
from loopctl.suggestions import TodoAdded
from loopctl.testing import StillClock

STORY: Sequence[AnyEvent] = (
    RunStarted(
        goal="g", base="c1", branch="b", scope=Scope(), tasks=(("T1", "t"),), settings_hash="s1"
    ),
    Noticed(text="no entry"),
    StatusChanged(task="T1", old=TaskStatus.TODO, new=TaskStatus.IN_PROGRESS, signal="claimed"),
    PlanCreated(task="T1", candidate="main", todos=("one",)),
    StepStarted(task="T1", candidate="main", iteration=1, step_goal="one"),
    StepFinished(
        task="T1", candidate="main", iteration=1, tree="t1", ms=3, progress=StepProgress(), tail="x"
    ),
    PlanRevised(task="T1", candidate="main", todos=("one", "two"), replans=1),
    TodoClosed(task="T1", candidate="main", todo="one", summary="s"),
    GateFinished(task="T1", candidate="main", head="c1", tree="t1", checks=()),
    TodoReopened(task="T1", candidate="main", todo="one"),
    DecisionRaised(task="T1", id="T1.1", kind=DecisionKind.APPROVAL, question="may it?"),
    RunEnded(status=RunStatus.NEEDS_HUMAN, exit_code=3, head="c1"),
    RunResumed(reason="answer", tasks=(("T1", "t"),)),
    DecisionAnswered(task="T1", id="T1.1", answer="approve"),
    TaskLanded(task="T1", commit="c2", tree="t1", branch="b", key="k", files=1),
    TaskStopped(task="T1", axis=Axis.GOAL, reason="goal_met", steps=1),
    RunEnded(status=RunStatus.COMPLETE, exit_code=0, head="c2"),
)
WITHOUT_ENTRY = {"noticed", "gate_finished"}


def write(folder: Path, events: Sequence[AnyEvent], *, audit: bool = True) -> None:
    """One invocation: append events, each with its entry."""
    chain = AuditLog(folder) if audit else None
    log = JsonLinesEventLog(folder, "r1", StillClock(), (chain,) if chain else ())
    for event in events:
        log.append(event)
    log.close()
    if chain:
        chain.close()


def lines(folder: Path, name: str = "audit.jsonl") -> list[str]:
    return (folder / name).read_text().splitlines()


def put(folder: Path, new: Sequence[str], name: str = "audit.jsonl") -> None:
    (folder / name).write_text("".join(f"{line}\n" for line in new))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "r1"
    write(folder, STORY[:12])
    write(folder, STORY[12:])
    return folder


def flaw(folder: Path, *, is_open: bool = False) -> tuple[str, int, str] | None:
    found = check(folder, is_open=is_open).flaw
    return (found.path.name, found.line, found.kind) if found else None


def test_a_todo_that_a_judge_has_added_is_accounted_for(tmp_path: Path) -> None:
    write(tmp_path, (TodoAdded(task="T1", candidate="main", todo="two", reason="thin"),))
    (entry,) = map(json.loads, lines(tmp_path))
    assert (entry["what"], entry["fields"]["todo"]) == ("todo_added", "two")


def test_every_kind_of_event_that_counts_has_an_entry_in_order(run: Path) -> None:
    entries = [json.loads(line) for line in lines(run)]
    assert [entry["what"] for entry in entries] == [
        event.type for event in STORY if event.type not in WITHOUT_ENTRY
    ]
    assert [entry["seq"] for entry in entries] == list(range(1, 16))
    assert {entry["run"] for entry in entries} == {"r1"}


def test_an_entry_is_canonical_chained_and_names_its_event(run: Path) -> None:
    events = read_lines(run)
    last = GENESIS
    for line in lines(run):
        entry = json.loads(line)
        bare = {name: value for name, value in entry.items() if name != "hash"}
        text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        assert entry["hash"] == hashlib.sha256(text.encode()).hexdigest()
        assert line == json.dumps(entry, sort_keys=True, separators=(",", ":"))
        assert entry["prev"] == last
        assert entry["digest"] == hashlib.sha256(events[entry["event"] - 1]).hexdigest()
        last = entry["hash"]


def test_a_step_carries_the_hash_of_the_settings_in_force(run: Path) -> None:
    steps = [one for line in lines(run) if (one := json.loads(line))["what"].startswith("step")]
    assert [step["fields"]["settings_hash"] for step in steps] == ["s1", "s1"]
    # Also where the run goes on: the start is in an earlier invocation.
    write(run, [StepStarted(task="T1", candidate="main", iteration=2, step_goal="")])
    assert json.loads(lines(run)[-1])["fields"]["settings_hash"] == "s1"


def test_an_entry_stands_before_any_other_listener_is_called(tmp_path: Path) -> None:
    seen: list[int] = []
    chain = AuditLog(tmp_path)
    log = JsonLinesEventLog(
        tmp_path, "r1", StillClock(), (chain, lambda _event: seen.append(len(lines(tmp_path))))
    )
    log.append(STORY[0])
    log.append(STORY[2])
    log.close()
    chain.close()
    assert seen == [1, 2]


def test_a_whole_chain_is_ok_and_goes_on_over_invocations(run: Path) -> None:
    head = json.loads(lines(run)[-1])["hash"]
    assert check(run) == Checked(15, head)


def test_the_chain_is_the_same_however_it_comes_about(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "runs" / "r2"
    write(other, STORY, audit=False)
    AuditLog(other).close()
    assert lines(other) == lines(run)


Change = Callable[[list[str]], list[str]]


def changed(line: str) -> str:
    return line.replace('"task":"T1"', '"task":"T2"')


def rehashed(line: str, **new: object) -> str:
    entry = {**json.loads(line), **new}
    entry["hash"] = hash_of(entry)
    return canonical(entry).decode()


def remade(given: Sequence[str]) -> list[str]:
    """Number and chain the entries anew, as somebody does who knows how."""
    made: list[str] = []
    for number, line in enumerate(given, 1):
        prev = json.loads(made[-1])["hash"] if made else GENESIS
        made.append(rehashed(line, seq=number, prev=prev))
    return made


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda at: [*at[:4], changed(at[4]), *at[5:]], ("audit.jsonl", 5, CHANGED)),
        (lambda at: [*at[:4], rehashed(at[4], ts="x"), *at[5:]], ("audit.jsonl", 5, CHANGED)),
        (lambda at: [*at[:4], "nonsense", *at[5:]], ("audit.jsonl", 5, CHANGED)),
        (lambda at: [*at[:14], at[14].replace("complete", "failed")], ("audit.jsonl", 15, CHANGED)),
        (lambda at: [*at[:4], *at[5:]], ("audit.jsonl", 5, DROPPED)),
        (lambda at: at[3:], ("audit.jsonl", 1, DROPPED)),
        (lambda at: [*at[:4], *at[7:]], ("audit.jsonl", 5, DROPPED)),
        (lambda at: at[:-1], ("audit.jsonl", 15, DROPPED)),
        (lambda at: at[:5], ("audit.jsonl", 6, DROPPED)),
        (lambda _at: [], ("audit.jsonl", 1, DROPPED)),
        (lambda at: [*at[:4], at[2], *at[4:]], ("audit.jsonl", 5, INSERTED)),
        (lambda at: [*at[:4], rehashed(at[4], ts="x"), *at[4:]], ("audit.jsonl", 5, INSERTED)),
        (lambda at: [*at, at[3]], ("audit.jsonl", 16, INSERTED)),
        (lambda at: [*at[:4], at[5], at[4], *at[6:]], ("audit.jsonl", 5, REORDERED)),
        (lambda at: [at[1], at[0], *at[2:]], ("audit.jsonl", 1, REORDERED)),
        (lambda at: remade([*at[:4], *at[5:]]), ("audit.jsonl", 5, DROPPED)),
        (lambda at: remade([*at[:4], changed(at[4]), *at[5:]]), ("audit.jsonl", 5, CHANGED)),
    ],
    ids=[
        "changed",
        "changed with its own hash",
        "no entry",
        "last changed",
        "dropped",
        "beginning dropped",
        "three dropped",
        "last dropped",
        "end dropped",
        "all dropped",
        "copied",
        "invented",
        "appended",
        "moved",
        "first moved",
        "dropped, all made anew",
        "changed, all made anew",
    ],
)
def test_the_first_line_that_was_touched_is_named(
    run: Path, change: Change, found: tuple[str, int, str]
) -> None:
    put(run, change(lines(run)))
    assert flaw(run) == found
    assert str(check(run).flaw).startswith(f"{run}/{found[0]}:{found[1]}: {found[2]}: ")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda at: [*at[:4], changed(at[4]), *at[5:]], ("events.jsonl", 5, CHANGED)),
        (lambda at: [*at[:4], "nonsense", *at[5:]], ("events.jsonl", 5, CHANGED)),
        (lambda at: [at[0].replace('"g"', '"h"'), *at[1:]], ("events.jsonl", 1, CHANGED)),
        (lambda at: [at[0], *at[2:]], ("events.jsonl", 2, DROPPED)),
        (lambda at: at[:-1], ("events.jsonl", 17, DROPPED)),
        (lambda at: [*at[:2], at[1], *at[2:]], ("events.jsonl", 3, INSERTED)),
        (lambda at: [at[0], at[2], at[1], *at[3:]], ("events.jsonl", 2, REORDERED)),
    ],
    ids=["changed", "no event", "start changed", "dropped", "end cut off", "inserted", "moved"],
)
def test_an_event_that_was_touched_is_named(
    run: Path, change: Change, found: tuple[str, int, str]
) -> None:
    put(run, change(lines(run, "events.jsonl")), "events.jsonl")
    assert flaw(run) == found


def test_a_torn_last_line_is_a_flaw_unless_its_process_was_killed(run: Path) -> None:
    content = (run / "audit.jsonl").read_bytes()
    (run / "audit.jsonl").write_bytes(content[:-20])
    assert flaw(run) == ("audit.jsonl", 15, CHANGED)
    assert flaw(run, is_open=True) is None
    (run / "audit.jsonl").write_bytes(content[:-1])
    assert flaw(run) == ("audit.jsonl", 15, CHANGED)


def test_a_crash_explains_one_entry_that_is_missing_and_no_more(run: Path) -> None:
    whole = lines(run)
    put(run, whole[:-1])
    assert flaw(run, is_open=True) is None
    put(run, whole[:-2])
    assert flaw(run, is_open=True) == ("audit.jsonl", 14, DROPPED)


def test_looking_while_the_run_goes_on_sees_no_flaw(run: Path) -> None:
    # Between the two readings an event and its entry were written.
    put(run, lines(run, "events.jsonl")[:-1], "events.jsonl")
    assert flaw(run, is_open=True) is None


@pytest.mark.parametrize("cut", range(0, 700, 23))
def test_what_a_crash_tore_is_made_again_without_a_gap(run: Path, cut: int) -> None:
    whole = (run / "audit.jsonl").read_bytes()
    (run / "audit.jsonl").write_bytes(whole[: len(whole) - cut])
    AuditLog(run).close()
    assert (run / "audit.jsonl").read_bytes() == whole
    assert flaw(run) is None


def test_a_torn_event_never_happened_and_has_no_entry(run: Path) -> None:
    with (run / "events.jsonl").open("ab") as file:
        file.write(b'{"seq": 18, "ts": "2026')
    write(run, [RunResumed(reason="crash", tasks=())])
    assert flaw(run) is None
    assert json.loads(lines(run)[-1])["event"] == 18


def test_what_was_lost_without_a_crash_is_said(run: Path) -> None:
    whole = lines(run)
    put(run, whole[:-3])
    chain = AuditLog(run)
    chain.close()
    assert chain.notice == "audit.jsonl lacked 3 entries; made again from the events"
    assert lines(run) == whole


def test_a_broken_chain_goes_on_and_stays_broken(run: Path) -> None:
    broken = [*lines(run)[:4], *lines(run)[5:]]
    put(run, broken)
    write(run, [RunResumed(reason="resume", tasks=())])
    now = lines(run)
    assert now[:-1] == broken
    assert json.loads(now[-1])["prev"] == json.loads(broken[-1])["hash"]
    assert flaw(run) == ("audit.jsonl", 5, DROPPED)


def test_an_end_that_is_no_entry_is_said_and_left(run: Path) -> None:
    put(run, [*lines(run), "nonsense"])
    chain = AuditLog(run)
    chain.close()
    assert chain.notice == "audit.jsonl does not end with an entry: it was changed"
    assert lines(run)[-1] == "nonsense"
    assert flaw(run) == ("audit.jsonl", 16, INSERTED)


def test_events_that_were_cut_off_are_said(run: Path) -> None:
    put(run, lines(run, "events.jsonl")[:-3], "events.jsonl")
    chain = AuditLog(run)
    chain.close()
    assert chain.notice == "audit.jsonl goes further than the events: one of them was changed"


def test_an_entry_that_the_disk_refused_comes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    chain = AuditLog(tmp_path)
    log = JsonLinesEventLog(tmp_path, "r1", StillClock(), (chain,))
    log.append(STORY[0])
    pwrite = os.pwrite

    def full(file: int, data: bytes, offset: int) -> int:
        if len(data) > 10:
            return pwrite(file, data[:10], offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(MachineError, match=r"audit\.jsonl cannot be written: the disk is full"):
        log.append(STORY[2])
    monkeypatch.setattr(os, "pwrite", pwrite)
    log.append(STORY[3])
    log.close()
    chain.close()
    assert flaw(tmp_path) is None
    assert len(lines(tmp_path)) == 3


def test_a_call_that_leaves_the_sandbox_has_an_entry(run: Path) -> None:
    made = CallFinished(
        task="T1", candidate="main", iteration=1, ordinal=2, tool="mcp__x__y", key="k", ms=3
    )
    write(run, [made])
    entry = json.loads(lines(run)[-1])
    assert (entry["what"], entry["fields"]["tool"], entry["fields"]["key"]) == (
        "call_finished",
        "mcp__x__y",
        "k",
    )
    assert "ms" not in entry["fields"]


def test_the_file_is_private(run: Path) -> None:
    assert (run / "audit.jsonl").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"seq": "1"}', "{", "\ud800"])
def test_what_is_no_entry_reads_as_none(line: str) -> None:
    assert read_entry(line.encode("utf-8", "surrogatepass")) is None
