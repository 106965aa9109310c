"""Families as OTLP, in its JSON form: what is logged with LOG, and what ``otlp_grpc`` sends.

With deltas, what has come since the last export is told, and a series that has not moved is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cometmq.monitor.family import OVERFLOW, Family, Histogram, Kind, LabelValues, bounded

_DELTA: Final = 1
_CUMULATIVE: Final = 2
_UNITS: Final = {"milliseconds": "ms", "seconds": "s", "bytes": "By"}
_AGGREGATION: Final = "aggregation"
"""RocketMQ's label for deltas."""

Point = dict[str, Any]
PORTION_POINTS: Final = 50


class OtlpRound:
    """Makes the data of one export after the other; remembers the last one if deltas are told."""

    def __init__(
        self,
        common: Mapping[str, str],
        *,
        scope: str,
        series_max: int,
        is_delta: bool,
        started_ns: int,
    ) -> None:
        self._common = {**common, _AGGREGATION: "delta"} if is_delta else dict(common)
        self._scope = scope
        self._series_max = series_max
        self._is_delta = is_delta
        self._since_ns = started_ns
        self._last: dict[tuple[str, LabelValues | None], tuple[float, tuple[int, ...]]] = {}

    def metrics(self, families: Sequence[Family], now_ns: int) -> Iterator[dict[str, Any]]:
        """Metrics with a portion of their points each, several of one name if it has many."""
        last: dict[tuple[str, LabelValues | None], tuple[float, tuple[int, ...]]] = {}
        for family in families:
            points: list[Point] = []
            for values, value in bounded(family, self._series_max):
                count: float
                buckets: tuple[int, ...] = ()
                if isinstance(value, Histogram):
                    count, buckets = value.sum, tuple(value.counts)
                else:
                    count = value
                if self._is_delta and family.kind is not Kind.GAUGE:
                    key = (family.name, values)
                    before, before_buckets = self._last.get(key, (0.0, (0,) * len(buckets)))
                    last[key] = (count, buckets)
                    if (count, buckets) == (before, before_buckets):
                        continue
                    count -= before
                    buckets = tuple(
                        now - then for now, then in zip(buckets, before_buckets, strict=True)
                    )
                points.append(self._point(family, values, value, count, buckets, now_ns))
                if len(points) >= PORTION_POINTS:
                    yield self._metric(family, points)
                    points = []
            if points:
                yield self._metric(family, points)
        if self._is_delta:
            self._last, self._since_ns = last, now_ns

    def request(self, metrics: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What an export says: ``ExportMetricsServiceRequest``."""
        scope = {"scope": {"name": self._scope}, "metrics": list(metrics)}
        return {"resourceMetrics": [{"resource": {}, "scopeMetrics": [scope]}]}

    def _metric(self, family: Family, points: list[Point]) -> dict[str, Any]:
        metric: dict[str, Any] = {
            "name": family.name,
            "description": family.text,
            "unit": _UNITS.get(family.unit, ""),
        }
        temporality = _DELTA if self._is_delta else _CUMULATIVE
        if family.kind is Kind.GAUGE:
            metric["gauge"] = {"dataPoints": points}
        elif family.kind is Kind.COUNTER:
            metric["sum"] = {
                "dataPoints": points,
                "aggregationTemporality": temporality,
                "isMonotonic": True,
            }
        else:
            metric["histogram"] = {"dataPoints": points, "aggregationTemporality": temporality}
        return metric

    def _point(
        self,
        family: Family,
        values: LabelValues | None,
        value: float | Histogram,
        count: float,
        buckets: tuple[int, ...],
        now_ns: int,
    ) -> Point:
        if values is None:
            labels = {**self._common, OVERFLOW: "true"}
        else:
            labels = {**self._common, **dict(zip(family.labels, values, strict=True))}
        point: Point = {
            "attributes": [
                # A name from the network may hold half a surrogate pair.
                {"key": key, "value": {"stringValue": text.encode(errors="replace").decode()}}
                for key, text in labels.items()
            ],
            "startTimeUnixNano": str(self._since_ns),
            "timeUnixNano": str(now_ns),
        }
        if isinstance(value, Histogram):
            point["count"] = str(sum(buckets))
            point["sum"] = count
            point["bucketCounts"] = [str(one) for one in buckets]
            point["explicitBounds"] = list(value.edges)
        else:
            point["asDouble"] = float(count)
        return point
