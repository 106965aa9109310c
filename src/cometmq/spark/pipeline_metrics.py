"""Metrics of a running pipeline: what its queries have read and written, and how far they are behind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from cometmq.monitor.family import Family, LabelValues, Value, counter, gauge

_QUERY = ("query",)


class Batch(Protocol):
    @property
    def batch_id(self) -> int: ...
    @property
    def rows_per_second(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def behind(self) -> Mapping[str, int]: ...


class Query(Protocol):
    """What a query has done since it was started."""

    name: str
    batch_count: int
    rows_read: int
    rows_written: int | None
    rows_too_late: int
    seconds: float

    @property
    def last(self) -> Batch | None: ...


def pipeline_families(queries: Callable[[], Collection[Query]]) -> Sequence[Family]:
    """Args: queries: those that run; may be called from another thread."""

    def total(
        value: Callable[[Query], float | None],
    ) -> Callable[[], list[tuple[LabelValues, Value]]]:
        def read() -> list[tuple[LabelValues, Value]]:
            found = [(query.name, value(query)) for query in list(queries())]
            return [((name,), float(one)) for name, one in found if one is not None]

        return read

    def last(value: Callable[[Batch], float]) -> Callable[[], list[tuple[LabelValues, Value]]]:
        return total(lambda query: None if query.last is None else value(query.last))

    def lags() -> list[tuple[LabelValues, Value]]:
        return [
            ((queue, query.name), float(count))
            for query in list(queries())
            if query.last is not None
            for queue, count in query.last.behind.items()
        ]

    return (
        counter(
            "cometmq_pipeline_rows_read_total",
            _QUERY,
            total(lambda query: query.rows_read),
            text="Rows that each query has read since the start",
        ),
        counter(
            "cometmq_pipeline_rows_written_total",
            _QUERY,
            total(lambda query: query.rows_written),
            text="Rows that it has written, where the sink tells",
        ),
        counter(
            "cometmq_pipeline_rows_too_late_total",
            _QUERY,
            total(lambda query: query.rows_too_late),
            text="Rows dropped because they came later than the watermark allows",
        ),
        counter(
            "cometmq_pipeline_batches_total",
            _QUERY,
            total(lambda query: query.batch_count),
            text="Batches with rows",
        ),
        counter(
            "cometmq_pipeline_batch",
            _QUERY,
            total(lambda query: query.seconds),
            unit="seconds",
            text="Time spent in batches",
        ),
        gauge(
            "cometmq_pipeline_rows_per_second",
            _QUERY,
            last(lambda batch: batch.rows_per_second),
            text="Rows per second in the last batch",
        ),
        gauge(
            "cometmq_pipeline_behind_messages",
            ("queue", "query"),
            lags,
            text="Messages of each queue that are still to be read",
        ),
    )
