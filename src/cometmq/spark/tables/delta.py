"""Delta tables without a Java library: the data source ``cometmq-delta``, reading and writing through ``deltalake``.

A micro-batch is committed together with an application transaction, in which a batch that comes again finds its number
(``table_source``).

Options: ``path``; ``partitionBy``, columns divided by commas; ``version`` of the table to read; ``storage.NAME`` for
what the object store needs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from cometmq.base.errors import ConfigError
from cometmq.spark.tables.files import DataFile, arrow_schema_of, batches_as, for_new_table
from cometmq.spark.tables.table_options import (
    needed_option,
    number_option,
    options_below,
    partition_columns,
)
from cometmq.spark.tables.table_source import Storage, TableDataSource, TableWork, Transaction

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "cometmq-delta"


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


class DeltaDataSource(TableDataSource):
    """Registered under ``cometmq-delta``."""

    FORMAT = FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        return DeltaReader(_target(self.options), schema)

    def _columns(self) -> pa.Schema:
        return _arrow_schema(_target(self.options).open())

    def _work(self, schema: StructType, overwrite: bool) -> DeltaWork:
        return DeltaWork(_target(self.options), schema, partition_columns(self.options), overwrite)


class DeltaWork(TableWork):
    KEEPS_PARTITION_COLUMNS = False

    def __init__(
        self, target: DeltaTarget, schema: StructType, partition_by: Sequence[str], overwrite: bool
    ) -> None:
        super().__init__(schema, partition_by, overwrite)
        self._target = target
        if "://" not in target.uri:
            # What opens the table's file system wants the directory to be there.
            Path(target.uri).mkdir(parents=True, exist_ok=True)

    def _storage(self) -> Storage:
        filesystem = self._target.filesystem()
        return Storage(
            lambda name: filesystem.open_output_stream(name, compression=None),
            filesystem.delete_file,
        )

    def _commit(self, files: Sequence[DataFile], transaction: Transaction | None) -> bool:
        return commit(
            self._target,
            self._schema,
            self._partition_by,
            files,
            overwrite=self._overwrite,
            transaction=transaction,
        )


def commit(
    target: DeltaTarget,
    schema: pa.Schema,
    partition_by: Sequence[str],
    files: Sequence[DataFile],
    *,
    overwrite: bool,
    transaction: Transaction | None,
) -> bool:
    """Add files to the table, which is made if need be. False if the transaction is in it already.

    Raises:
        ConfigError: the table has other columns or partitions.
    """
    from deltalake import transaction as delta

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
        properties = delta.CommitProperties(app_transactions=[delta.Transaction(*transaction)])
    if not files and not overwrite:
        return True
    now_ms = int(time.time() * 1000)
    actions = [
        delta.AddAction(
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
                yield from batches_as(fragment.to_batches(schema=dataset.schema), self._schema)


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


def _target(options: Mapping[str, str]) -> DeltaTarget:
    path = needed_option(options, "path", FORMAT)
    if "://" not in path:
        # Workers may have another working directory.
        path = str(Path(path).absolute())
    return DeltaTarget(path, options_below(options, "storage."), number_option(options, "version"))


def _delta() -> Any:
    try:
        import deltalake
    except ImportError:
        raise ConfigError(
            "Delta tables need the package deltalake: pip install 'cometmq[delta]'"
        ) from None
    return deltalake
