import errno
import io
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from loopctl.cli.lines import event_line
from loopctl.cli.live import Follower, guarded, live_view
from loopctl.domain import Scope
from loopctl.events import (
    AnyEvent,
    Noticed,
    RunResumed,
    RunStarted,
    StepStarted,
    TaskClaimed,
    parse,
)

STAMP = {"seq": 7, "ts": "2026-01-02T03:04:05.000Z", "run": "r1"}
SAMPLES = [
    '{"type":"run_started","goal":"g","base":"b","branch":"i","scope":{},"tasks":[["T1","One"]]}',
    '{"type":"run_resumed","reason":"answer","tasks":[]}',
    '{"type":"noticed","text":"careful"}',
    '{"type":"task_claimed","task":"T1","title":"One","worker":"command"}',
    '{"type":"status_changed","task":"T1","old":"todo","new":"done","signal":"landed"}',
    '{"type":"sandbox_opened","task":"T1","candidate":"main","base":"b","tree":"t"}',
    '{"type":"step_started","task":"T1","candidate":"main","iteration":1,"step_goal":"do"}',
    '{"type":"step_finished","task":"T1","candidate":"a","iteration":1,"tree":"t","ms":5,"progress":{}}',
    '{"type":"plan_created","task":"T1","candidate":"main","todos":["a"]}',
    '{"type":"plan_revised","task":"T1","candidate":"main","todos":["a"],"replans":1}',
    '{"type":"todo_closed","task":"T1","candidate":"main","todo":"a","summary":"did"}',
    '{"type":"todo_reopened","task":"T1","candidate":"main","todo":"a"}',
    '{"type":"todo_added","task":"T1","candidate":"main","todo":"a\\n1. b","reason":"why"}',
    '{"type":"message_rejected","task":"T1","candidate":"main","error":"bad"}',
    '{"type":"assumption_recorded","task":"T1","candidate":"main","text":"x"}',
    (
        '{"type":"task_proposed","task":"T1","candidate":"main","title":"t","prompt":"p",'
        '"verify_cmd":"false","serves":"1"}'
    ),
    '{"type":"proposal_judged","task":"T1","title":"t","serves":"1","reason":"met"}',
    '{"type":"call_finished","task":"T1","candidate":"a","iteration":1,"ordinal":0,"tool":"t","key":"k"}',
    '{"type":"call_replayed","task":"T1","candidate":"a","iteration":1,"ordinal":0,"tool":"t","key":"k","source":"probe"}',
    '{"type":"gate_finished","task":"T1","candidate":"main","head":"h","tree":"t","checks":[]}',
    '{"type":"candidate_ended","task":"T1","name":"a","verdict":"pass","ref":"refs/loop/x"}',
    (
        '{"type":"context_compacted","task":"T1","session":"s","first":1,"last":3,'
        '"in_line":false,"is_fallback":false}'
    ),
    (
        '{"type":"fork_classified","task":"T1","candidate":"main","question":"far?",'
        '"options":["a"],"said":"scope","bucket":"scope","reason":"so"}'
    ),
    '{"type":"fork_resolved","task":"T1","winner":null,"reason":"none passed"}',
    '{"type":"task_landed","task":"T1","commit":"c","tree":"t","branch":"i","key":"k","files":1}',
    '{"type":"decision_raised","task":"T1","id":"T1.1","kind":"scope","question":"far?"}',
    '{"type":"decision_answered","task":"T1","id":"T1.1","answer":"yes"}',
    '{"type":"task_stopped","task":"T1","axis":"stall","reason":"no_progress","steps":3}',
    '{"type":"money_spent","task":"T1","usage":{"prompt_tokens":5,"completion_tokens":2,"usd":0.25}}',
    '{"type":"goal_judged","met":null,"criteria":[]}',
    '{"type":"run_ended","status":"complete","exit_code":0,"head":"h"}',
]
EVENTS = [parse(sample).model_copy(update=STAMP) for sample in SAMPLES]


def test_there_is_a_sample_of_every_event() -> None:
    schema = TypeAdapter(AnyEvent).json_schema()
    assert {event.type for event in EVENTS} == set(schema["discriminator"]["mapping"])


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_every_event_is_one_plain_line(event: AnyEvent) -> None:
    line = event_line(event)
    assert line.startswith("03:04:05 ")
    assert line.isprintable()
    assert (event.task or "") in line


def test_a_view_without_a_terminal_writes_a_line_an_event() -> None:
    stream = io.StringIO()
    with live_view(Follower(lambda _run: ()), stream) as view:
        for event in EVENTS:
            view(event)
    assert len(stream.getvalue().splitlines()) == len(EVENTS)
    assert "\x1b" not in stream.getvalue()


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """Takes so many writes, then none."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.tried = 0

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, _text: str) -> int:
        self.tried += 1
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_view_that_cannot_be_written_is_given_up_in_silence(
    monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Full(is_terminal=is_terminal)
    follower = Follower(lambda _run: ())
    follower(EVENTS[0])
    with live_view(follower, stream) as view:
        for event in EVENTS:
            view(event)
    assert stream.tried


def test_where_a_broken_view_cannot_even_be_said_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(event: AnyEvent) -> None:
        raise ValueError(event.type)

    monkeypatch.setattr("sys.stderr", Full(is_terminal=False))
    guarded(broken)(Noticed(text="a"))


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_no_codes_gets_none(
    variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*variable)
    stream = Screen()
    with live_view(Follower(lambda _run: ()), stream) as view:
        view(EVENTS[0])
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_a_table_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Screen()
    follower = Follower(lambda _run: ())
    follower(EVENTS[0])
    with live_view(follower, stream):
        pass
    assert "T1" in stream.getvalue()


def _history() -> tuple[AnyEvent, ...]:
    events: list[AnyEvent] = [
        RunStarted(goal="g", base="b", branch="i", scope=Scope(), tasks=(("T1", "One"),)),
        TaskClaimed(task="T1", title="One", worker="command"),
        RunResumed(reason="resume", tasks=(("T1", "One"),)),
        StepStarted(task="T1", candidate="main", iteration=4, step_goal="x"),
    ]
    return tuple(e.model_copy(update={"seq": n, "run": "r1"}) for n, e in enumerate(events, 1))


def test_a_continued_run_is_shown_with_its_history() -> None:
    asked: list[str] = []

    def history(run_id: str) -> Iterator[AnyEvent]:
        asked.append(run_id)
        yield from _history()

    follower = Follower(history)
    for event in _history()[2:]:
        follower(event)
    assert asked == ["r1"]
    assert (follower.summary.goal, follower.summary.invocations) == ("g", 2)
    assert follower.summary.seq == 4


def test_a_broken_view_is_said_once_and_ends_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(event: AnyEvent) -> None:
        raise ValueError(event.type)

    listener = guarded(broken)
    listener(Noticed(text="a"))
    listener(Noticed(text="b"))
    assert capsys.readouterr().err.count("has failed and is off") == 1


def test_a_table_is_not_drawn_while_somebody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Screen()

    def is_drawn() -> bool:
        # Whoever draws hides the cursor, and shows it again at the end.
        return stream.getvalue().rfind("\x1b[?25l") > stream.getvalue().rfind("\x1b[?25h")

    with live_view(Follower(lambda _run: ()), stream) as view:
        for _ in range(2):
            assert is_drawn()
            with view.quiet():
                assert not is_drawn()
        assert is_drawn()
    assert not is_drawn()


def test_a_view_of_lines_has_nothing_to_keep_quiet() -> None:
    stream = io.StringIO()
    with live_view(Follower(lambda _run: ()), stream) as view, view.quiet():
        view(EVENTS[0])
    assert len(stream.getvalue().splitlines()) == 1
