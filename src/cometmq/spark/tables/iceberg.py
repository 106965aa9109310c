"""Iceberg tables without a Java library: the data source ``cometmq-iceberg``, through ``pyiceberg``.

The snapshot of a micro-batch names the query and the batch. The table's properties remember the last batch of each
query, since snapshots expire: a batch that comes again finds itself there (``table_source``).

Options: ``table`` as namespace.name; ``catalog``, its name, "default" if not given; ``catalog.NAME`` for what it needs
(``catalog.type``, ``catalog.uri``, ``catalog.warehouse`` ...); ``partitionBy``, columns divided by commas; ``snapshot``
to read an older state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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

FORMAT: Final = "cometmq-iceberg"
QUERY_PROPERTY: Final = "cometmq.query-id"
BATCH_PROPERTY: Final = "cometmq.batch-id"
LAST_BATCH_PREFIX: Final = "cometmq.last-batch."
_COMMIT_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """Which table of which catalog. The catalog's properties may hold secrets and are in no text."""

    table: str
    catalog: str
    catalog_properties: tuple[tuple[str, str], ...]
    snapshot: int | None = None

    def __repr__(self) -> str:
        return f"IcebergTarget({self.table!r})"

    def open_catalog(self) -> Any:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise ConfigError(
                "Iceberg tables need the package pyiceberg: pip install 'cometmq[iceberg]'"
            ) from None
        return load_catalog(self.catalog, **dict(self.catalog_properties))

    def open(self) -> Any:
        """Raises ConfigError when there is no such table."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.open_catalog().load_table(self.table)
        except NoSuchTableError:
            raise ConfigError(f"the catalog has no Iceberg table {self.table}") from None

    def open_or_create(self, schema: pa.Schema, partition_by: Sequence[str]) -> Any:
        from pyiceberg.exceptions import (
            NamespaceAlreadyExistsError,
            NoSuchTableError,
            TableAlreadyExistsError,
        )

        catalog = self.open_catalog()
        try:
            return catalog.load_table(self.table)
        except NoSuchTableError:
            pass
        try:
            catalog.create_namespace(self.table.rpartition(".")[0])
        except NamespaceAlreadyExistsError:
            pass
        try:
            with (
                catalog.create_table_transaction(
                    self.table, schema=for_new_table(schema)
                ) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in partition_by:
                    spec.add_identity(name)
        except TableAlreadyExistsError:
            # Another writer was quicker; what it made is checked like any other.
            pass
        return catalog.load_table(self.table)


class IcebergDataSource(TableDataSource):
    """Registered under ``cometmq-iceberg``."""

    FORMAT = FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        return IcebergReader(_target(self.options), schema)

    def _columns(self) -> pa.Schema:
        return _arrow_schema(_target(self.options).open())

    def _work(self, schema: StructType, overwrite: bool) -> IcebergWork:
        return IcebergWork(
            _target(self.options), schema, partition_columns(self.options), overwrite
        )


class IcebergWork(TableWork):
    # Iceberg takes partition values from the statistics of the column itself.
    KEEPS_PARTITION_COLUMNS = True

    def __init__(
        self,
        target: IcebergTarget,
        schema: StructType,
        partition_by: Sequence[str],
        overwrite: bool,
    ) -> None:
        super().__init__(schema, partition_by, overwrite)
        self._target = target
        table = target.open_or_create(self._schema, partition_by)
        _check_same(table, self._schema, partition_by)
        self._io = table.io
        self._location = f"{table.location()}/data"

    def _storage(self) -> Storage:
        return Storage(
            lambda name: self._io.new_output(self._path(name)).create(),
            lambda name: self._io.delete(self._path(name)),
        )

    def _path(self, name: str) -> str:
        return f"{self._location}/{name}"

    def _commit(self, files: Sequence[DataFile], transaction: Transaction | None) -> bool:
        paths = [self._path(file.name) for file in files]
        return commit(self._target, paths, overwrite=self._overwrite, transaction=transaction)


def commit(
    target: IcebergTarget,
    paths: Sequence[str],
    *,
    overwrite: bool,
    transaction: Transaction | None,
) -> bool:
    """Add files to the table. False if this batch of this query is in it already.

    Raises:
        pyiceberg's CommitFailedException: others changed the table at every attempt.
    """
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.expressions import AlwaysTrue

    for attempt in range(1, _COMMIT_ATTEMPTS + 1):
        table = target.open()
        if transaction is not None and _last_batch(table, transaction[0]) >= transaction[1]:
            return False
        if not paths and not overwrite:
            return True
        try:
            with table.transaction() as change:
                snapshot = {}
                if transaction is not None:
                    query_id, batch_id = transaction
                    snapshot = {QUERY_PROPERTY: query_id, BATCH_PROPERTY: str(batch_id)}
                    change.set_properties({LAST_BATCH_PREFIX + query_id: str(batch_id)})
                if overwrite and table.current_snapshot() is not None:
                    change.delete(AlwaysTrue(), snapshot_properties=snapshot)
                if paths:
                    # Names are random, so looking for them among all files of the table is in vain.
                    change.add_files(
                        list(paths), snapshot_properties=snapshot, check_duplicate_files=False
                    )
            return True
        except CommitFailedException:
            if attempt == _COMMIT_ATTEMPTS:
                raise
    raise AssertionError("the loop returns or raises")


def _last_batch(table: Any, query_id: str) -> int:
    """The last batch of a query that the table has; -1 for none."""
    return int(table.properties.get(LAST_BATCH_PREFIX + query_id, -1))


@dataclass
class _IcebergFiles(InputPartition):
    tasks: tuple[Any, ...]


class IcebergReader(DataSourceReader):
    """One snapshot of the table, some of its files for each task."""

    def __init__(self, target: IcebergTarget, schema: StructType) -> None:
        self._schema = arrow_schema_of(schema)
        self._target = target
        table = target.open()
        # Not the scan itself: it knows its catalog, which cannot be sent to a task.
        self._projection = table.scan(snapshot_id=target.snapshot).projection()
        self._metadata, self._io = table.metadata, table.io

    def partitions(self) -> Sequence[InputPartition]:
        scan = self._target.open().scan(snapshot_id=self._target.snapshot)
        return [_IcebergFiles((task,)) for task in scan.plan_files()] or [_IcebergFiles(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        if not isinstance(partition, _IcebergFiles) or not partition.tasks:
            return
        scan = ArrowScan(self._metadata, self._io, self._projection, AlwaysTrue())
        yield from batches_as(scan.to_record_batches(partition.tasks), self._schema)


def _check_same(table: Any, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import IdentityTransform

    found = {field.name for field in schema_to_pyarrow(table.schema())}
    wanted = set(schema.names)
    if found != wanted:
        raise ConfigError(
            f"the rows do not fit the Iceberg table: it has {', '.join(sorted(found - wanted)) or 'nothing'} "
            f"that they lack, they have {', '.join(sorted(wanted - found)) or 'nothing'} that it lacks. "
            "Change the query, or write to another table"
        )
    names = {field.field_id: field.name for field in table.schema().fields}
    fields = table.spec().fields
    there = [names.get(field.source_id, "?") for field in fields]
    if there != list(partition_by) or not all(
        isinstance(field.transform, IdentityTransform) for field in fields
    ):
        raise ConfigError(
            f"the Iceberg table is partitioned by {table.spec()}, not by the values of "
            f"{', '.join(partition_by) or 'nothing'}; set partitionBy to the same"
        )


def _arrow_schema(table: Any) -> pa.Schema:
    """Columns of a table in the types that Spark takes: no large ones."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    return pa.schema(
        [pa.field(field.name, _small(field.type)) for field in schema_to_pyarrow(table.schema())]
    )


def _small(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_small(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_small(kind.key_type), _small(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _small(each.type)) for each in kind])
    return kind


def _target(options: Mapping[str, str]) -> IcebergTarget:
    table = needed_option(options, "table", FORMAT)
    if "." not in table:
        raise ConfigError(f"option table: expected namespace.name, got {table!r}")
    return IcebergTarget(
        table,
        options.get("catalog") or "default",
        options_below(options, "catalog."),
        number_option(options, "snapshot"),
    )
