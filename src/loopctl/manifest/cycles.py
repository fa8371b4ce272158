"""Finds the cycles of a graph: strongly connected components, one shortest cycle of each."""

from collections import deque
from collections.abc import Sequence

Edges = Sequence[Sequence[int]]
"""For each node, the nodes it points at."""


def find_cycles(edges: Edges) -> list[list[int]]:
    """Return one cycle for each knot of the graph, in the order of their first nodes. O(n + e).

    Each begins at the knot's lowest node and is the shortest through it; the last node points at
    the first again.

    Source: Kahn (1962) to tell whether there is one; Tarjan (1972) for the knots.
    """
    left = _cyclic_rest(edges)
    if not left:
        return []
    cycles = [_shortest_cycle(edges, knot) for knot in _knots(edges, left)]
    return sorted(cycle for cycle in cycles if cycle)


def _cyclic_rest(edges: Edges) -> list[int]:
    """Return the nodes that are left when nodes without unmet edges are taken away."""
    waiting = [len(targets) for targets in edges]
    sources: list[list[int]] = [[] for _ in edges]
    for node, targets in enumerate(edges):
        for target in targets:
            sources[target].append(node)
    free = [node for node, count in enumerate(waiting) if count == 0]
    for node in free:  # grows while it is walked
        for source in sources[node]:
            waiting[source] -= 1
            if waiting[source] == 0:
                free.append(source)
    if len(free) == len(waiting):
        return []
    return [node for node, count in enumerate(waiting) if count > 0]


def _knots(edges: Edges, nodes: list[int]) -> list[set[int]]:
    """Return the strongly connected components among ``nodes``, without recursion."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    knots: list[set[int]] = []
    for root in nodes:
        if root in number:
            continue
        work = [(root, iter(edges[root]))]
        while work:
            node, targets = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
                on_stack.add(node)
            child = next((t for t in targets if t not in number or t in on_stack), None)
            if child is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == number[node]:
                    knots.append(_pop_until(node, stack, on_stack))
            elif child not in number:
                work.append((child, iter(edges[child])))
            else:
                low[node] = min(low[node], number[child])
    return knots


def _pop_until(node: int, stack: list[int], on_stack: set[int]) -> set[int]:
    knot: set[int] = set()
    while node not in knot:
        member = stack.pop()
        on_stack.discard(member)
        knot.add(member)
    return knot


def _shortest_cycle(edges: Edges, knot: set[int]) -> list[int]:
    """Return the shortest way from the knot's lowest node back to it; empty for a lone node."""
    start = min(knot)
    came_from: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for target in edges[node]:
            if target == start:
                return _way(came_from, start, node)
            if target in knot and target not in came_from:
                came_from[target] = node
                queue.append(target)
    return []


def _way(came_from: dict[int, int], start: int, end: int) -> list[int]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
