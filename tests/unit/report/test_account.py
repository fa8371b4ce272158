import re
import shlex
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import pytest

from loopctl.domain import Axis, Decision, DecisionKind, RunStatus, Scope, TaskStatus
from loopctl.events import (
    AnyEvent,
    CandidateEnded,
    DecisionRaised,
    GateFinished,
    Noticed,
    RunStarted,
    StatusChanged,
    TaskClaimed,
    TaskLanded,
    TaskStopped,
)
from loopctl.report.account import account, title
from loopctl.report.blocks import Block
from loopctl.report.commands import Commands
from loopctl.report.decisions import ordered
from loopctl.report.fold import summarize
from loopctl.report.html import to_html
from loopctl.report.markdown import to_markdown
from loopctl.report.plain import to_plain
from loopctl.report.summary import RunSummary, TaskSummary
from loopctl.report.terminal import to_terminal
from loopctl.suggestions import AssumptionRecorded
from loopctl.verdict import Check, CheckResult, Verdict

Number = Callable[[Sequence[AnyEvent]], tuple[AnyEvent, ...]]
Story = tuple[AnyEvent, ...]
COMMANDS = Commands(base_branch="main")


def _terminal(blocks: Sequence[Block]) -> str:
    return to_terminal(blocks)


def _html(blocks: Sequence[Block]) -> str:
    return to_html(blocks, "title")


def decision(kind: DecisionKind, guess: str = "", reason: str = "") -> Decision:
    return Decision(
        id="T4.1", task="T4", run_id="r", kind=kind, question="?", best_guess=guess, reason=reason
    )


@pytest.mark.parametrize(
    "fact",
    [
        "Run r1: decisions needed",
        "Goal: Ship it",
        "3 done · 2 needs-human · 1 todo · 1 stuck · 30 tokens, $0.5000 · exit 3",
        "Decisions needed (2)",
        "C1.1 [external] Log in: Which provider?",
        "Why: no account",
        "Best guess: use OAuth",
        "Options: OAuth · SAML",
        "Holds up: D1",
        "Landed on loop/integration (2)",
        "A1 Fix imports (c1c1c1c1c1, 3 files, 2 steps, after 1 failed gate)",
        "verify pass pytest -q (exit 0, 80 ms)",
        "vacuous: its verify passes without the change as well",
        "option regex pass picked, 4 changed lines, kept as refs/loop/r1/B1/regex",
        "option parser fail: red, kept as refs/loop/r1/B1/parser",
        "Not landed (3)",
        "E1 Hard one stuck (stall: no_progress; 3 steps)",
        "verify fail (introduced) pytest -q (exit 1, 90 ms): one test fails",
        "| FAILED tests/test_a.py",
        "| half of it",
        "Its work is kept as refs/loop/r1/E1/main",
        "loop recover refs/loop/r1/E1/main --branch recovered/E1",
        "D1 Log out: waits for C1 (needs-human)",
        "- C1 Log in: needs an answer\n  loop answer C1.1 'use OAuth'",
        "- E1 Hard one: stuck\n  loop E1\n",
        "A1 UTF-8 only (encoding)",
        "warning: commands ran unconfined",
        "- 2 uncommitted files are no part of this run",
        "loop answer C1.1 'use OAuth'",
        'loop answer F1.1 "…"',
        "git log -p main..loop/integration",
        "loop land",
        "loop show E1",
        "loop E1 ",
    ],
)
def test_report_says(story: Story, fact: str) -> None:
    assert fact in to_plain(account(summarize(story), COMMANDS))


def test_false_premise_stands_first_then_the_kickoff() -> None:
    kinds = (DecisionKind.SCOPE, DecisionKind.KICKOFF, DecisionKind.BUDGET, DecisionKind.PREMISE)
    assert [one.kind for one in ordered(map(decision, kinds))] == [
        DecisionKind.PREMISE,
        DecisionKind.KICKOFF,
        DecisionKind.SCOPE,
        DecisionKind.BUDGET,
    ]


def test_decisions_stand_before_everything_that_ran(story: Story) -> None:
    text = to_markdown(account(summarize(story), COMMANDS))
    assert text.index("F1.1") < text.index("C1.1") < text.index("Landed on")


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        (decision(DecisionKind.SCOPE), 'loop answer T4.1 "…"'),
        (decision(DecisionKind.SCOPE, "it's $HOME"), "loop answer T4.1 'it'\"'\"'s $HOME'"),
        (decision(DecisionKind.SCOPE, "two\nlines"), 'loop answer T4.1 "…"'),
        (decision(DecisionKind.SCOPE, "-v all"), "loop answer T4.1 -- '-v all'"),
        (decision(DecisionKind.SCOPE, "approve"), 'loop answer T4.1 "…"'),
        (decision(DecisionKind.SCOPE, "reject"), 'loop answer T4.1 "…"'),
        (decision(DecisionKind.APPROVAL, "yes"), "loop answer T4.1 --approve"),
        (decision(DecisionKind.BUDGET, reason="loops"), "loop answer T4.1 --budget loops=50"),
        (decision(DecisionKind.BUDGET, reason="wall"), "loop answer T4.1 --budget wall_s=7200"),
        (decision(DecisionKind.BUDGET, reason="usd"), "loop answer T4.1 --budget usd=2"),
    ],
)
def test_answer_can_be_pasted(asked: Decision, command: str) -> None:
    assert Commands().answer(asked) == command


def test_commands_are_written_for_a_shell_that_stands_elsewhere(story: Story) -> None:
    commands = Commands(
        program=("/opt/my env/loop",), directory="/srv/a b", base_branch="main", manifest="/m.toml"
    )
    assert commands.loop("land") == "'/opt/my env/loop' -C '/srv/a b' land"
    assert shlex.split(commands.drive("T1")) == [
        *("/opt/my env/loop", "-C", "/srv/a b", "T1", "--manifest", "/m.toml"),
    ]
    review = commands.review(summarize(story))
    assert review == "git -C '/srv/a b' log -p main..loop/integration"


def test_a_decision_that_is_called_like_a_task_is_written_so_that_no_task_can_be_meant() -> None:
    commands = Commands(ids=lambda: {"T4", "T4.1"})
    assert commands.answer(decision(DecisionKind.SCOPE, "x")) == "loop answer T4:1 x"


def test_a_task_that_is_called_like_a_command_stands_behind_dashes() -> None:
    commands = Commands(manifest="/m.toml", names=frozenset({"status"}))
    assert commands.task("status") == "loop run --manifest /m.toml -- status"
    assert commands.task("T1") == "loop T1 --manifest /m.toml"


@pytest.mark.parametrize(
    ("task", "branch"),
    [("T1", "T1"), ("a..b", "a-.b"), ("T1.lock", "T1-lock"), ("T1.", "T1-"), ("a.b", "a.b")],
)
def test_a_recovered_branch_has_a_name_that_git_takes(task: str, branch: str) -> None:
    said = Commands().recover(TaskSummary(task, ref="refs/loop/r/x/main"))
    assert said == f"loop recover refs/loop/r/x/main --branch recovered/{branch}"


def test_a_run_that_met_tasks_without_a_worker_says_so() -> None:
    summary = RunSummary(run_id="r1", status=RunStatus.STALLED, exit_code=2)
    assert title(summary) == "Run r1: ended with tasks that no worker of this version can do"


def test_work_of_an_earlier_attempt_is_named_where_the_newest_has_no_end(story: Story) -> None:
    again = (TaskClaimed(task="E1", title="Hard one", worker="command"), story[-1])
    events = (*story[:-1], *again)
    text = to_plain(account(summarize(_numbered(events)), COMMANDS))
    assert "Its work is kept as refs/loop/r1/E1/main" in text


def test_the_gate_that_failed_last_is_shown_beside_a_later_one_that_passed(number: Number) -> None:
    red = CheckResult(Check.VERIFY, Verdict.FAIL, reason="breaks T1", command="make", exit=1)
    green = CheckResult(Check.VERIFY, Verdict.PASS, command="make", exit=0)
    events: list[AnyEvent] = [
        GateFinished(task="T2", candidate="main", head="h1", tree="t", checks=(red,)),
        GateFinished(task="T2", candidate="main", head="h0", tree="t", checks=(green,)),
        TaskStopped(task="T2", axis=Axis.GATE, reason="refused", steps=1, ref="refs/loop/r/T2/m"),
    ]
    text = to_plain(account(summarize(number(events)), COMMANDS))
    assert "The last gate that failed:\n  - verify fail make (exit 1, 0 ms): breaks T1" in text
    assert "Its work is kept as refs/loop/r/T2/m" in text


def _numbered(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    return [event.model_copy(update={"seq": seq}) for seq, event in enumerate(events, 1)]


def test_review_counts_from_the_base_where_no_branch_is_checked_out(story: Story) -> None:
    assert Commands().review(summarize(story)) == f"git log -p {'b0' * 6}..loop/integration"


def test_commands_are_never_wrapped_at_a_terminal(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", _terminal(account(summarize(story), COMMANDS)))
    assert "loop recover refs/loop/r1/E1/main --branch recovered/E1" in shown


HOSTILE = (
    "\x1b[2J\x1b]0;x\x07</pre><script>alert(1)</script>\u202e```\n# H <img src=x>\udcff{red}[red]"
)


@pytest.fixture
def hostile(number: Number) -> Sequence[Block]:
    """A run in which all text that a worker or a repository can give is hostile."""
    bad = CheckResult(
        Check.VERIFY, Verdict.FAIL, reason=HOSTILE, command=HOSTILE, exit=1, tail=HOSTILE
    )
    events: list[AnyEvent] = [
        RunStarted(goal=HOSTILE, base="b", branch=HOSTILE, scope=Scope(), tasks=(("T1", HOSTILE),)),
        TaskClaimed(task="T1", title=HOSTILE, worker=HOSTILE),
        AssumptionRecorded(task="T1", candidate=HOSTILE, text=HOSTILE, decision=HOSTILE),
        GateFinished(task="T1", candidate=HOSTILE, head="h", tree="t", checks=(bad,)),
        CandidateEnded(task="T1", name=HOSTILE, verdict=Verdict.FAIL, ref=HOSTILE, reason=HOSTILE),
        DecisionRaised(
            task="T1",
            id="T1.1",
            kind=DecisionKind.SCOPE,
            question=HOSTILE,
            best_guess=HOSTILE,
            options=(HOSTILE,),
            reason=f"why {HOSTILE}",
        ),
        StatusChanged(task="T1", old=TaskStatus.TODO, new=TaskStatus.STUCK, signal="stalled"),
        TaskStopped(
            task="T1", axis=Axis.STALL, reason=HOSTILE, steps=1, result=HOSTILE, ref=HOSTILE
        ),
        TaskLanded(task="T2", commit="c", tree="t", branch="b", key="k", files=1, result=HOSTILE),
        Noticed(text=HOSTILE),
    ]
    return account(summarize(number(events)), COMMANDS)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - its base's name
        self.seen.add(tag)


@pytest.mark.parametrize("render", [to_plain, to_markdown, _html, _terminal])
def test_hostile_text_stays_text(
    hostile: Sequence[Block], render: Callable[[Sequence[Block]], str]
) -> None:
    text = render(hostile)
    assert not re.search(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202e]", text)
    text.encode()
    if render is _terminal:
        return
    assert "\x1b" not in text


def test_hostile_text_makes_no_element_of_the_page(hostile: Sequence[Block]) -> None:
    tags = _Tags()
    tags.feed(_html(hostile))
    assert tags.seen <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "pre", "code"),
        *("ul", "li", "span", "strong"),
    }


def test_hostile_text_makes_no_markup_of_the_document(hostile: Sequence[Block]) -> None:
    fence = ""
    for line in to_markdown(hostile).splitlines():
        ticks = re.match(r" *(`{3,})", line)
        if ticks and (not fence or ticks.group(1) == fence):
            fence = "" if fence else ticks.group(1)
        elif not fence:
            outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", line)
            assert not re.search(r"(?<!\\)<", outside), line
    assert not fence


def test_page_loads_nothing(story: Story) -> None:
    page = _html(account(summarize(story), COMMANDS))
    assert not re.search(r"<script|<link|<img|src=|href=|url\(|@import", page)
    assert "default-src 'none'" in page
