import base64
from urllib.parse import quote

import pytest

from loopctl.redaction import Redactor

KEY = "sk-can/ary+12==34"


@pytest.mark.parametrize(
    "form", [KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode().rstrip("=")]
)
def test_key_goes_in_every_form_that_texts_have_it(form: str) -> None:
    assert Redactor({"MINE": KEY}, ["MINE"])(f"bad: {form}!") == "bad: [key]!"


def test_variables_that_are_called_keys_are_taken_too_and_others_are_not() -> None:
    env = {"GITHUB_TOKEN": "ghp_1234", "my_secret": "hidden", "HOME": "/home/me"}
    assert Redactor(env, [])("ghp_1234 hidden /home/me") == "[key] [key] /home/me"


def test_key_that_holds_another_goes_whole() -> None:
    assert Redactor({"A_KEY": "abcd", "B_KEY": "abcdefgh"}, [])("abcdefgh") == "[key]"


def test_short_and_empty_values_tear_no_words_apart() -> None:
    assert Redactor({"A_KEY": "", "B_KEY": "no", "C_KEY": "  "}, [])("no model") == "no model"


def test_key_is_not_in_what_the_redactor_looks_like() -> None:
    assert KEY not in repr(Redactor({"MINE": KEY}, ["MINE"]))
