from loopctl.tomlsource.words import Guesses, near, show


def test_a_value_is_shown_in_one_printable_line() -> None:
    assert show('a\nb\x1b[0m\u202e"\\') == '"a\\nb\\u001B[0m\\u202E\\"\\\\"'
    assert show("x" * 1000) == '"' + "x" * 60 + '…"'
    assert show(True) == "true"  # noqa: FBT003 - the value that is shown
    assert show({"a": 1}) == "a table"
    assert show([1]) == "a list"
    assert show(10**5000) == "a number beyond 64 bits"
    assert show(float("nan")) == "nan"


def test_a_misspelt_word_finds_the_known_one() -> None:
    assert near("In_Progress", ["todo", "in-progress"]) == ("in-progress",)
    assert near("zzz", ["todo"]) == ()


def test_suggestions_end_so_that_thousands_of_faults_cost_little() -> None:
    guesses = Guesses(looks=1)
    assert guesses.hint("tood", ["todo"]) == ' (did you mean "todo"?)'
    assert guesses.hint("tood", ["todo"]) == ""
