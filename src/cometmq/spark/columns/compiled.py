"""Columns made by the compiled twin ``native.rows``: the same as ``decode`` makes, or none at all.

The twin gives buffers, and they become Arrow arrays here. Where it has found a record that is not usual, ``batch_of``
gives None, and ``decode`` does all of it: damage is told in its words only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cometmq.model.address import host_text
from cometmq.native.choice import twin
from cometmq.spark.columns.frames import Data, Ints
from cometmq.spark.columns.schema import arrow_schema
from cometmq.spark.columns.texts import hosts_v4, repeated

_rows = twin("rows")

_FROM_PROPERTIES: Final = frozenset(["msgId", "keys", "tags", "properties"])
_OFFSET_MIN: Final = -(2**63)
_OFFSET_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows and columns are made of records; see ``decode.decode``."""

    columns: tuple[str, ...]
    broker_name: str
    first_offset: int | None = None
    last_offset: int | None = None
    tags: Sequence[str] | None = None


def batch_of(
    data: Data, starts: Ints, sizes: Ints, wanted: Wanted, physical_offsets: Ints | None
) -> pa.RecordBatch | None:
    """As ``decode.decode_python``; None without a twin, and where a record has to be seen by Python."""
    if _rows is None:
        return None
    columns, tags = wanted.columns, wanted.tags
    found = _rows.find(
        data,
        _int64(starts),
        _int64(sizes),
        None if physical_offsets is None else _int64(physical_offsets),
        _OFFSET_MIN if wanted.first_offset is None else wanted.first_offset,
        _OFFSET_MAX if wanted.last_offset is None else wanted.last_offset,
        tags is not None or not _FROM_PROPERTIES.isdisjoint(columns),
        "body" in columns,
    )
    if found is None:
        return None
    if tags is not None:
        is_wanted = pc.is_in(_texts(found, "tags"), value_set=pa.array(tags, pa.string()))
        found.keep(is_wanted.cast(pa.uint8()).to_numpy())
    schema = arrow_schema(columns)
    arrays = []
    for field in schema:
        column = _column(found, field.name, field.type, wanted.broker_name)
        if column is None:
            return None
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _int64(numbers: Ints) -> Ints:
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _column(found: Any, name: str, kind: pa.DataType, broker_name: str) -> pa.Array | None:
    if name == "brokerName":
        return repeated(broker_name, found.count)
    if name == "topic":
        topic = found.common(name)
        return _texts(found, name) if topic is None else repeated(topic.decode(), found.count)
    if name in ("bornHost", "storeHost"):
        return _hosts(found, name)
    if name in ("body", "msgId", "keys", "tags"):
        return _texts(found, name, kind)
    if name == "properties":
        return _pairs(found)
    return pa.Array.from_buffers(kind, found.count, [None, pa.py_buffer(found.numbers(name))])


def _texts(found: Any, name: str, kind: pa.DataType | None = None) -> pa.Array:
    offsets, content, bits, missing = found.texts(name)
    buffers = [
        pa.py_buffer(bits) if missing else None,
        pa.py_buffer(offsets),
        pa.py_buffer(content),
    ]
    return pa.Array.from_buffers(kind or pa.string(), found.count, buffers, missing)


def _hosts(found: Any, name: str) -> pa.Array | None:
    only = found.common(name)
    if only is not None:
        return repeated(host_text(only), found.count)
    stored = found.hosts(name)
    return None if stored is None else hosts_v4(np.frombuffer(stored, dtype=np.int64))


def _pairs(found: Any) -> pa.Array:
    bounds, count = found.pair_bounds()
    names, values = (
        pa.Array.from_buffers(
            pa.string(), count, [None, *map(pa.py_buffer, found.pair_texts(are_values))]
        )
        for are_values in (False, True)
    )
    offsets = pa.Array.from_buffers(pa.int32(), found.count + 1, [None, pa.py_buffer(bounds)])
    return pa.MapArray.from_arrays(offsets, names, values)
