"""What ``spark.readStream`` asks of every format: a planner decides where the next batch may end.

One object of such a class lives in a process beside the driver for as long as the query runs; copies of it read in
tasks.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from cometmq.spark.queue_offsets import Offsets, from_json, to_json


class Planner(Protocol):
    """It holds files or connections, which cannot be sent to a task."""

    @property
    def latest(self) -> Offsets | None: ...

    def initial(self) -> Offsets: ...

    def fix_target(self) -> None: ...

    def next(self, start: Offsets, *, is_limited: bool) -> Offsets: ...

    def close(self) -> None: ...


class StreamOptions(Protocol):
    @property
    def max_rows(self) -> int | None: ...

    @property
    def max_bytes(self) -> int | None: ...

    @property
    def min_rows(self) -> int | None: ...

    def check_for_stream(self) -> None: ...


AnyOptions = TypeVar("AnyOptions", bound=StreamOptions)
AnyPlanner = TypeVar("AnyPlanner", bound=Planner)


class PlannedStreamReader(
    DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[AnyOptions, AnyPlanner]
):
    """Args:
    wanted: columns as Spark expects them.
    """

    def __init__(self, options: AnyOptions, wanted: pa.Schema) -> None:
        options.check_for_stream()
        self._options = options
        self._wanted = wanted
        self._planner_here: AnyPlanner | None = None

    @abstractmethod
    def _make_planner(self) -> AnyPlanner: ...

    @property
    def _planner(self) -> AnyPlanner:
        if self._planner_here is None:
            self._planner_here = self._make_planner()
        return self._planner_here

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark knows one limit at a time; this one tells that ours count. Without any, all is read."""
        options = self._options
        if options.max_rows is not None:
            return ReadMaxRows(options.max_rows)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        if options.min_rows is not None:
            return ReadMinRows(options.min_rows)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        is_limited = not isinstance(limit, ReadAllAvailable)
        return to_json(self._planner.next(from_json(start), is_limited=is_limited))

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.fix_target()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        latest = self._planner.latest
        return to_json(latest) if latest is not None else None

    def stop(self) -> None:
        if self._planner_here is not None:
            self._planner_here.close()
            self._planner_here = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner_here": None}
