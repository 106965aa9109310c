"""Rows as messages: what each column becomes, and what makes one row another than the next. No I/O.

    body           binary or string; must be there
    topic          string; the option ``topic`` counts more
    keys           string (blanks separate keys), or array of strings
    tags           string
    properties     map of strings; names that belong to RocketMQ are left out, so that what was read can be written
    delayLevel     int; a level of RocketMQ's, 0 for none
    deliverTime    timestamp, or bigint of milliseconds; when to deliver, unless there is a delay level
    shardingKey    any simple type; rows with the same value go to the same queue, in the order of the rows

The other columns of the source ``rocketmq`` may be there and are not written; any further column is a mistake.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cometmq.model.messages.properties import (
    DELAY,
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    RESERVED,
    SHARDING_KEY,
    TAGS,
    TEXT_BYTES_MAX,
    TIMER_DELIVER_MS,
)
from cometmq.spark.columns.schema import COLUMNS
from cometmq.spark.sink.sink_errors import BadRow
from cometmq.spark.sink.sink_options import SinkOptions

TEXT_BYTES_LEFT: Final = TEXT_BYTES_MAX - 512
"""For the properties of a row: the rest is for its key, the mark of the sink, and what the broker adds."""

_OF_SYSTEM: Final = RESERVED | {SHARDING_KEY}


class SinkRow(NamedTuple):
    topic: str
    body: memoryview
    text: str
    """All properties but the unique key."""
    sharding: str | None
    is_delayed: bool
    identity: str | None
    """What the id column says."""


class RowReader:
    """Makes rows of Arrow batches of one schema.

    Raises:
        BadRow: a column that must be there is not, one that may not is, or one is of a type that cannot be used.
    """

    def __init__(self, schema: pa.Schema, options: SinkOptions) -> None:
        self._topic = options.topic
        columns = options.columns
        names: dict[str, str] = {
            "body": columns.body,
            "topic": columns.topic,
            "keys": columns.keys,
            "tags": columns.tags,
            "properties": columns.properties,
            "delay_level": columns.delay_level,
            "deliver_time": columns.deliver_time,
            "sharding": columns.sharding,
            "id": columns.id,
        }
        self._at: dict[str, int] = {}
        for part, name in names.items():
            found = schema.get_all_field_indices(name) if name else []
            if len(found) == 1:
                self._at[part] = found[0]
                _check_type(part, name, schema.field(found[0]).type)
            elif found or part in options.given_columns:
                raise BadRow(
                    f"expected one column {name!r} for {part}, found {len(found)} in {schema.names}"
                )
        if "body" not in self._at:
            raise BadRow(
                f"expected a column {columns.body!r} with the body (option bodyColumn), found {schema.names}"
            )
        if not self._topic and "topic" not in self._at:
            raise BadRow(
                f"expected the option topic, or a column {columns.topic!r} (option topicColumn), found {schema.names}"
            )
        if self._topic:
            self._at.pop("topic", None)
        used = set(names.values()) | set(COLUMNS)
        if unknown := [name for name in schema.names if name not in used]:
            raise BadRow(
                f"column {', '.join(unknown)}: is no part of a message; drop it, or rename it to one of "
                f"{', '.join(name for name in names.values() if name)}"
            )

    def topics(self, batch: pa.RecordBatch) -> list[str]:
        """Of its rows, each once. Rows without one are told by ``rows``."""
        if self._topic:
            return [self._topic]
        found = pc.unique(batch.column(self._at["topic"])).to_pylist()
        return [topic for topic in found if topic]

    def rows(self, batch: pa.RecordBatch) -> Iterator[SinkRow]:
        """Raises BadRow at the first row that can never be a message."""
        count = batch.num_rows
        bodies = _bodies(batch.column(self._at["body"]))
        topics = self._values(batch, "topic", _plain) or [self._topic] * count
        parts = [
            part
            for part in (
                self._texts(batch, "tags", lambda values: [_pair(TAGS, v) for v in _plain(values)]),
                self._texts(batch, "keys", _key_texts),
                self._texts(batch, "delay_level", _delay_texts),
                self._texts(batch, "deliver_time", _deliver_texts),
                self._texts(batch, "properties", _property_texts),
            )
            if part is not None
        ]
        shardings = self._values(batch, "sharding", _sharding_texts)
        identities = self._values(batch, "id", _sharding_texts)
        if not parts and shardings is None and identities is None:
            # Nothing but bodies: the same text for all.
            for topic, body in zip(topics, bodies, strict=True):
                yield SinkRow(_topic(topic), body, "", None, False, None)
            return
        nothing: list[Any] = [None] * count
        delayed = self._is_delayed(batch)
        for index, (topic, body, sharding, identity) in enumerate(
            zip(topics, bodies, shardings or nothing, identities or nothing, strict=True)
        ):
            text = "".join([part[index] for part in parts])
            if sharding is not None:
                text += _pair(SHARDING_KEY, sharding)
            if len(text) > TEXT_BYTES_LEFT // 4 and len(text.encode()) > TEXT_BYTES_LEFT:
                raise BadRow(
                    f"tags, keys and properties of {len(text.encode())} bytes; expected at most {TEXT_BYTES_LEFT}"
                )
            yield SinkRow(_topic(topic), body, text, sharding, delayed[index], identity)

    def _is_delayed(self, batch: pa.RecordBatch) -> Sequence[bool]:
        flags = np.zeros(batch.num_rows, dtype=bool)
        for part in ("delay_level", "deliver_time"):
            if part in self._at:
                values = batch.column(self._at[part])
                set_values = pc.fill_null(pc.cast(values, pa.int64()), 0)
                flags |= np.asarray(set_values) > 0
        found: list[bool] = flags.tolist()
        return found

    def _values(
        self, batch: pa.RecordBatch, part: str, read: Callable[[pa.Array], list[Any]]
    ) -> list[Any] | None:
        return read(batch.column(self._at[part])) if part in self._at else None

    def _texts(
        self, batch: pa.RecordBatch, part: str, read: Callable[[pa.Array], list[str]]
    ) -> list[str] | None:
        if part not in self._at or batch.column(self._at[part]).null_count == batch.num_rows:
            return None
        return read(batch.column(self._at[part]))


def _bodies(column: pa.Array) -> Iterator[memoryview]:
    if column.null_count:
        raise BadRow("body is null; expected bytes or a text, fill it in or leave the row out")
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    offset_type = "=i8" if is_large else "=i4"
    _, offset_buffer, data_buffer = column.buffers()
    if len(column) == 0:
        return
    offsets = np.frombuffer(offset_buffer, offset_type)[
        column.offset : column.offset + len(column) + 1
    ].tolist()
    data = memoryview(data_buffer) if data_buffer is not None else memoryview(b"")
    start = offsets[0]
    for end in offsets[1:]:
        if start == end:
            raise BadRow("body is empty; RocketMQ takes none, leave the row out")
        yield data[start:end]
        start = end


def _plain(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _topic(topic: str | None) -> str:
    if not topic:
        raise BadRow("topic is null or empty; expected a name, or give the option topic")
    return topic


def _pair(name: str, value: str | None) -> str:
    if not value:
        return ""
    if NAME_SEPARATOR in value or PAIR_SEPARATOR in value:
        raise BadRow(f"{name} {value!r} holds \\x01 or \\x02, which separate properties")
    return f"{name}{NAME_SEPARATOR}{value}{PAIR_SEPARATOR}"


def _key_texts(column: pa.Array) -> list[str]:
    return [
        _pair(KEYS, value if isinstance(value, str) or value is None else " ".join(value))
        for value in column.to_pylist()
    ]


def _delay_texts(column: pa.Array) -> list[str]:
    texts: list[str] = []
    for level in column.to_pylist():
        if level is not None and level < 0:
            raise BadRow(f"delay level {level}; expected 0 for none, or a level from 1 on")
        texts.append(_pair(DELAY, str(level)) if level else "")
    return texts


def _deliver_texts(column: pa.Array) -> list[str]:
    return [
        _pair(TIMER_DELIVER_MS, str(value)) if value and value > 0 else ""
        for value in _milliseconds(column).to_pylist()
    ]


def _milliseconds(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return pc.cast(
            pc.cast(column, pa.timestamp("ms", tz=column.type.tz), safe=False), pa.int64()
        )
    return column


def _property_texts(column: pa.Array) -> list[str]:
    texts: list[str] = []
    for pairs in column.to_pylist():
        text = ""
        for name, value in pairs or ():
            if name in _OF_SYSTEM or value is None:
                continue
            if not name or NAME_SEPARATOR in name or PAIR_SEPARATOR in name:
                raise BadRow(f"property name {name!r} is empty or holds \\x01 or \\x02")
            text += _pair(name, value)
        texts.append(text)
    return texts


def _sharding_texts(column: pa.Array) -> list[str | None]:
    texts: list[str | None] = []
    for value in column.to_pylist():
        if value is None or isinstance(value, str):
            texts.append(value or None)
        elif isinstance(value, bytes):
            texts.append(value.hex())
        elif isinstance(value, datetime.datetime | datetime.date):
            texts.append(value.isoformat())
        else:
            texts.append(str(value))
    return texts


def _check_type(part: str, name: str, kind: pa.DataType) -> None:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    is_whole = pa.types.is_integer(kind)
    fits, expected = {
        "body": (is_text or is_bytes, "binary or string"),
        "topic": (is_text, "string"),
        "keys": (is_text or _is_list_of_text(kind), "string or array<string>"),
        "tags": (is_text, "string"),
        "properties": (_is_map_of_text(kind), "map<string,string>"),
        "delay_level": (is_whole, "int"),
        "deliver_time": (is_whole or pa.types.is_timestamp(kind), "timestamp or bigint"),
        "sharding": (not pa.types.is_nested(kind), "a simple type"),
        "id": (not pa.types.is_nested(kind), "a simple type"),
    }[part]
    if not fits:
        raise BadRow(f"column {name!r}: expected {expected}, found {kind}")


def _is_list_of_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_string(kind.value_type))


def _is_map_of_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_map(kind)
        and pa.types.is_string(kind.key_type)
        and pa.types.is_string(kind.item_type)
    )
