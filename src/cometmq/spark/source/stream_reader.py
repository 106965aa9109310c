"""``spark.readStream``: Spark asks where the next batch may end, and reads what lies between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from cometmq.spark.queue_offsets import from_json
from cometmq.spark.source.partition import partitions_of, read_partition
from cometmq.spark.source.planned_stream import PlannedStreamReader
from cometmq.spark.source.source_options import SourceOptions
from cometmq.spark.source.stream_planner import StreamPlanner


class RocketMQStreamReader(PlannedStreamReader[SourceOptions, StreamPlanner]):
    def _make_planner(self) -> StreamPlanner:
        return StreamPlanner(self._options)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        planner = self._planner
        ranges = planner.ranges(from_json(start), from_json(end))
        return partitions_of(ranges, self._options, planner.client)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: ``latestOffset`` has committed it already."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._wanted)
