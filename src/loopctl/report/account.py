"""The account of a run: what was landed on what evidence, what was not and why, how to go on."""

from collections.abc import Sequence
from typing import Final

from loopctl.domain import RunStatus, TaskStatus, Usage
from loopctl.report.blocks import (
    Block,
    Bullets,
    Heading,
    Item,
    Line,
    Paragraph,
    Shell,
    Span,
    Tone,
    Verbatim,
    code,
    plain,
    quiet,
    strong,
)
from loopctl.report.commands import Commands
from loopctl.report.decisions import decision_blocks, ordered
from loopctl.report.summary import ForkSummary, RunSummary, TaskSummary
from loopctl.report.wording import STATUS_WORDS, counted, spending
from loopctl.verdict import Check, CheckResult, Verdict

VERDICT_TONES: Final = {
    Verdict.PASS: Tone.GOOD,
    Verdict.FAIL: Tone.BAD,
    Verdict.UNKNOWN: Tone.WARN,
}
_TAIL_LINES: Final = 12
USAGE_EXIT: Final = 2
"""The exit code of a run that has met tasks which no worker here can do."""

_RECOVERABLE: Final = (TaskStatus.STUCK, TaskStatus.BLOCKED)
_NAMED_AGAIN: Final = (*_RECOVERABLE, TaskStatus.NEEDS_HUMAN)


def title(summary: RunSummary) -> str:
    """Return the one line that says which run this is and how it stands."""
    words = STATUS_WORDS[summary.status]
    if summary.exit_code == USAGE_EXIT:
        words = "ended with tasks that no worker of this version can do"
    return f"Run {summary.run_id}: {words}"


def account(summary: RunSummary, commands: Commands) -> tuple[Block, ...]:
    """Return the whole report of a run, the decisions first."""
    return (
        Heading(title(summary), level=1),
        *_opening(summary),
        *decision_blocks(summary, commands),
        *_landed(summary),
        *_not_landed(summary, commands),
        *_waiting(summary, commands),
        *_goal(summary),
        *_assumptions(summary),
        *_proposals(summary),
        *_notices(summary),
        *_going_on(summary, commands),
    )


def _opening(summary: RunSummary) -> list[Block]:
    blocks: list[Block] = []
    if summary.goal:
        blocks.append(Paragraph((quiet("Goal: "), plain(summary.goal))))
    blocks.append(Paragraph((plain(counts(summary)),)))
    times = f"{summary.started} to {summary.ended or 'now'}"
    if summary.invocations > 1:
        times += f", in {summary.invocations} invocations"
    blocks.append(Paragraph((quiet(times),)))
    return blocks


def counts(summary: RunSummary) -> str:
    """Return how many tasks are in which state, and what was spent, on one line."""
    states: dict[str, int] = {}
    for task in summary.tasks:
        states[task.status.value] = states.get(task.status.value, 0) + 1
    parts = [f"{number} {state}" for state, number in states.items()] or ["no task in scope"]
    if summary.usage != Usage():
        parts.append(spending(summary.usage))
    if summary.exit_code is not None:
        parts.append(f"exit {summary.exit_code}")
    return " · ".join(parts)


def _landed(summary: RunSummary) -> list[Block]:
    landed = [task for task in summary.tasks if task.landed]
    if not landed:
        return []
    items = tuple(_landed_item(task) for task in landed)
    return [Heading(f"Landed on {summary.branch} ({len(landed)})"), Bullets(items)]


def _landed_item(task: TaskSummary) -> Item:
    facts = [task.landed[:10], counted(task.files, "file"), counted(task.steps, "step")]
    if task.gate_failures:
        facts.append(f"after {counted(task.gate_failures, 'failed gate')}")
    line: Line = (strong(task.id), plain(f" {task.title} "), quiet(f"({', '.join(facts)})"))
    if task.is_vacuous:
        line = (*line, Span(" vacuous: its verify passes without the change as well", Tone.WARN))
    below: list[Block] = [Bullets(tuple(_check_item(check) for check in task.gate))]
    below.extend(_candidate_blocks(task))
    if task.result:
        below.append(Verbatim(_tail(task.result)))
    return Item(line, tuple(below))


def check_line(check: CheckResult) -> Line:
    """Return the evidence of one check on one line."""
    spans = [strong(check.check.value), plain(" ")]
    spans.append(Span(check.verdict.value, VERDICT_TONES[check.verdict]))
    if check.blame:
        spans.append(plain(f" ({check.blame.value})"))
    if check.vacuous:
        spans.append(Span(" vacuous", Tone.WARN))
    if check.command:
        spans.extend((plain(" "), code(check.command)))
    facts = [f"{check.ms} ms"]
    if check.exit is not None:
        facts.insert(0, f"exit {check.exit}")
    if check.counts:
        facts.append(f"{check.counts.passed} of {check.counts.collected} tests passed")
    spans.append(quiet(f" ({', '.join(facts)})"))
    if check.reason and (check.verdict is not Verdict.PASS or check.check is Check.ALIGNMENT):
        spans.append(plain(f": {check.reason}"))
    return tuple(spans)


def _check_item(check: CheckResult) -> Item:
    shows_tail = check.verdict is not Verdict.PASS and check.tail.strip()
    return Item(check_line(check), (Verbatim(_tail(check.tail)),) if shows_tail else ())


def _tail(text: str) -> str:
    lines = text.rstrip().splitlines()
    cut = len(lines) - _TAIL_LINES
    return (
        "\n".join([f"({counted(cut, 'line')} before)", *lines[-_TAIL_LINES:]]) if cut > 0 else text
    )


def _candidate_blocks(task: TaskSummary) -> list[Block]:
    items = [_fork_item(fork) for fork in task.forks]
    for candidate in task.candidates:
        line: list[Span] = [plain("option "), strong(candidate.name), plain(" ")]
        line.append(Span(candidate.verdict.value, VERDICT_TONES[candidate.verdict]))
        if task.has_won(candidate.name):
            line.append(Span(" picked", Tone.GOOD))
        if candidate.changed_lines is not None:
            line.append(quiet(f", {counted(candidate.changed_lines, 'changed line')}"))
        if candidate.reason:
            line.append(plain(f": {candidate.reason}"))
        if candidate.ref:
            line.extend((quiet(", kept as "), code(candidate.ref)))
        items.append(Item(tuple(line)))
    reason = [Paragraph((quiet(task.fork_reason),))] if task.fork_reason else []
    return [*reason, Bullets(tuple(items))] if items else []


def _fork_item(fork: ForkSummary) -> Item:
    line: list[Span] = [plain("fork "), strong(fork.question), quiet(f" ({fork.bucket.value})")]
    if fork.chosen:
        line.extend((plain(": "), strong(fork.chosen)))
    return Item((*line, quiet(f", {fork.reason}")))


def _not_landed(summary: RunSummary, commands: Commands) -> list[Block]:
    left = [task for task in summary.tasks if _is_left(task)]
    if not left:
        return []
    items = tuple(_left_item(task, commands) for task in left)
    return [Heading(f"Not landed ({len(left)})"), Bullets(items)]


def _is_left(task: TaskSummary) -> bool:
    """It ended without landing; where the run was stopped amid new work, an earlier attempt did."""
    was_tried = task.stop is not None or (task.ref and task.activity is None)
    return bool(was_tried) and not task.landed and task.status is not TaskStatus.DONE


def _left_item(task: TaskSummary, commands: Commands) -> Item:
    facts = [f"{task.stop.axis.value}: {task.stop.reason}"] if task.stop else []
    facts.append(counted(task.steps, "step"))
    line: Line = (
        strong(task.id),
        plain(f" {task.title} "),
        Span(task.status.value, Tone.BAD if task.status in _RECOVERABLE else Tone.WARN),
        plain(f" ({'; '.join(facts)})"),
    )
    below: list[Block] = []
    if task.gate:
        below.append(Bullets(tuple(_check_item(check) for check in task.gate)))
    if task.failed_gate and task.failed_gate != task.gate:
        below.append(Paragraph((quiet("The last gate that failed:"),)))
        below.append(Bullets(tuple(_check_item(check) for check in task.failed_gate)))
    below.extend(_candidate_blocks(task))
    if task.result:
        below.append(Verbatim(_tail(task.result)))
    if task.ref:
        below.append(Paragraph((quiet("Its work is kept as "), code(task.ref))))
        below.append(Shell(((commands.recover(task), ""),)))
    return Item(line, tuple(below))


def _waiting(summary: RunSummary, commands: Commands) -> list[Block]:
    items = []
    is_drawn = bool(summary.waits) and bool(commands.drawn(summary.run_id))
    for wait in summary.waits:
        task = summary.task(wait.task)
        if is_drawn and task is not None and task.status in _RECOVERABLE:
            # It cannot be named, and how it did not land is told before.
            continue
        name = f" {task.title}" if task and task.title else ""
        ways = tuple((command, "") for command in _ways_on(wait.task, summary, commands))
        below = (Shell(ways),) if ways else ()
        items.append(Item((strong(wait.task), plain(f"{name}: {wait.reason}")), below))
    return [Heading(f"Waiting ({len(items)})"), Bullets(tuple(items))] if items else []


def _ways_on(task_id: str, summary: RunSummary, commands: Commands) -> list[str]:
    """The commands that get a waiting task going: answers to its questions, or its name."""
    asked = [commands.answer(one) for one in summary.decisions if one.task == task_id]
    task = summary.task(task_id)
    is_named = task is not None and task.status in _NAMED_AGAIN
    return asked or ([commands.task(task_id)] if is_named else [])


def _goal(summary: RunSummary) -> list[Block]:
    if not summary.criteria:
        return []
    met = {True: "met", False: "not met", None: "not known"}[summary.goal_met]
    items = tuple(
        Item(
            (
                Span(verdict.value, VERDICT_TONES[verdict]),
                plain(f" {criterion}"),
                quiet(f" — {reason}" if reason else ""),
            )
        )
        for criterion, verdict, reason in summary.criteria
    )
    return [Heading(f"The goal's criteria: {met}"), Bullets(items)]


def _assumptions(summary: RunSummary) -> list[Block]:
    items = tuple(
        Item(
            (
                strong(task.id),
                plain(f" {assumption.text}"),
                quiet(f" ({assumption.decision})" if assumption.decision else ""),
            )
        )
        for task in summary.tasks
        for assumption in task.assumptions
    )
    return [Heading("Taken for granted"), Bullets(items)] if items else []


def _proposals(summary: RunSummary) -> list[Block]:
    """What workers have proposed: what was added to the manifest, and what was not and why."""
    blocks: list[Block] = []
    for title, is_added in (("Proposed and added", True), ("Proposed and rejected", False)):
        items = tuple(
            Item(
                (
                    *([strong(one.added), plain(" ")] if one.added else []),
                    plain(one.title),
                    quiet(f" (by {one.task}, for: {one.serves})"),
                    plain(f": {one.reason}" if one.reason else ""),
                )
            )
            for one in summary.proposals
            if bool(one.added) is is_added
        )
        blocks += [Heading(f"{title} ({len(items)})"), Bullets(items)] if items else []
    return blocks


def _notices(summary: RunSummary) -> list[Block]:
    items = []
    for notice in summary.all_notices:
        where = (strong(notice.task), plain(" ")) if notice.task else ()
        mark = (Span("warning: ", Tone.WARN),) if notice.is_warning else ()
        items.append(Item((*mark, *where, plain(notice.text))))
    return [Heading("Notices"), Bullets(tuple(items))] if items else []


def _tries(
    stuck: Sequence[TaskSummary], summary: RunSummary, commands: Commands
) -> list[tuple[str, str]]:
    """Return how what is stuck is tried again: by its id, or by drawing what is left to do."""
    words = commands.drawn(summary.run_id) if stuck else ()
    if words:
        return [(commands.drive(*words), "begin anew with what is left to do")]
    return [(commands.task(task.id), f"try {task.id} again") for task in stuck]


def _going_on(summary: RunSummary, commands: Commands) -> list[Block]:
    lines = [
        (commands.answer(decision), f"answer {decision.id}")
        for decision in ordered(summary.decisions)
    ]
    if len(summary.decisions) > 1:
        lines.append((commands.drive("answer"), "or answer all of them in one round"))
    if summary.status is RunStatus.INTERRUPTED:
        lines.append((commands.drive("resume", summary.run_id), "carry on"))
    if any(task.landed for task in summary.tasks):
        lines.append((commands.review(summary), "see what landed"))
        if not summary.landed_here:
            lines.append((commands.loop("land"), "take it onto your branch"))
    ended = [task for task in summary.tasks if _is_left(task)]
    lines.extend((commands.drive("show", task.id), f"the story of {task.id}") for task in ended)
    stuck = [task for task in ended if task.status in _RECOVERABLE]
    lines.extend(_tries(stuck, summary, commands))
    return [Heading("To go on"), Shell(tuple(lines))] if lines else []
