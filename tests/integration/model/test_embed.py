import logging
from typing import Any

import pytest

from loopctl.moneyports import Cap, Refused
from loopctl.testing import Garbled, HttpError, rate_limited, wrong_key
from loopctl.testing.chatwire import vector
from loopctl.worker.model.embed import BATCH
from loopctl.worker.model.open import embed
from loopctl.worker.model.routes import Price


def embedding(bench: Any, *faults: Any) -> Any:
    url = bench.serve(embed_faults=faults).url
    return bench.model(embed=bench.attempt(url=url, model="openai/vectors", price=Price(1.0, 0.0)))


def test_each_text_has_its_vector_and_the_tokens_are_paid(bench: Any) -> None:
    texts = ["one two", "", "caf\udce9", "x" * 100_000]
    found = embed(texts, embedding(bench))
    assert found is not None
    assert found[0] == vector("one two")
    assert len(found) == 4
    (claim,) = bench.till.claims
    assert (claim.purpose, claim.model) == ("embed", "openai/vectors")
    assert bench.till.spent.prompt_tokens == 4
    assert bench.till.spent.usd == pytest.approx(4 / 1_000_000)


def test_many_texts_are_sent_in_batches_and_stay_in_order(bench: Any) -> None:
    texts = [f"word{n}" for n in range(BATCH + 3)]
    assert embed(texts, embedding(bench)) == tuple(map(vector, texts))
    assert len(bench.servers[0].requests) == 2


def test_passing_faults_are_waited_for(bench: Any) -> None:
    assert embed(["a"], embedding(bench, rate_limited("3"), HttpError(500))) == (vector("a"),)
    assert bench.stop.waits == [3, 2]


@pytest.mark.parametrize("fault", [wrong_key(), HttpError(500), Garbled(), HttpError(400, "{key}")])
def test_lasting_faults_end_without_vectors(
    fault: Any, bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert embed(["a"], embedding(bench, *[fault] * 3)) is None
    assert bench.env["SCRIPTED_KEY"] not in caplog.text


def test_without_money_or_a_model_there_are_no_vectors(bench: Any) -> None:
    assert embed(["a"], bench.model()) is None
    bench.till.refused = Refused(Cap.RUN_USD, "all spent")
    assert embed(["a"], embedding(bench)) is None
    assert bench.servers[0].requests == ()
