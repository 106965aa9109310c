"""Delta tables without a Java library: the data source ``cometmq-delta``, reading and writing through ``deltalake``.

Tasks write Parquet files, the driver commits them. A micro-batch is committed together with an application transaction
(the query's id, the batch's number): a batch that comes again after a failure finds its number in the table and is
passed over, so every row is in the table once.

Options: ``path``; ``partitionBy``, columns divided by commas; ``version`` of the table to read; ``storage.NAME`` for
what the object store needs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
)

from cometmq.base.errors import ConfigError
from cometmq.spark.tables.files import (
    DataFile,
    FilesWritten,
    arrow_schema_of,
    check_partition_columns,
    for_new_table,
    needed_option,
    option_list,
    query_id_of,
    write_files,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "cometmq-delta"
_STORAGE = "storage."


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """Which table. Its storage options may hold secrets and are in no text."""

    uri: str
    storage: tuple[tuple[str, str], ...] = ()
    version: int | None = None

    def __repr__(self) -> str:
        return f"DeltaTarget({self.uri!r})"

    def open(self) -> Any:
        """The table as it is now. Raises ConfigError when there is none."""
        from deltalake.exceptions import TableNotFoundError

        try:
            return _delta().DeltaTable(
                self.uri, version=self.version, storage_options=dict(self.storage) or None
            )
        except TableNotFoundError:
            raise ConfigError(f"there is no Delta table at {self.uri}") from None

    def filesystem(self) -> Any:
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem

        return PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage) or None))


class DeltaDataSource(DataSource):
    """Registered under ``cometmq-delta``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_arrow_schema(_target(self.options).open()))

    def reader(self, schema: StructType) -> DataSourceReader:
        return DeltaReader(_target(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DeltaWriter:
        return DeltaWriter(_target(self.options), schema, _partition_by(self.options), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeltaStreamWriter:
        return DeltaStreamWriter(
            _target(self.options), schema, _partition_by(self.options), overwrite
        )


class _Tasks:
    """What a task of either writer does."""

    def __init__(
        self, target: DeltaTarget, schema: StructType, partition_by: Sequence[str], overwrite: bool
    ) -> None:
        self._target = target
        self._schema = arrow_schema_of(schema)
        self._partition_by = tuple(partition_by)
        self._overwrite = overwrite
        check_partition_columns(self._schema, partition_by)
        if "://" not in target.uri:
            # What opens the table's file system wants the directory to be there.
            Path(target.uri).mkdir(parents=True, exist_ok=True)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> FilesWritten:
        context = TaskContext.get()
        query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
        filesystem = self._target.filesystem()
        files = write_files(
            batches,
            self._schema,
            partition_by=self._partition_by,
            keeps_partition_columns=False,
            open_file=lambda name: filesystem.open_output_stream(name, compression=None),
            remove=filesystem.delete_file,
        )
        return FilesWritten(query_id or "", files)

    def _remove(self, messages: Sequence[Any]) -> None:
        filesystem = self._target.filesystem()
        for file in _files(messages):
            try:
                filesystem.delete_file(file.name)
            except OSError:
                # It is in no commit; a vacuum of the table removes it later.
                continue

    def _commit(self, messages: Sequence[Any], transaction: tuple[str, int] | None) -> bool:
        return commit(
            self._target,
            self._schema,
            self._partition_by,
            _files(messages),
            overwrite=self._overwrite,
            transaction=transaction,
        )


class DeltaWriter(_Tasks, DataSourceArrowWriter):
    """A batch: one commit, without a transaction number."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        return self._write(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        self._commit(messages, None)

    def abort(self, messages: Sequence[Any]) -> None:
        self._remove(messages)


class DeltaStreamWriter(_Tasks, DataSourceStreamArrowWriter):
    """A micro-batch: one commit under the query's id and the batch's number."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesWritten:
        return self._write(iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        transaction = (query_id_of(messages), batchId)
        if not self._commit(messages, transaction):
            self._remove(messages)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        self._remove(messages)


def commit(
    target: DeltaTarget,
    schema: pa.Schema,
    partition_by: Sequence[str],
    files: Sequence[DataFile],
    *,
    overwrite: bool,
    transaction: tuple[str, int] | None,
) -> bool:
    """Add files to the table, which is made if need be. False if the transaction is in it already.

    Raises:
        ConfigError: the table has other columns or partitions.
    """
    from deltalake.transaction import AddAction, CommitProperties, Transaction

    table = _delta().DeltaTable.create(
        target.uri,
        schema=for_new_table(schema),
        mode="ignore",
        partition_by=list(partition_by),
        storage_options=dict(target.storage) or None,
    )
    _check_same(table, schema, partition_by)
    properties = None
    if transaction is not None:
        done = table.transaction_version(transaction[0])
        if done is not None and done >= transaction[1]:
            return False
        properties = CommitProperties(app_transactions=[Transaction(*transaction)])
    if not files and not overwrite:
        return True
    now_ms = int(time.time() * 1000)
    actions = [
        AddAction(
            path=file.name,
            size=file.size_bytes,
            partition_values=dict(zip(partition_by, file.partition, strict=True)),
            modification_time=now_ms,
            data_change=True,
            stats=json.dumps({"numRecords": file.row_count}),
        )
        for file in files
    ]
    table.create_write_transaction(
        actions,
        "overwrite" if overwrite else "append",
        table.schema(),
        list(partition_by),
        commit_properties=properties,
    )
    return True


@dataclass
class _DeltaFiles(InputPartition):
    version: int
    paths: tuple[str, ...]


class DeltaReader(DataSourceReader):
    """One version of the table, some of its files for each task."""

    def __init__(self, target: DeltaTarget, schema: StructType) -> None:
        self._target = target
        self._schema = arrow_schema_of(schema)

    def partitions(self) -> Sequence[InputPartition]:
        table = self._target.open()
        paths = sorted(fragment.path for fragment in table.to_pyarrow_dataset().get_fragments())
        return [_DeltaFiles(table.version(), (path,)) for path in paths] or [_DeltaFiles(0, ())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, _DeltaFiles) or not partition.paths:
            return
        target = DeltaTarget(self._target.uri, self._target.storage, partition.version)
        dataset = target.open().to_pyarrow_dataset()
        for fragment in dataset.get_fragments():
            if fragment.path in partition.paths:
                for batch in fragment.to_batches(schema=dataset.schema):
                    yield from pa.Table.from_batches([batch]).cast(self._schema).to_batches()


def _check_same(table: Any, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    found = _arrow_schema(table)
    wanted = {field.name: str(field.type) for field in schema}
    present = {field.name: str(field.type) for field in found}
    if wanted != present:
        differing = sorted(
            f"{name}: {present.get(name, 'none')} in the table, {wanted.get(name, 'none')} in the rows"
            for name in wanted.keys() | present.keys()
            if wanted.get(name) != present.get(name)
        )
        raise ConfigError(
            f"the rows do not fit the Delta table: {'; '.join(differing)}. Change the query, or write to another table"
        )
    there = tuple(table.metadata().partition_columns)
    if there != tuple(partition_by):
        raise ConfigError(
            f"the Delta table is partitioned by {', '.join(there) or 'nothing'}, "
            f"not by {', '.join(partition_by) or 'nothing'}; set partitionBy to the same"
        )


def _arrow_schema(table: Any) -> pa.Schema:
    return pa.schema(table.schema().to_arrow())


def _files(messages: Sequence[Any]) -> list[DataFile]:
    return [file for message in messages if message is not None for file in message.files]


def _target(options: Any) -> DeltaTarget:
    path = needed_option(options, "path", FORMAT)
    storage = {
        key.removeprefix(_STORAGE): value
        for key, value in options.items()
        if key.startswith(_STORAGE)
    }
    version = options.get("version")
    if version is not None and not str(version).isdecimal():
        raise ConfigError(f"option version: expected a number, got {version!r}")
    if "://" not in path:
        # Workers may have another working directory.
        path = str(Path(path).absolute())
    return DeltaTarget(path, tuple(sorted(storage.items())), int(version) if version else None)


def _partition_by(options: Any) -> tuple[str, ...]:
    return option_list(options.get("partitionBy") or "")


def _delta() -> Any:
    try:
        import deltalake
    except ImportError:
        raise ConfigError(
            "Delta tables need the package deltalake: pip install 'cometmq[delta]'"
        ) from None
    return deltalake
