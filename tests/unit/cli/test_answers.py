import io
from collections.abc import Iterator
from dataclasses import replace

import pytest

from loopctl.cli.answerfile import read_answers, template
from loopctl.cli.answers import Given, checked, find, guesses, read_caps
from loopctl.cli.asking import ask_all
from loopctl.domain import Decision, DecisionKind
from loopctl.errors import AnswerError, FaultsError, UsageError
from loopctl.given import Answer


def decision(
    key: str,
    kind: DecisionKind = DecisionKind.SCOPE,
    *,
    guess: str = "",
    options: tuple[str, ...] = (),
    answer: str | None = None,
) -> Decision:
    task = key.rpartition(".")[0]
    return Decision(
        id=key,
        task=task,
        run_id="r",
        kind=kind,
        question=f"What of {key}?",
        best_guess=guess,
        options=options,
        answer=answer,
        answered_at="2026-11-30T18:00:00Z" if answer else None,
    )


ALL = (
    decision("T1.1", guess="OAuth", options=("OAuth", "SAML")),
    decision("T2.1", answer="done long ago"),
    decision("T3.1"),
    decision("T3.2"),
    decision("T4.1", DecisionKind.APPROVAL, guess="approve"),
    decision("T5.1", DecisionKind.BUDGET),
    decision("T6.1"),
)
STANDING = {one.id for one in ALL if one.answer is None} - {"T6.1"}


def test_answers_are_found_by_decision_and_by_task() -> None:
    given = [Given("T3.2", "b"), Given("T1", "a")]
    assert checked(given, ALL, STANDING) == (Answer("T3.2", "b"), Answer("T1.1", "a"))


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (
            Given("T2", "again"),
            "T2.1 was answered already at 2026-11-30T18:00:00Z: 'done long ago'",
        ),
        (Given("T2.1", "again"), "nothing was changed"),
        (Given("T3", "x"), "T3 has several open decisions, name one of them: T3.1"),
        (Given("T11", "x"), "'T11' names no decision; did you mean 'T1.1'?"),
        (Given("T6", "x"), "T6.1 is asked no more: T6 has gone on without it"),
        (Given("T1", "  "), "the answer to T1.1 is empty"),
        (Given("T1", "…"), "in place of the three dots"),
        (Given("T1", "approve"), "T1.1 is no approval"),
        (Given("T4", "perhaps"), "--approve or --reject, not 'perhaps'"),
        (Given("T5", "more"), "T5.1 asks for a budget: --budget usd=2"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_politely(given: Given, part: str) -> None:
    with pytest.raises(AnswerError) as caught:
        checked([given], ALL, STANDING)
    assert part in str(caught.value)


NESTED = (decision("T5.1"), decision("T5.1.1"), decision("T5.1.2"))
"""Tasks T5 and T5.1 have decisions; T5.1 is a decision's name and a task's."""


def test_a_word_that_names_a_decision_and_a_task_is_refused_where_both_are_open() -> None:
    with pytest.raises(AnswerError) as caught:
        find("T5.1", NESTED, {"T5.1", "T5.1.1"})
    assert str(caught.value) == (
        "T5.1 is the decision of T5 (What of T5.1?) and a task with decisions of its own; write "
        "T5:1 for the decision, or for the task T5.1.1 (What of T5.1.1?)"
    )


@pytest.mark.parametrize(
    ("target", "standing", "found"),
    [
        ("T5.1", {"T5.1"}, "T5.1"),
        ("T5.1", {"T5.1.1"}, "T5.1.1"),
        ("T5:1", {"T5.1", "T5.1.1"}, "T5.1"),
        ("T5.1:1", {"T5.1", "T5.1.1"}, "T5.1.1"),
        ("T5", {"T5.1", "T5.1.1"}, "T5.1"),
    ],
)
def test_what_is_open_decides_between_a_decision_and_a_task(
    target: str, standing: set[str], found: str
) -> None:
    assert find(target, NESTED, standing).id == found


def test_the_ids_of_a_template_name_decisions_alone() -> None:
    filled = template(NESTED, {"T5", "T5.1"}).replace('answer = ""', 'answer = "yes"')
    answers = checked(read_answers(filled, "f"), NESTED, {one.id for one in NESTED})
    assert [one.decision_id for one in answers] == ["T5.1", "T5.1.1", "T5.1.2"]


SPENT = replace(decision("B.1", DecisionKind.BUDGET, options=("loops=4",)), reason="loops=2 used")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        (Given("B", "", {"loops": 1}), "loops=1 is no more than what was used (2)"),
        (Given("B", "loops=2"), "loops=2 is no more than what was used (2): --budget loops=4"),
        (Given("B", "", {"usd": 1}), "B.1 asks for loops, and usd does not help it"),
        (Given("B", "more"), "B.1 asks for a budget: --budget loops=4, or --reject"),
    ],
)
def test_a_budget_that_would_stop_the_task_at_once_is_refused(given: Given, part: str) -> None:
    with pytest.raises(AnswerError) as caught:
        checked([given], [SPENT], {"B.1"})
    assert part in str(caught.value)


@pytest.mark.parametrize("reason", ["loops=2 used", "loops", "", "spent all of it"])
def test_a_budget_above_what_was_used_is_taken(reason: str) -> None:
    asked = replace(SPENT, reason=reason)
    given = Given("B", "", {"loops": 3, "usd": 1})
    assert checked([given], [asked], {"B.1"})[0].budget == {"loops": 3, "usd": 1}


@pytest.mark.parametrize("guess", ["approve", "reject", "…"])
def test_a_guess_that_would_be_read_as_something_else_is_not_taken(guess: str) -> None:
    assert guesses([decision("T1.1", guess=guess)]) == []


def test_all_faults_are_named_before_anything_is_recorded() -> None:
    given = [Given("T1", "a"), Given("T2", "b"), Given("nope", "c"), Given("T1.1", "d")]
    with pytest.raises(AnswerError) as caught:
        checked(given, ALL, STANDING)
    assert [line.split()[0] for line in str(caught.value).splitlines()] == [
        "T2.1",
        "'nope'",
        "T1.1",
    ]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (Given("T4", "yes"), Answer("T4.1", "approve")),
        (Given("T4", "Rejected"), Answer("T4.1", "reject")),
        (
            Given("T5", "usd=2 loops=50"),
            Answer("T5.1", "usd=2 loops=50", {"usd": 2.0, "loops": 50.0}),
        ),
        (Given("T5", "", {"usd": 2.5}), Answer("T5.1", "usd=2.5", {"usd": 2.5})),
        (Given("T5", "reject"), Answer("T5.1", "reject")),
        (Given("T1", " keep it\n"), Answer("T1.1", "keep it")),
    ],
)
def test_an_answer_is_put_as_the_engine_reads_it(given: Given, answer: Answer) -> None:
    assert checked([given], ALL, STANDING) == (answer,)


@pytest.mark.parametrize(
    "word", ["usd", "usd=", "usd=x", "usd=-1", "usd=nan", "usd=inf", "euro=2", ""]
)
def test_a_cap_is_a_name_and_a_number(word: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        read_caps([word])


def test_an_approval_is_never_guessed() -> None:
    assert guesses(ALL) == [Given("T1:1", "OAuth")]


def test_template_names_every_decision_and_gives_no_answer() -> None:
    text = template(ALL)
    for one in ALL:
        assert f'id = "{one.id}"' in text
        assert one.question in text
    with pytest.raises(AnswerError, match="holds no answer"):
        read_answers(text, "f")


def test_template_round_trips() -> None:
    wild = decision("T9.1", guess='"quoted"\n[[answer]]\nid="x"', options=("\x1b[2J", "\u202e"))
    filled = template((*ALL, wild)).replace('answer = ""', 'answer = "yes"')
    given = read_answers(filled, "f")
    assert [(one.target, one.text) for one in given] == [(one.id, "yes") for one in (*ALL, wild)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("answer = 1", "[[answer]]"),
        ("[[answer]", "f: "),
        ("[[answer]]\nanswer = 'x'", "answer 1: `id` is missing"),
        ("[[answer]]\nid = 'a'\nanswr = 'x'", "unknown key 'answr'; did you mean 'answer'?"),
        ("[[answer]]\nid = 'a'\nanswer = 3", "`answer` is no text"),
        ("[[answer]]\nid = 'a'\nbudget = { euro = 1 }", "no cap is called 'euro'"),
        ("[[answer]]\nid = 'a'\nbudget = { usd = -1 }", "no number of 0 or more"),
        ("[[answer]]\nid = 'a'\nbudget = { usd = true }", "no number of 0 or more"),
        ("[[answer]]\nid = 'a'\nbudget = { usd = inf }", "no number of 0 or more"),
        ("[[answer]]\nid = 'a'\nbudget = 2", "no table"),
        ("other = 1", "unknown key 'other'"),
        ("answer = [1]", "answer 1: not a table"),
    ],
)
def test_a_broken_file_says_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(FaultsError) as caught:
        read_answers(text, "f")
    assert part in str(caught.value)


def test_a_file_raises_caps() -> None:
    text = "[[answer]]\nid = 'T5.1'\nbudget = { usd = 2, loops = 50 }\n"
    assert read_answers(text, "f") == [Given("T5.1", "", {"usd": 2.0, "loops": 50.0})]


def ask(lines: list[str]) -> tuple[list[Given], str]:
    screen = io.StringIO()
    asked = [ALL[0], ALL[2], ALL[5]]
    return ask_all(asked, [f"{line}\n" for line in lines], screen), screen.getvalue()


@pytest.mark.parametrize(
    ("lines", "given"),
    [
        (["use SAML", "", ""], [Given("T1:1", "use SAML")]),
        (
            ["2", "2", "usd=3"],
            [Given("T1:1", "SAML"), Given("T3:1", "2"), Given("T5:1", "usd=3", {"usd": 3.0})],
        ),
        (["=", "="], [Given("T1:1", "OAuth")]),
        ([], []),
        (["", "", ""], []),
    ],
)
def test_one_round_asks_every_decision(lines: list[str], given: list[Given]) -> None:
    assert ask(lines)[0] == given


def test_a_round_shows_question_guess_and_options() -> None:
    _, shown = ask(["", "", ""])
    for part in ("(1/3) T1.1 [scope] What of T1.1?", "best guess: OAuth", "1. OAuth", "2. SAML"):
        assert part in shown
    assert "a new cap (usd, tokens, loops or wall_s) or reject" in shown


def test_a_round_that_is_broken_off_says_how_much_was_not_recorded() -> None:
    def typed() -> Iterator[str]:
        yield "use SAML\n"
        raise KeyboardInterrupt

    screen = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        ask_all([ALL[0], ALL[2], ALL[5]], typed(), screen)
    assert screen.getvalue().endswith("\n1 answer was not recorded.\n")
