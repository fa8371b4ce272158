import pytest

from tally.amounts import parse


@pytest.mark.parametrize("text", ["12.50", " 12.50 ", "€12.50", "$ 12.50"])
def test_sign_and_spaces_are_left_out(text: str) -> None:
    assert parse(text) == 12.5


def test_word_is_no_amount() -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        parse("twelve")
