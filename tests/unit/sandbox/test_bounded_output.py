from hypothesis import given
from hypothesis import strategies as st

from loopctl.sandbox.process import BoundedOutput


@given(st.lists(st.binary(max_size=40), max_size=40), st.integers(min_value=2, max_value=300))
def test_what_fits_is_kept_whole_and_what_does_not_keeps_head_and_tail(
    chunks: list[bytes], limit: int
) -> None:
    whole = b"".join(chunks)
    output = BoundedOutput(limit)
    for chunk in chunks:
        output.add(chunk)
    is_truncated, value = output.is_truncated, output.value()
    assert is_truncated == (len(whole) > limit)
    if not is_truncated:
        assert value == whole
        return
    missing = len(whole) - limit
    note = f"\n[... {missing} bytes of output left out ...]\n".encode()
    head, tail = limit - limit // 2, limit // 2
    assert value == whole[:head] + note + whole[len(whole) - tail :]


def test_a_hundred_megabytes_do_not_grow_the_buffer() -> None:
    output = BoundedOutput(1000)
    for _ in range(1600):
        output.add(b"x" * 65536)
    assert len(output._head) + len(output._tail) < 200_000
    assert b"104856600 bytes of output left out" in output.value()
