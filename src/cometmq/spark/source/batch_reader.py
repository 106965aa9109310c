"""``spark.read``: all rows between two positions, both fixed when the query is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from cometmq.client.sync.bulk_client import BulkClient
from cometmq.spark.client import open_client
from cometmq.spark.queue_offsets import Word
from cometmq.spark.source.batch_end import ranges_of_batch
from cometmq.spark.source.discovery import find_queues
from cometmq.spark.source.partition import partitions_of, read_partition
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import SourceOptions
from cometmq.spark.source.start_positions import resolve


class RocketMQBatchReader(DataSourceReader):
    """Args:
    wanted: columns as Spark expects them.
    """

    def __init__(self, options: SourceOptions, wanted: pa.Schema) -> None:
        options.check_for_batch()
        self._options = options
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        """Raises DataLost when offsets are wanted that the queues do not hold."""
        with open_client(self._options.connection) as client:
            return partitions_of(self._ranges(client), self._options, client)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options, self._wanted)

    def _ranges(self, client: BulkClient) -> list[Range]:
        options = self._options
        queues = find_queues(client, options)
        bounds, failures = client.bounds(queues)
        for failure in failures.values():
            raise failure
        starts = resolve(client, options, "startingOffsets", options.start, Word.EARLIEST, bounds)
        ends = resolve(client, options, "endingOffsets", options.end, Word.LATEST, bounds)
        return ranges_of_batch(options, starts, ends, bounds)
