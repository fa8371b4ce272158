import pytest

from loopctl.errors import SchemaTooNewError
from loopctl.plan import Budget, Checkpoint, decode, encode, single_todo


def test_checkpoint_survives_a_round_trip() -> None:
    checkpoint = Checkpoint(plan=single_todo("goal", "do it", Budget(loops_max=3)), tree="abc")
    assert decode(encode(checkpoint)) == checkpoint


def test_blob_of_a_newer_version_is_refused() -> None:
    with pytest.raises(SchemaTooNewError, match="schema too new"):
        decode(b"\x00\x00\x00\x03{}")
