"""Which cap a claim would pass, to the last token and micro-dollar."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopctl.domain import Limits
from loopctl.moneyports import Cap, Claim, Refused
from loopctl.settings import BudgetSettings
from loopctl.store.caps import RunCaps, Spent, micro_usd, refusal, run_caps

NOTHING = Spent()


def claim(tokens: int = 0, usd: float | None = 0.0, caps: Limits | None = None) -> Claim:
    return Claim("r1", "T1", "step", "some/model", tokens, usd, caps or Limits())


def cap_of(found: Refused | None) -> Cap | None:
    assert found is not None
    return found.cap


@pytest.mark.parametrize(
    ("usd", "micro"),
    [
        (0.0, 0),
        (1e-9, 1),
        (1e-6, 1),
        (1.0000001, 1_000_001),
        (0.1, 100_000),
        (0.29, 290_000),
        (1.1, 1_100_000),
        (0.1 + 0.2, 300_001),
    ],
)
def test_dollars_are_whole_micro_dollars_rounded_up(usd: float, micro: int) -> None:
    assert micro_usd(usd) == micro


@pytest.mark.parametrize("usd", [-0.1, math.nan, math.inf])
def test_dollars_that_are_no_amount_are_refused(usd: float) -> None:
    with pytest.raises(ValueError, match="no amount"):
        micro_usd(usd)
    with pytest.raises(ValueError, match="no amount"):
        refusal(claim(usd=usd), RunCaps(), NOTHING, NOTHING)


def test_negative_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 tokens"):
        refusal(claim(-1), RunCaps(), NOTHING, NOTHING)


def test_what_fits_exactly_is_granted_and_one_more_is_not() -> None:
    caps = RunCaps(usd=1.0, tokens=100)
    spent = Spent(90, 900_000)
    assert refusal(claim(10, 0.1), caps, spent, spent) is None
    assert cap_of(refusal(claim(11, 0.1), caps, spent, spent)) is Cap.RUN_TOKENS
    assert cap_of(refusal(claim(10, 0.100001), caps, spent, spent)) is Cap.RUN_USD
    own = Limits(tokens=100, usd=1.0)
    assert refusal(claim(10, 0.1, own), RunCaps(), spent, NOTHING) is None
    assert cap_of(refusal(claim(11, 0.1, own), RunCaps(), spent, NOTHING)) is Cap.TASK_TOKENS
    assert cap_of(refusal(claim(10, 0.100001, own), RunCaps(), spent, NOTHING)) is Cap.TASK_USD


def test_cap_of_zero_lets_nothing_be_spent() -> None:
    assert cap_of(refusal(claim(1), RunCaps(tokens=0), NOTHING, NOTHING)) is Cap.RUN_TOKENS
    assert cap_of(refusal(claim(0, 1e-9), RunCaps(usd=0), NOTHING, NOTHING)) is Cap.RUN_USD
    none = Limits(tokens=0)
    assert cap_of(refusal(claim(1, 0.0, none), RunCaps(), NOTHING, NOTHING)) is Cap.TASK_TOKENS
    none = Limits(usd=0)
    assert cap_of(refusal(claim(1, 0.01, none), RunCaps(), NOTHING, NOTHING)) is Cap.TASK_USD
    assert refusal(claim(1, 0.0, none), RunCaps(usd=0), NOTHING, NOTHING) is None


def test_no_cap_refuses_nothing() -> None:
    assert refusal(claim(10**12, 1e9), RunCaps(), Spent(10**9, 10**9), Spent(10**9)) is None


def test_own_cap_of_a_task_comes_before_that_of_the_run() -> None:
    caps = Limits(tokens=5, usd=5.0)
    found = refusal(claim(10, 10.0, caps), RunCaps(1.0, 1), NOTHING, NOTHING)
    assert cap_of(found) is Cap.TASK_TOKENS


@pytest.mark.parametrize(
    ("caps", "own", "is_refused"),
    [
        (RunCaps(usd=10.0), Limits(), False),
        (RunCaps(usd=10.0, has_user_usd_cap=True), Limits(), True),
        (RunCaps(), Limits(usd=1.0), True),
        (RunCaps(usd=0), Limits(), False),
        (RunCaps(), Limits(tokens=100), False),
    ],
)
def test_unknown_price_is_refused_only_where_the_user_has_set_a_cap_in_dollars(
    caps: RunCaps, own: Limits, *, is_refused: bool
) -> None:
    found = refusal(claim(10, None, own), caps, NOTHING, NOTHING)
    assert (found is not None) is is_refused
    if found is not None:
        assert found.cap is None
        assert "some/model" in found.reason
        assert "input_usd_per_mtok" in found.reason


def test_unknown_price_is_bounded_by_tokens_all_the_same() -> None:
    assert cap_of(refusal(claim(2, None), RunCaps(tokens=1), NOTHING, NOTHING)) is Cap.RUN_TOKENS


def test_refusal_says_what_which_and_how_much_on_one_line() -> None:
    spent = Spent(90, 1_250_000)
    found = refusal(claim(20, 0.5, Limits(tokens=100)), RunCaps(), spent, spent)
    assert found == Refused(
        Cap.TASK_TOKENS,
        "a call of some/model (step) would pass task_tokens of T1: it can cost 20 tokens at worst, "
        "and 90 of 100 are spent or put aside; raise the cap",
        110,
    )
    found = refusal(claim(20, 0.5), RunCaps(usd=1.5), spent, spent)
    assert found == Refused(
        Cap.RUN_USD,
        "a call of some/model (step) would pass budget.run_usd: it can cost $0.5 at worst, and "
        "$1.25 of $1.5 are spent or put aside; raise the cap",
        1.75,
    )


@pytest.mark.parametrize(
    ("keys", "caps"),
    [
        ({}, RunCaps(10.0, None)),
        ({"run_tokens": 7}, RunCaps(10.0, 7)),
        ({"run_usd": 0}, RunCaps(0.0, None, has_user_usd_cap=True)),
        ({"run_usd": 2.5}, RunCaps(2.5, None, has_user_usd_cap=True)),
        ({"run_usd": 10.0}, RunCaps(10.0, None, has_user_usd_cap=True)),
        ({"task_usd": 1}, RunCaps(10.0, None, has_user_usd_cap=True)),
    ],
)
def test_cap_in_dollars_is_the_users_own_where_it_was_set(
    keys: dict[str, float], caps: RunCaps
) -> None:
    assert run_caps(BudgetSettings.model_validate(keys)) == caps


amounts = st.floats(0, 100, allow_nan=False)


@given(
    st.integers(0, 1000),
    amounts,
    st.none() | st.integers(0, 1000),
    st.none() | amounts,
    st.integers(0, 1000),
    st.integers(0, 10**8),
)
def test_smallest_cap_that_is_named_lets_the_call_through(
    tokens: int, usd: float, token_cap: int | None, usd_cap: float | None, used: int, micro: int
) -> None:
    spent = Spent(used, micro)
    caps = RunCaps(usd_cap, token_cap)
    found = refusal(claim(tokens, usd), caps, NOTHING, spent)
    while found is not None:
        if found.cap is Cap.RUN_TOKENS:
            caps = RunCaps(caps.usd, int(found.needed))
        else:
            caps = RunCaps(found.needed, caps.tokens)
        before, found = found, refusal(claim(tokens, usd), caps, NOTHING, spent)
        assert found is None or found.cap is not before.cap
