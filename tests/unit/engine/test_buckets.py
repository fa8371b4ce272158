"""In which bucket a fork is, and which option the goal asks for: rules alone."""

import pytest

from loopctl.domain import Criterion, Goal, Option, Task, TaskId
from loopctl.engine.buckets import bucket_of
from loopctl.engine.scope import by_rule, settle
from loopctl.forking import Bucket
from loopctl.steps import ForkRaised

TASK = Task(TaskId("T1"), "Import")


def fork(question: str, bucket: str, *names: str, prompt: str = "") -> ForkRaised:
    return ForkRaised(question, bucket, tuple(Option(name, prompt) for name in names or ("a", "b")))


def test_a_question_of_quality_is_one_and_says_why() -> None:
    found = bucket_of(fork("How is it split?", "quality", "regex", "parser"))
    assert (found.bucket, found.reason) == (
        Bucket.QUALITY,
        "the worker says so, and nothing speaks of scope or the outside",
    )


@pytest.mark.parametrize(
    "words",
    [
        "Which API key is used?",
        "Use the api_key of the team?",
        "Which account is billed?",
        "MIT license or Apache?",
        "Deploy now or later?",
        "Drop the table or keep it?",
        "Is it legal to store names?",
        "Which payment provider?",
        "Force-push, or a new branch?",
        "The change is irreversible; which one?",
    ],
)
@pytest.mark.parametrize("said", ["quality", "scope", "external"])
def test_words_of_the_outside_make_a_fork_external_whatever_the_worker_says(
    words: str, said: str
) -> None:
    assert bucket_of(fork(words, said)).bucket is Bucket.EXTERNAL
    assert bucket_of(fork("Which?", said, "a", "b", prompt=words)).bucket is Bucket.EXTERNAL


@pytest.mark.parametrize("said", ["", "Quality!", "taste", "none"])
def test_a_word_that_is_no_bucket_is_doubt_and_so_external(said: str) -> None:
    assert bucket_of(fork("Which?", said)).bucket is Bucket.EXTERNAL


def test_the_workers_word_makes_it_stricter_but_never_laxer() -> None:
    assert bucket_of(fork("Which loop?", "external")).bucket is Bucket.EXTERNAL
    assert bucket_of(fork("Which loop?", "scope")).bucket is Bucket.SCOPE
    assert bucket_of(fork("How far should it go?", "quality")).bucket is Bucket.SCOPE
    assert bucket_of(fork("Which?", "quality", "mvp", "rest")).bucket is Bucket.SCOPE
    assert bucket_of(fork("Is this a breaking change?", "quality")).bucket is Bucket.SCOPE


@pytest.mark.parametrize(
    "words",
    [
        "Which tokenizer?",
        "Release the lock early?",
        "Accountant or Ledger class?",
        "lawn or grass?",
    ],
)
def test_words_that_only_look_like_the_outside_do_not_count(words: str) -> None:
    assert bucket_of(fork(words, "quality")).bucket is Bucket.QUALITY


def test_more_text_than_anybody_reads_is_doubt_and_so_external() -> None:
    found = bucket_of(fork("Which loop?", "quality", prompt="word " * 10_000))
    assert found.bucket is Bucket.EXTERNAL


def test_the_reason_names_the_word_that_decides() -> None:
    assert bucket_of(fork("Which password?", "quality")).reason == 'it speaks of "password"'


FAR = fork("How far?", "scope", "narrow", "wide")


@pytest.mark.parametrize(
    ("goal", "chosen"),
    [
        ("Ship the MVP of the importer", "narrow"),
        ("Build a prototype", "narrow"),
        ("Build the full importer", "wide"),
        ("Make it feature-complete", "wide"),
        ("Build the importer", None),
        ("", None),
        ("Add full-text search", None),
        ("Not just an MVP", None),
        ("The full MVP", None),
        ("An importer. It need not be full.", None),
    ],
)
def test_an_mvp_takes_the_narrower_option_and_a_full_goal_the_wider(
    goal: str, chosen: str | None
) -> None:
    option, why = by_rule(FAR, Goal(goal))
    assert (option.name if option else None) == chosen
    assert why


def test_a_done_criterion_speaks_as_the_goal_does() -> None:
    goal = Goal("Import", (Criterion(criterion="the MVP is there"),))
    option, _ = by_rule(FAR, goal)
    assert option == FAR.options[0]


def test_a_goal_that_names_one_option_takes_it() -> None:
    raised = fork("Which format?", "scope", "csv files", "json lines")
    assert by_rule(raised, Goal("Read JSON lines"))[0] == raised.options[1]
    assert by_rule(raised, Goal("Read CSV files and JSON lines"))[0] is None
    assert by_rule(raised, Goal("Read no JSON lines"))[0] is None


def test_of_two_options_the_one_that_is_not_the_other_extent_is_taken() -> None:
    raised = fork("How far?", "scope", "header row", "everything")
    assert by_rule(raised, Goal("The MVP"))[0] == raised.options[0]
    assert by_rule(fork("How far?", "scope", "x", "y"), Goal("The MVP"))[0] is None


def test_the_judge_is_asked_only_where_no_rule_settles() -> None:
    asked: list[str] = []

    def choose(raised: ForkRaised, _task: Task) -> tuple[str, str]:
        asked.append(raised.question)
        return "wide", "it says so"

    option, _ = settle(FAR, Goal("The MVP"), TASK, choose)
    assert (option, asked) == (FAR.options[0], [])
    option, why = settle(FAR, Goal("The importer"), TASK, choose)
    assert (option, why, asked) == (FAR.options[1], "it says so", ["How far?"])


def test_a_judge_that_names_no_option_settles_nothing() -> None:
    option, why = settle(FAR, Goal("The importer"), TASK, lambda _fork, _task: ("", "silent"))
    assert (option, why) == (None, "silent")
