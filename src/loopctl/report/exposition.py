"""The text format of Prometheus: families with their help, type and samples.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ ("Text-based format").
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]
"""Names and values, in the order in which they are written."""


class Histogram:
    """Counts of what was observed, by upper bound.

    Args:
        bounds: Upper bounds, ascending; the last bucket, without a bound, is added.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value; one that equals a bound is below it."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Yield each bound as it is written, with how many values were not above it."""
        total = 0
        names = (*(f"{bound:g}" for bound in self.bounds), "+Inf")
        for name, count in zip(names, self._counts, strict=True):
            total += count
            yield name, total

    @property
    def count(self) -> int:
        """How many values were observed."""
        return sum(self._counts)


def family(name: str, meaning: str, samples: Mapping[Labels, int]) -> str:
    """Return a family of counters."""
    lines = (f"{name}{_labels(labels)} {value}\n" for labels, value in samples.items())
    return f"{_head(name, meaning, 'counter')}{''.join(lines)}"


def histogram(name: str, meaning: str, values: Histogram) -> str:
    """Return a family that is one histogram."""
    buckets = (f'{name}_bucket{{le="{bound}"}} {count}\n' for bound, count in values.buckets())
    return (
        f"{_head(name, meaning, 'histogram')}{''.join(buckets)}"
        f"{name}_sum {values.sum:.9g}\n{name}_count {values.count}\n"
    )


def _head(name: str, meaning: str, kind: str) -> str:
    escaped = meaning.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {escaped}\n# TYPE {name} {kind}\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
