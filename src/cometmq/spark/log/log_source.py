"""The data source ``rocketmq-log``: the files of a broker's store as Spark tables, without a broker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cometmq.spark.columns.schema import (
    COLUMNS,
    LOG_COLUMNS,
    arrow_schema,
    as_asked,
    nullable_columns,
    spark_schema,
)
from cometmq.spark.errors import BadOption
from cometmq.spark.log.log_options import BY_LOG, LogOptions, read_log_options
from cometmq.spark.log.log_planner import LogPlanner
from cometmq.spark.log.log_reader import LogPartition, LogTask
from cometmq.spark.log.raw_log import StretchPartition, StretchTask, stretches_of
from cometmq.spark.queue_offsets import from_json
from cometmq.spark.source.planned_stream import PlannedStreamReader
from cometmq.spark.worker import begin_task


class RocketMQLogDataSource(DataSource):
    """Register it with ``cometmq.spark.register(spark)``."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-log"

    def schema(self) -> str:
        return spark_schema(read_log_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogBatchReader(self._log_options(schema), _wanted(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogStreamReader(self._log_options(schema), _wanted(schema))

    def _log_options(self, schema: StructType) -> LogOptions:
        """With the columns that a user's own schema names, if there is one. Raises BadOption."""
        options = read_log_options(self.options)
        names = schema.fieldNames()
        if tuple(names) == options.columns:
            return options
        if to_arrow_schema(schema, timezone="UTC") != _wanted(schema):
            raise BadOption(
                f"schema: expected {spark_schema(names)}, got {schema.simpleString()}; "
                "name columns with their own types and cast them afterwards"
            )
        return dataclasses.replace(options, columns=tuple(names))


class LogBatchReader(DataSourceReader):
    def __init__(self, options: LogOptions, wanted: pa.Schema) -> None:
        options.check_for_batch()
        self._options = options
        self._wanted = wanted

    def partitions(self) -> Sequence[InputPartition]:
        if self._options.scan == BY_LOG:
            return stretches_of(self._options)
        planner = LogPlanner(self._options)
        try:
            return [LogPartition(piece) for piece in planner.batch()]
        finally:
            planner.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition, self._options, self._wanted)


class LogStreamReader(PlannedStreamReader[LogOptions, LogPlanner]):
    def _make_planner(self) -> LogPlanner:
        return LogPlanner(self._options)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces = self._planner.stream_pieces(from_json(start), from_json(end))
        return [LogPartition(piece) for piece in pieces]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: files keep no record of who has read them."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition, self._options, self._wanted)


def _wanted(schema: StructType) -> pa.Schema:
    """Raises BadOption."""
    names = schema.fieldNames()
    every = COLUMNS + LOG_COLUMNS
    if unknown := [name for name in names if name not in every]:
        raise BadOption(
            f"schema: expected some of the columns {', '.join(every)}, got {', '.join(unknown)}"
        )
    return arrow_schema(names, nullable_columns(schema))


def _read(partition: InputPartition, options: LogOptions, wanted: pa.Schema) -> Iterator[Any]:
    begin_task()
    columns = wanted.names
    if isinstance(partition, LogPartition):
        by_queue = LogTask(options, columns)
        with closing(by_queue):
            yield from as_asked(by_queue.read(partition.piece), columns, wanted)
    elif isinstance(partition, StretchPartition):
        by_log = StretchTask(options, columns)
        with closing(by_log):
            yield from as_asked(by_log.read(partition), columns, wanted)
    # Else there were no partitions at all, and Spark has made one of that.
