"""``spark.readStream``: Spark asks where the next batch may end, and reads what lies between.

One object of this class lives in a process beside the driver for as long as the query runs; copies of it read in tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from cometmq.spark.queue_offsets import OffsetJson, from_json, to_json
from cometmq.spark.source.partition import partitions_of, read_partition
from cometmq.spark.source.source_options import SourceOptions
from cometmq.spark.source.stream_planner import StreamPlanner


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Args:
    wanted: columns as Spark expects them.
    """

    def __init__(self, options: SourceOptions, wanted: pa.Schema) -> None:
        options.check_for_stream()
        self._options = options
        self._wanted = wanted
        self._planner_here: StreamPlanner | None = None

    # ── beside the driver ──

    def initialOffset(self) -> OffsetJson:
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
        return to_json(
            self._planner.next(from_json(start), is_limited=not isinstance(limit, ReadAllAvailable))
        )

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.fix_target()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        latest = self._planner.latest
        return to_json(latest) if latest is not None else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        planner = self._planner
        ranges = planner.ranges(from_json(start), from_json(end))
        return partitions_of(ranges, self._options, planner.client)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: ``latestOffset`` has committed it already."""

    def stop(self) -> None:
        if self._planner_here is not None:
            self._planner_here.close()
            self._planner_here = None

    @property
    def _planner(self) -> StreamPlanner:
        if self._planner_here is None:
            self._planner_here = StreamPlanner(self._options)
        return self._planner_here

    # ── in tasks ──

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._wanted)

    def __getstate__(self) -> dict[str, Any]:
        """Connections stay where they are."""
        return {**self.__dict__, "_planner_here": None}
