import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.context.indexable import is_indexable, text_of
from loopctl.context.passages import PASSAGE_BYTES, PASSAGES, TERMS, passages, terms
from loopctl.context.recall import merged
from loopctl.contextports import Memory, Passage
from loopctl.trees import TreeFile

lines = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=300), max_size=60)


@given(lines)
def test_passages_are_bounded_and_have_all_lines_in_order(said: list[str]) -> None:
    found = list(passages("\n".join(said)))
    assert all(0 < len(one.encode()) <= PASSAGE_BYTES for one in found)
    whole = [line for line in said if line]
    inside = [line for one in found for line in one.split("\n") if line]
    assert inside == [line.encode()[: PASSAGE_BYTES - 1].decode(errors="ignore") for line in whole]


def test_passage_ends_rather_between_paragraphs() -> None:
    paragraph = "\n".join(["some words of a paragraph"] * 30)
    assert list(passages(f"{paragraph}\n\n{paragraph}\n")) == [paragraph, paragraph]


def test_long_text_has_a_bounded_number_of_passages_and_a_long_line_one() -> None:
    assert len(list(passages("x" * 1000 + "\n" + "a line of words\n" * 99999))) == PASSAGES
    assert [len(one) for one in passages("y" * 99999)] == [PASSAGE_BYTES - 1]


def test_terms_are_the_words_that_can_find_something() -> None:
    query = "How is the HeaderRow of parse_row2 read? how often: x 7, 读"
    assert terms(query) == (
        *("headerrow", "header", "row", "parse", "row2", "read", "often", "读"),
    )


@given(st.text())
def test_terms_have_no_syntax_and_are_few(query: str) -> None:
    found = terms(f"{query} {query[::-1]} {' '.join(map(str, range(99)))}")
    assert len(found) == len(set(found)) <= TERMS
    assert all(
        term and "_" not in term and term.replace("i\u0307", "i").isalnum() for term in found
    )


def test_lists_are_merged_by_rank_and_a_source_stands_in_them_once() -> None:
    words = [Passage("a", "a1"), Passage("a", "a2"), Passage("b", "b1"), Passage("c", "c1")]
    meaning = [Passage("c", "c2"), Passage("b", "b2"), Passage("a", "a3")]
    assert merged([words, meaning], 2) == (
        Memory("a", "a1", 1 / 61 + 1 / 63),
        Memory("c", "c2", 1 / 63 + 1 / 61),
    )
    assert merged([words, []], 9)[2] == Memory("c", "c1", 1 / 63)
    assert merged([[], []], 9) == ()


@pytest.mark.parametrize(
    ("path", "is_in"),
    [("src/secretary.py", 1), ("src/environment.py", 1), ("keys.py", 1), ("docs/token.md", 1)]
    + [(name, 0) for name in (".env", "A.PEM", "x/.ssh/known_hosts", "my_secret.json", "yarn.lock")]
    + [("caf\udce9.txt", 0)],
)
def test_files_are_told_from_secrets_by_their_names(path: str, is_in: int) -> None:
    assert is_indexable(TreeFile(path, "b", 10)) == bool(is_in)
    assert not is_indexable(TreeFile(path, "b", 0))


@pytest.mark.parametrize(
    "content", [b"a\0b", b"-----BEGIN RSA PRIVATE KEY-----\nx"], ids=["0", "k"]
)
def test_what_is_no_text_or_is_a_key_says_nothing(content: bytes) -> None:
    assert text_of(content) is None
