"""What one task is told to read, and how it reads it; the same for batches and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from cometmq.client.sync.bulk_client import BulkClient
from cometmq.spark.columns.schema import as_asked
from cometmq.spark.source.fetch import Fetcher, Wanted
from cometmq.spark.source.ranges import Range, tasks_of
from cometmq.spark.source.source_options import SourceOptions
from cometmq.spark.worker import begin_task


class QueuePartition(InputPartition):
    """Ranges of queues, with the addresses of their brokers. Nothing in it is secret."""

    def __init__(self, wanted: tuple[Wanted, ...]) -> None:
        super().__init__(None)
        self.wanted = wanted

    def __repr__(self) -> str:
        return f"QueuePartition({', '.join(str(one.range) for one in self.wanted)})"


def partitions_of(
    ranges: Sequence[Range], options: SourceOptions, client: BulkClient
) -> list[QueuePartition]:
    tasks = tasks_of(
        ranges,
        min_partitions=options.min_partitions,
        max_records=options.max_records_per_partition,
    )
    return [
        QueuePartition(tuple(Wanted(one, client.places(one.queue.broker_name)) for one in task))
        for task in tasks
    ]


def read_partition(
    partition: InputPartition, options: SourceOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Batches with columns as ``schema`` has them. Without ranges there are none."""
    if not isinstance(partition, QueuePartition):
        # What Spark makes of no partitions at all.
        return
    begin_task()
    fetcher = Fetcher(options)
    try:
        batches = fetcher.read(partition.wanted)
        yield from as_asked(batches, options.columns, schema)
    finally:
        fetcher.close()
