from hypothesis import given
from hypothesis import strategies as st

from loopctl.manifest.cycles import find_cycles


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    size = draw(st.integers(0, 8))
    nodes = st.integers(0, max(size - 1, 0))
    return [draw(st.lists(nodes, max_size=3)) for _ in range(size)]


def reachable(edges: list[list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    pending = list(edges[start])
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(edges[node])
    return seen


@given(graphs())
def test_there_is_one_real_cycle_for_each_knot_and_none_elsewhere(edges: list[list[int]]) -> None:
    reach = [reachable(edges, node) for node in range(len(edges))]
    knots = {
        frozenset(other for other in reach[node] if node in reach[other])
        for node in range(len(edges))
        if node in reach[node]
    }
    cycles = find_cycles(edges)
    assert [cycle[0] for cycle in cycles] == sorted(min(knot) for knot in knots)
    for cycle in cycles:
        assert len(set(cycle)) == len(cycle)
        for node, target in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert target in edges[node]
