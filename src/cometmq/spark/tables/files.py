"""Parquet files of a table, as a task writes them: one for each partition that its rows fall into.

A file counts only once a commit of its table names it, so a task may be run again or die half-way: what it left is not
in the table.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema

from cometmq.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROWS_PER_FILE_MAX: Final = 5_000_000
OPEN_FILES_MAX: Final = 64
"""A file is a buffer in memory. With more partitions in a task than this, some get several files."""

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")

PartitionValues = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A finished file: its name below the table's root, and what a commit must know of it."""

    name: str
    size_bytes: int
    row_count: int
    partition: PartitionValues


@dataclass
class FilesWritten(WriterCommitMessage):
    """What a task tells the driver. ``query_id`` is Spark's id of the streaming query, empty for a batch."""

    query_id: str
    files: list[DataFile]


def query_id_of(messages: Sequence[FilesWritten | None]) -> str:
    """The streaming query that all tasks of a micro-batch ran for."""
    found = {message.query_id for message in messages if message is not None}
    if len(found) != 1 or "" in found:
        raise UsageError(f"expected the id of one query from all tasks, got {sorted(found)}")
    return found.pop()


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The columns as they stand in files: times in UTC, whatever the session's zone is."""
    return to_arrow_schema(schema, timezone="UTC")


def for_new_table(schema: pa.Schema) -> pa.Schema:
    """With room for nulls everywhere, as Spark's own tables have it: who writes next may have some."""
    return pa.schema([field.with_nullable(True) for field in schema])


def batches_as(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What was read, in the types of ``schema``."""
    for batch in batches:
        yield from _cast(batch, schema).to_batches()


def check_partition_columns(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Raises UsageError for a column that is not there or whose values make no partitions."""
    for name in partition_by:
        if name not in schema.names:
            raise UsageError(
                f"partitionBy names {name!r}, which is no column; there are {', '.join(schema.names)}"
            )
        kind = schema.field(name).type
        if not (
            pa.types.is_string(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_date32(kind)
        ):
            raise UsageError(
                f"partitionBy {name}: expected a column of text, whole numbers, booleans or dates, not {kind}"
            )
    if len(partition_by) == len(schema.names):
        raise UsageError("partitionBy names all columns; leave one for the files")


def write_files(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    partition_by: Sequence[str],
    keeps_partition_columns: bool,
    open_file: Callable[[str], Any],
    remove: Callable[[str], None],
) -> list[DataFile]:
    """Write all rows; the finished files. On any error those written so far are removed, as well as can be."""
    writers = _Writers(schema, partition_by, keeps_partition_columns, open_file)
    try:
        for batch in batches:
            if batch.num_rows:
                for values, part in _parts(_cast(batch, schema), partition_by):
                    writers.write(values, part)
        return writers.finish()
    except BaseException:
        for name in writers.abandon():
            try:
                remove(name)
            except OSError:
                # The error that brought us here tells more. What stays is in no commit.
                continue
        raise


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([batch]).cast(schema)


class _Writers:
    """The open files of a task, the one written to last at the end."""

    def __init__(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        keeps_partition_columns: bool,
        open_file: Callable[[str], Any],
    ) -> None:
        self._partition_by = partition_by
        self._dropped = [] if keeps_partition_columns else list(partition_by)
        kept = [field for field in schema if field.name not in self._dropped]
        self._schema = pa.schema(kept)
        self._open_file = open_file
        self._open: OrderedDict[PartitionValues, _OpenFile] = OrderedDict()
        self._done: list[DataFile] = []

    def write(self, values: PartitionValues, rows: pa.Table) -> None:
        file = self._open.get(values)
        if file is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
            name = _file_name(self._partition_by, values)
            file = self._open[values] = _OpenFile(name, self._open_file(name), self._schema)
        self._open.move_to_end(values)
        file.write(rows.select(self._schema.names))
        if file.row_count >= ROWS_PER_FILE_MAX:
            self._close(values)

    def finish(self) -> list[DataFile]:
        for values in list(self._open):
            self._close(values)
        return self._done

    def abandon(self) -> list[str]:
        """Close what is open; the names of everything that was begun."""
        names = [file.name for file in self._done] + [file.name for file in self._open.values()]
        for file in self._open.values():
            file.abandon()
        return names

    def _close(self, values: PartitionValues) -> None:
        file = self._open.pop(values)
        self._done.append(DataFile(file.name, file.close(), file.row_count, values))


class _OpenFile:
    def __init__(self, name: str, stream: Any, schema: pa.Schema) -> None:
        self.name = name
        self.row_count = 0
        self._stream = stream
        self._writer = pq.ParquetWriter(stream, schema, compression="zstd", compression_level=1)

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows)
        self.row_count += rows.num_rows

    def close(self) -> int:
        """The size in bytes."""
        self._writer.close()
        size_bytes = int(self._stream.tell())
        self._stream.close()
        return size_bytes

    def abandon(self) -> None:
        try:
            self._writer.close()
            self._stream.close()
        except (OSError, pa.ArrowException):
            # It is removed next; the first error is the one that counts.
            return


def _parts(
    rows: pa.Table, partition_by: Sequence[str]
) -> Iterator[tuple[PartitionValues, pa.Table]]:
    if not partition_by:
        yield (), rows
        return
    for key in rows.group_by(list(partition_by)).aggregate([]).to_pylist():
        mask = None
        for name in partition_by:
            column = rows.column(name)
            same = (
                pc.is_null(column)
                if key[name] is None
                else pc.fill_null(pc.equal(column, key[name]), False)
            )
            mask = same if mask is None else pc.and_(mask, same)
        yield tuple(_as_text(key[name]) for name in partition_by), rows.filter(mask)


def _as_text(value: object) -> str | None:
    """A partition value as Delta's log holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _file_name(partition_by: Sequence[str], values: PartitionValues) -> str:
    """Directories are for people: readers take the values from the log, so odd characters need not survive."""
    directories = [
        f"{name}={_UNSAFE.sub('_', value) if value else '_null_'}/"
        for name, value in zip(partition_by, values, strict=True)
    ]
    return f"{''.join(directories)}part-{uuid.uuid4().hex}.parquet"
