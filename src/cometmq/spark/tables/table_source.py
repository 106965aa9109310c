"""What the data sources of all kinds of tables have in common.

Tasks write Parquet files, the driver commits them. A micro-batch is committed together with the query's id and the
batch's number: a batch that comes again after a failure finds itself in the table and is passed over, so every row is
in the table once. How a table is found, written to and read is what ``delta`` and ``iceberg`` add.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from cometmq.spark.tables.files import (
    DataFile,
    FilesWritten,
    arrow_schema_of,
    check_partition_columns,
    query_id_of,
    write_files,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Transaction = tuple[str, int]
"""A query's id and the number of one of its batches."""

Messages = Sequence[WriterCommitMessage | None]


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the files of a table are; names are below its root."""

    create: Callable[[str], Any]
    delete: Callable[[str], None]


class TableWork(ABC):
    """One write to a table. It is sent to the tasks, which call ``write``; the driver calls everything else."""

    KEEPS_PARTITION_COLUMNS: ClassVar[bool]
    """Whether the files themselves hold the columns that the table is partitioned by."""

    def __init__(self, schema: StructType, partition_by: Sequence[str], overwrite: bool) -> None:
        self._schema = arrow_schema_of(schema)
        self._partition_by = tuple(partition_by)
        self._overwrite = overwrite
        check_partition_columns(self._schema, partition_by)

    def write(self, batches: Iterator[pa.RecordBatch]) -> FilesWritten:
        context = TaskContext.get()
        query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
        storage = self._storage()
        files = write_files(
            batches,
            self._schema,
            partition_by=self._partition_by,
            keeps_partition_columns=self.KEEPS_PARTITION_COLUMNS,
            open_file=storage.create,
            remove=storage.delete,
        )
        return FilesWritten(query_id or "", files)

    def commit(self, messages: Messages, transaction: Transaction | None) -> None:
        """Add what the tasks wrote to the table; remove it if the transaction is in the table already."""
        if not self._commit(_files(messages), transaction):
            self.remove(messages)

    def remove(self, messages: Messages) -> None:
        storage = self._storage()
        for file in _files(messages):
            try:
                storage.delete(file.name)
            except OSError:
                # It is in no commit; a cleaning of the table finds it later.
                continue

    @abstractmethod
    def _storage(self) -> Storage: ...

    @abstractmethod
    def _commit(self, files: Sequence[DataFile], transaction: Transaction | None) -> bool:
        """Add files to the table. False if the transaction is in it already."""


class TableWriter(DataSourceArrowWriter):
    """A batch: one commit, without a transaction."""

    def __init__(self, work: TableWork) -> None:
        self._work = work

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        return self._work.write(iterator)

    def commit(self, messages: Messages) -> None:
        self._work.commit(messages, None)

    def abort(self, messages: Messages) -> None:
        self._work.remove(messages)


class TableStreamWriter(DataSourceStreamArrowWriter):
    """A micro-batch: one commit under the query's id and the batch's number."""

    def __init__(self, work: TableWork) -> None:
        self._work = work

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        return self._work.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        self._work.commit(messages, (query_id_of(_written(messages)), batchId))

    def abort(self, messages: Messages, batchId: int) -> None:
        self._work.remove(messages)


class TableDataSource(DataSource):
    """A subclass names its format, reads, and says what a table's columns are and how it is written to."""

    FORMAT: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._columns())

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        return TableWriter(self._work(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> TableStreamWriter:
        return TableStreamWriter(self._work(schema, overwrite))

    @abstractmethod
    def _columns(self) -> pa.Schema: ...

    @abstractmethod
    def _work(self, schema: StructType, overwrite: bool) -> TableWork: ...


def _written(messages: Messages) -> list[FilesWritten]:
    return [message for message in messages if isinstance(message, FilesWritten)]


def _files(messages: Messages) -> list[DataFile]:
    return [file for message in _written(messages) for file in message.files]
