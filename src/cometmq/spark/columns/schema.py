"""The columns of a message as a row: their names, their order, their types in Arrow and in Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cometmq.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""What Spark's ``timestamp`` is in Arrow; a record's milliseconds fit into it."""

_TYPES: Final[dict[str, tuple[pa.DataType, str]]] = {
    "topic": (pa.string(), "string"),
    "brokerName": (pa.string(), "string"),
    "queueId": (pa.int32(), "int"),
    "queueOffset": (pa.int64(), "bigint"),
    "msgId": (pa.string(), "string"),
    "keys": (pa.string(), "string"),
    "tags": (pa.string(), "string"),
    "body": (pa.binary(), "binary"),
    "properties": (pa.map_(pa.string(), pa.string()), "map<string,string>"),
    "bornTimestamp": (_TIMESTAMP, "timestamp"),
    "storeTimestamp": (_TIMESTAMP, "timestamp"),
    "bornHost": (pa.string(), "string"),
    "storeHost": (pa.string(), "string"),
    "sysFlag": (pa.int32(), "int"),
    "flag": (pa.int32(), "int"),
    "reconsumeTimes": (pa.int32(), "int"),
}
_LOG_TYPES: Final[dict[str, tuple[pa.DataType, str]]] = {
    "physicalOffset": (pa.int64(), "bigint"),
    "storedSize": (pa.int32(), "int"),
}
_ALL_TYPES: Final = _TYPES | _LOG_TYPES

COLUMNS: Final[tuple[str, ...]] = tuple(_TYPES)
LOG_COLUMNS: Final[tuple[str, ...]] = tuple(_LOG_TYPES)
"""Where a record lies in the log and what it takes there; for those who read log files, and ask for them by name."""

BODY: Final = "body"

NULLABLE: Final = frozenset(["keys", "tags"])
"""What a message need not have. Of the others Spark is told so, and spares itself a look at each value."""


def chosen_columns(
    columns: str | None, include_body: bool, extra: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The columns a reader asked for, in the order of ``COLUMNS``.

    Args:
        columns: names separated by commas, in any case; None or blank for all of them.
        include_body: False leaves the body out, whether or not it is named.
        extra: further columns that may be named, behind the others.

    Raises:
        UsageError: a name that is no column, or nothing left to read.
    """
    every = COLUMNS + extra
    by_lower_name = {name.lower(): name for name in every}
    asked = [part.strip() for part in (columns or "").split(",") if part.strip()]
    unknown = [name for name in asked if name.lower() not in by_lower_name]
    if unknown:
        raise UsageError(
            f"option columns names {', '.join(unknown)}; expected some of {', '.join(every)}"
        )
    wanted = {by_lower_name[name.lower()] for name in asked} or set(COLUMNS)
    if not include_body:
        wanted.discard(BODY)
    if not wanted:
        raise UsageError(
            "option columns names the body alone and includeBody is false, which leaves no column; "
            "change one of them"
        )
    return tuple(name for name in every if name in wanted)


def arrow_schema(columns: Sequence[str], nullable: Collection[str] = NULLABLE) -> pa.Schema:
    """Exactly what Spark derives from ``spark_schema``: it compares the two and refuses a difference."""
    return pa.schema(
        [pa.field(name, _ALL_TYPES[name][0], nullable=name in nullable) for name in columns]
    )


def spark_schema(columns: Sequence[str]) -> str:
    """The columns as Spark DDL."""
    return ", ".join(
        f"{name} {_ALL_TYPES[name][1]}{'' if name in NULLABLE else ' NOT NULL'}" for name in columns
    )


def nullable_columns(schema: StructType) -> frozenset[str]:
    """Those of a schema of Spark's in which it reckons with nulls, and those where it has to.

    A schema that a user gives has them everywhere, unless it says otherwise.
    """
    return NULLABLE | {field.name for field in schema.fields if field.nullable}


def as_asked(
    batches: Iterator[pa.RecordBatch], columns: Sequence[str], wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The same rows in the order and with the nullability of ``wanted``; they are made with ``columns``."""
    if arrow_schema(columns) == wanted:
        yield from batches
        return
    for batch in batches:
        arrays = [batch.column(name) for name in wanted.names]
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
