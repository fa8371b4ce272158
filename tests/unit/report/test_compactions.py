import pytest

from loopctl.cli.lines import event_line
from loopctl.events import AnyEvent, ContextCompacted, parse
from loopctl.report.account import account
from loopctl.report.commands import Commands
from loopctl.report.fold import summarize
from loopctl.report.metrics import metrics_text
from loopctl.report.plain import to_plain
from loopctl.report.summary import to_document


def compacted(*, in_line: bool = False, threshold: int = 6) -> ContextCompacted:
    return ContextCompacted(
        task="T1",
        session="r1/T1/main",
        first=1,
        last=3,
        in_line=in_line,
        is_fallback=in_line,
        threshold_events=threshold,
    )


AHEAD, IN_LINE = compacted(), compacted(in_line=True)
NEVER_AHEAD = compacted(in_line=True, threshold=0)


def test_compactions_that_a_step_waited_for_are_counted() -> None:
    text = metrics_text([[AHEAD, IN_LINE, IN_LINE], [NEVER_AHEAD, AHEAD]])
    assert "\ncompaction_sync_fallback_total 3\n" in text


@pytest.mark.parametrize(
    ("events", "warnings"),
    [
        ([AHEAD] * 9 + [IN_LINE], 0),
        ([AHEAD] * 8 + [IN_LINE], 1),
        ([NEVER_AHEAD] * 5, 0),
        ([], 0),
    ],
    ids=["a tenth", "more than a tenth", "by choice", "none"],
)
def test_more_than_a_tenth_in_line_is_a_warning_in_report_and_document(
    events: list[AnyEvent], warnings: int
) -> None:
    summary = summarize(events)
    report = to_plain(account(summary, Commands()))
    text = "".join(to_document(summary)["notices"])
    assert text.count("context.compaction_threshold_events") == warnings
    assert report.count(f"steps had to wait for 1 of {len(events)} summaries") == warnings


def test_line_says_which_steps_were_summarised_and_what_it_cost() -> None:
    assert event_line(AHEAD).endswith("T1 steps 1 to 3 were summarised")
    assert event_line(IN_LINE).endswith("summarised, without a model; the step waited")


def test_event_is_read_as_it_was_written() -> None:
    assert parse(IN_LINE.model_dump_json()) == IN_LINE
