"""Metrics as values: a family has a name, a kind and labels, and reads its samples when somebody asks.

The data path counts in plain integers of its own, so that a count costs next to nothing. A family knows where they are.
Names are those of the instrument; what a page calls it, with unit and ``_total``, is ``page_name``, by the rules of
OpenTelemetry's Prometheus exporter, which RocketMQ uses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

LabelValues = tuple[str, ...]
OVERFLOW: Final = "otel_metric_overflow"
"""The one label, with the value ``true``, of the series that stands for all beyond the bound."""


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Histogram:
    """Counts values by bucket. Owned by the event loop."""

    __slots__ = ("counts", "edges", "sum")

    def __init__(self, edges: tuple[float, ...]) -> None:
        self.edges = edges
        """The largest value of each bucket; one bucket more has what is larger."""
        self.counts = [0] * (len(edges) + 1)
        self.sum = 0.0

    def add(self, value: float, count: int = 1) -> None:
        """Count a value that occurred so many times."""
        self.counts[bisect_left(self.edges, value)] += count
        self.sum += value * count

    @property
    def count(self) -> int:
        return sum(self.counts)

    def merge(self, other: Histogram) -> None:
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    def __repr__(self) -> str:
        return f"<Histogram count={self.count} sum={self.sum:g}>"


Value = float | Histogram
Samples = Iterable[tuple[LabelValues, Value]]


@dataclass(frozen=True, slots=True)
class Family:
    name: str
    kind: Kind
    labels: tuple[str, ...]
    read: Callable[[], Samples]
    """The series by the values of their labels. What it returns must bear that things change while it is walked."""
    unit: str = ""
    """As part of the name: ``milliseconds``, ``bytes``, ``seconds``."""
    text: str = ""

    @property
    def page_name(self) -> str:
        name = self.name
        if self.unit and not name.endswith("_" + self.unit):
            name = f"{name.removesuffix('_total')}_{self.unit}"
        if self.kind is Kind.COUNTER and not name.endswith("_total"):
            name += "_total"
        return name

    @property
    def help(self) -> str:
        """RocketMQ says the same of all counters, and of all gauges."""
        return self.text or f"default view for {self.kind}."


def counter(
    name: str,
    labels: tuple[str, ...],
    read: Callable[[], Samples],
    *,
    unit: str = "",
    text: str = "",
) -> Family:
    return Family(name, Kind.COUNTER, labels, read, unit, text)


def gauge(
    name: str,
    labels: tuple[str, ...],
    read: Callable[[], Samples],
    *,
    unit: str = "",
    text: str = "",
) -> Family:
    return Family(name, Kind.GAUGE, labels, read, unit, text)


def histogram(
    name: str,
    labels: tuple[str, ...],
    read: Callable[[], Samples],
    *,
    unit: str = "",
    text: str = "",
) -> Family:
    return Family(name, Kind.HISTOGRAM, labels, read, unit, text)


def single(read: Callable[[], float]) -> Callable[[], Samples]:
    """The samples of a family without labels."""
    return lambda: (((), read()),)


def bounded(family: Family, series_max: int) -> Iterator[tuple[LabelValues | None, Value]]:
    """The samples of a family, no more series than that: the last one, labelled None, sums up what is beyond.

    Gauges beyond the bound are left out, since their sum may mean nothing.
    """
    samples = iter(family.read())
    yield from islice(samples, series_max - 1)
    rest = list(islice(samples, 2))
    if len(rest) == 1:
        yield rest[0]
    elif rest and family.kind is Kind.COUNTER:
        total = sum(value for _, value in rest if not isinstance(value, Histogram))
        for _, value in samples:
            assert not isinstance(value, Histogram), family
            total += value
        yield None, total
    elif rest and family.kind is Kind.HISTOGRAM:
        merged: Histogram | None = None
        for _, value in (*rest, *samples):
            assert isinstance(value, Histogram), family
            if merged is None:
                merged = Histogram(value.edges)
            merged.merge(value)
        assert merged is not None
        yield None, merged
