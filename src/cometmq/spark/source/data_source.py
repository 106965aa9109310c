"""The data source ``rocketmq``: topics as Spark tables, read and written in batches and as streams."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cometmq.spark.columns.schema import COLUMNS, arrow_schema, nullable_columns, spark_schema
from cometmq.spark.errors import BadOption
from cometmq.spark.sink.spark_writers import batch_writer, stream_writer
from cometmq.spark.source.batch_reader import RocketMQBatchReader
from cometmq.spark.source.source_options import SourceOptions, read_source_options
from cometmq.spark.source.stream_reader import RocketMQStreamReader


class RocketMQDataSource(DataSource):
    """Register it with ``cometmq.spark.register(spark)``."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        return spark_schema(read_source_options(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._source_options(schema)
        return RocketMQBatchReader(options, _wanted(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self._source_options(schema)
        return RocketMQStreamReader(options, _wanted(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return stream_writer(schema, self.options, overwrite)

    def _source_options(self, schema: StructType) -> SourceOptions:
        """With the columns that a user's own schema names, if there is one. Raises BadOption."""
        options = read_source_options(self.options)
        names = schema.fieldNames()
        if tuple(names) == options.columns:
            return options
        unknown = [name for name in names if name not in COLUMNS]
        if unknown:
            raise BadOption(
                f"schema: expected some of the columns {', '.join(COLUMNS)}, got {', '.join(unknown)}"
            )
        if to_arrow_schema(schema, timezone="UTC") != _wanted(schema):
            raise BadOption(
                f"schema: expected {spark_schema(names)}, got {schema.simpleString()}; "
                "name columns with their own types and cast them afterwards"
            )
        columns = tuple(name for name in COLUMNS if name in names)
        return dataclasses.replace(options, columns=columns)


def _wanted(schema: StructType) -> pa.Schema:
    return arrow_schema(schema.fieldNames(), nullable_columns(schema))
