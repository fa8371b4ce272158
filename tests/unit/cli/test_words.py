import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.cli.words import Goal, Subset, read_words, suggestion
from loopctl.domain import TaskId
from loopctl.errors import UsageError

COMMANDS = ("run", "answer", "status", "show")
IDS = ("T440", "T447", "import.header", "status")


def subset(*ids: str) -> Subset:
    return Subset(tuple(TaskId(one) for one in ids))


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ([], subset()),
        (["T440"], subset("T440")),
        (["T440", "T447"], subset("T440", "T447")),
        (["T447", "T440", "T447"], subset("T447", "T440")),
        (["import.header", "status"], subset("import.header", "status")),
        (["fix the login"], Goal("fix the login")),
        ([" keep\tevery  space\n"], Goal(" keep\tevery  space\n")),
        (["- fix it"], Goal("- fix it")),
        (["status of the login"], Goal("status of the login")),
        (["T440 and T447"], Goal("T440 and T447")),
    ],
)
def test_words_are_read(words: list[str], read: Subset | Goal) -> None:
    assert read_words(words, commands=COMMANDS, ids=IDS) == read


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["T44O"], ["'T44O'", "did you mean 'T44"]),
        (["t440"], ["did you mean 'T440'?"]),
        (["staus"], ["'staus'", "no command", "did you mean 'status'?"]),
        (["T440", "T44"], ["'T44'", "no task of the manifest;", "did you mean"]),
        (["fix", "the", "login"], ["'fix' is no task of the manifest and no command"]),
        (["T440", "fix it"], ["'fix it'", "no task of the manifest"]),
        (["fix it", "now"], ["'fix it'"]),
        ([""], ["empty"]),
        (["   "], ["the goal is empty"]),
        (["T440", ""], ["a word is empty"]),
        (["status"], ["'status' is a command", "loop run -- status"]),
        (["show", "T440"], ["'show' is a command"]),
        (["qqqq"], ["'qqqq' is no task"]),
        (["\x1b[2Jx"], ["\\x1b[2Jx"]),
    ],
)
def test_doubtful_words_are_refused_and_the_nearest_named(
    words: list[str], parts: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        read_words(words, commands=COMMANDS, ids=IDS)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("word", "known"), [("clean", "land"), ("bg", "B"), ("watch", "land"), ("import", "report")]
)
def test_another_word_is_no_suggestion(word: str, known: str) -> None:
    assert suggestion(word, [known]) == ""


@pytest.mark.parametrize(
    ("word", "known"), [("staus", "status"), ("T44O", "T440"), ("aera", "area"), ("ladn", "land")]
)
def test_a_typo_is_a_suggestion(word: str, known: str) -> None:
    assert suggestion(word, [known]) == f"; did you mean {known!r}?"


@pytest.mark.parametrize(
    ("words", "goal"), [(["-x"], "-x"), (["land"], "land"), (["fix", "it"], "'fix it'")]
)
def test_behind_dashes_the_way_to_a_goal_is_said(words: list[str], goal: str) -> None:
    assert f"for a goal: loop --goal={goal})" in str(outcome(words, ids=IDS, ids_only=True))


def test_behind_dashes_only_ids_stand() -> None:
    assert read_words(["status"], commands=COMMANDS, ids=IDS, ids_only=True) == subset("status")
    assert read_words([], commands=COMMANDS, ids=IDS, ids_only=True) == subset()
    for words in (["answer"], ["fix the login"], ["T440", "nope"]):
        with pytest.raises(UsageError, match="only ids may stand"):
            read_words(words, commands=COMMANDS, ids=IDS, ids_only=True)


@pytest.mark.parametrize("text", ["word", "T440", "status", "-x", "- dashed", "two words"])
def test_goal_option_is_taken_verbatim(text: str) -> None:
    assert read_words([], commands=COMMANDS, ids=IDS, goal=text) == Goal(text)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_goal_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the goal is empty"):
        read_words([], commands=COMMANDS, ids=IDS, goal=text)


def test_goal_and_words_are_not_mixed() -> None:
    with pytest.raises(UsageError, match="not both"):
        read_words(["T440"], commands=COMMANDS, ids=IDS, goal="x y")


def test_without_a_manifest_a_word_is_no_task_and_a_goal_still_one() -> None:
    assert read_words(["a goal"], commands=COMMANDS, ids=None) == Goal("a goal")
    with pytest.raises(UsageError, match="there is no manifest here"):
        read_words(["T440"], commands=COMMANDS, ids=None)


def outcome(
    words: list[str],
    *,
    ids: tuple[str, ...] | None,
    goal: str | None = None,
    ids_only: bool = False,
) -> Subset | Goal | str:
    try:
        return read_words(words, commands=COMMANDS, ids=ids, goal=goal, ids_only=ids_only)
    except UsageError as error:
        return str(error)


WORD = st.one_of(st.sampled_from([*COMMANDS, *IDS, "fix it", "", "--", "-x"]), st.text(max_size=8))


@given(
    words=st.lists(WORD, max_size=4),
    goal=st.one_of(st.none(), st.text(max_size=5)),
    ids_only=st.booleans(),
    has_manifest=st.booleans(),
)
def test_any_words_are_read_or_refused_on_one_line(
    words: list[str], goal: str | None, *, ids_only: bool, has_manifest: bool
) -> None:
    ids = IDS if has_manifest else None
    match outcome(words, ids=ids, goal=goal, ids_only=ids_only):
        case str(refusal):
            assert len(refusal.splitlines()) == 1
            assert re.sub("[\u200c\u200d]", "", refusal).isprintable()
        case Goal(text):
            assert text.strip()
            assert text == (goal if goal is not None else words[0])
        case Subset(found):
            assert set(found) == set(words)
            assert set(found) <= set(ids or ())


@given(st.sampled_from(IDS), st.integers(0, 20), st.characters(codec="ascii", categories=["L"]))
def test_a_typo_in_an_id_names_an_id_or_command(name: str, at: int, letter: str) -> None:
    at %= len(name)
    typo = name[:at] + letter + name[at + 1 :]
    read = outcome([typo], ids=IDS)
    if isinstance(read, str):
        assert "did you mean" in read or "is a command" in read
    else:
        assert read == subset(typo)
