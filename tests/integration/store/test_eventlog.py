import json
import threading
from pathlib import Path

import pytest

from loopctl.errors import StoreError
from loopctl.events import AnyEvent, Noticed
from loopctl.store.eventlog import JsonLinesEventLog, read_events
from loopctl.testing import StillClock


def log(folder: Path, *listeners: object) -> JsonLinesEventLog:
    return JsonLinesEventLog(folder, "r1", StillClock(), listeners)  # type: ignore[arg-type]


def test_events_are_numbered_stamped_and_written_before_listeners_are_called(
    tmp_path: Path,
) -> None:
    seen: list[tuple[int, int]] = []

    def listen(event: AnyEvent) -> None:
        seen.append((event.seq, len((tmp_path / "events.jsonl").read_bytes().splitlines())))

    events = log(tmp_path, listen)
    events.append(Noticed(text="one"))
    events.append(Noticed(text="two", task="T1"))
    events.close()
    assert seen == [(1, 1), (2, 2)]
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(one["seq"], one["ts"], one["run"], one["task"], one["type"]) for one in lines] == [
        (1, "2026-01-02T03:04:05.000Z", "r1", None, "noticed"),
        (2, "2026-01-02T03:04:05.000Z", "r1", "T1", "noticed"),
    ]


def test_numbers_go_on_over_invocations_and_a_torn_line_never_happened(tmp_path: Path) -> None:
    first = log(tmp_path)
    first.append(Noticed(text="one"))
    first.close()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"seq": 2, "ts": "2026')
    assert [event.seq for event in read_events(tmp_path)] == [1]
    second = log(tmp_path)
    second.append(Noticed(text="two"))
    second.close()
    assert [event.seq for event in second.read()] == [1, 2]


def test_numbers_have_no_gap_when_threads_write_at_once(tmp_path: Path) -> None:
    events = log(tmp_path)

    def write() -> None:
        for _ in range(50):
            events.append(Noticed(text="x"))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events.close()
    assert [event.seq for event in read_events(tmp_path)] == list(range(1, 201))


def test_text_that_is_no_utf8_does_not_break_the_log(tmp_path: Path) -> None:
    events = log(tmp_path)
    events.append(Noticed(text="caf\udce9"))
    events.close()
    assert len(list(read_events(tmp_path))) == 1


def test_folder_and_file_are_private(tmp_path: Path) -> None:
    events = log(tmp_path / "runs" / "r1")
    events.close()
    assert (tmp_path / "runs" / "r1").stat().st_mode & 0o077 == 0
    assert (tmp_path / "runs" / "r1" / "events.jsonl").stat().st_mode & 0o077 == 0


def test_a_line_that_is_no_event_is_named_with_its_file(tmp_path: Path) -> None:
    log(tmp_path).append(Noticed(text="one"))
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"type": "from_the_future"}\n')
    with pytest.raises(StoreError, match=r"events\.jsonl:2 is no event"):
        list(read_events(tmp_path))
