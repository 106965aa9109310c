"""Where the parts of many stored records lie, found for all of them at once by ``model.record_layout``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cometmq.base.errors import CometError
from cometmq.model.messages.record import BadRecord, read_record
from cometmq.model.messages.record_layout import (
    FIXED_BYTES_V4,
    HEAD_FIELDS,
    HOST_V4_BYTES,
    MAGIC_V1,
    MAGIC_V2,
    SIZE,
    STORED_AT,
    TAIL_FIELDS,
    TIMESTAMP,
    V6_EXTRA,
)

Ints = np.ndarray[Any, np.dtype[Any]]
Data = bytes | bytearray | memoryview

DATA_BYTES_MAX: Final = 2**31 - 1
"""Arrow's binary columns count bytes in 32 bits."""

_NUMPY: Final = {"i": ">i4", "I": ">u4", "q": ">i8"}


def big_endian(fields: Iterable[tuple[str, str]]) -> np.dtype[Any]:
    """The type of a structure whose fields are given by name and struct code."""
    return np.dtype([(name, _NUMPY[code]) for name, code in fields])


_HEAD: Final = big_endian(HEAD_FIELDS)
_TAIL: Final = big_endian(TAIL_FIELDS)
_LONG_BYTES: Final = 256
"""From so many a piece on its copying is what costs, and not its number."""


class UndecodableRecord(CometError):
    """Bytes that should be a record and are not. ``position`` is where they start in what was to be decoded."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"record at byte {position}: {reason}")
        self.position = position
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.position, self.reason)


@dataclass(slots=True)
class Frames:
    """Fields and places of the parts of some records; one element of each array per record."""

    starts: Ints
    sizes: Ints
    head: Ints
    born_host_bytes: Ints
    store_timestamps: Ints
    store_host_at: Ints
    store_host_bytes: Ints
    tail: Ints
    body_at: Ints
    topic_at: Ints
    topic_bytes: Ints
    properties_at: Ints
    origins: Ints
    """Where each record starts in what was handed in: for errors."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def ends(self) -> Ints:
        return self.starts + self.sizes

    def where(self, mask: Ints) -> Frames:
        """Only those records."""
        return Frames(*(getattr(self, field.name)[mask] for field in fields(self)))


def walk(data: Data) -> Ints:
    """The sizes of records one behind the other. A step per record: who knows the sizes passes them instead."""
    sizes: list[int] = []
    position, end = 0, len(data)
    while position < end:
        size = SIZE.unpack_from(data, position)[0] if end - position >= SIZE.size else 0
        if not FIXED_BYTES_V4 <= size <= end - position:
            raise UndecodableRecord(position, _reason(data, position, end - position))
        sizes.append(size)
        position += size
    return np.array(sizes, dtype=np.int64)


def locate(data: Data, starts: Ints, sizes: Ints) -> Frames:
    """
    Raises:
        UndecodableRecord: at the first of the records that is none.
    """
    plain = np.frombuffer(data, dtype=np.uint8)

    def check(good: Ints) -> None:
        if not good.all():
            first = int(np.argmin(good))
            position, size = int(starts[first]), int(sizes[first])
            raise UndecodableRecord(position, _reason(data, position, size))

    ends = starts + sizes
    check((starts >= 0) & (sizes >= FIXED_BYTES_V4) & (ends <= len(plain)))
    head = pick(plain, starts, _HEAD)
    magic = head["magic"]
    is_v2 = magic == MAGIC_V2
    check((head["size"] == sizes) & ((magic == MAGIC_V1) | is_v2))
    sys_flag = head["sys_flag"].astype(np.int64)
    born_extra = (sys_flag >> 4 & 1) * V6_EXTRA
    store_extra = (sys_flag >> 5 & 1) * V6_EXTRA
    stored_at = starts + STORED_AT + born_extra
    store_host_at = stored_at + TIMESTAMP.size
    tail_at = store_host_at + HOST_V4_BYTES + store_extra
    body_at = tail_at + _TAIL.itemsize
    check(body_at + 3 <= ends)
    tail = pick(plain, tail_at, _TAIL)
    body_bytes = tail["body_bytes"].astype(np.int64)
    topic_field = body_at + body_bytes
    topic_at = topic_field + 1 + is_v2
    check((body_bytes >= 0) & (topic_at + 2 <= ends))
    topic_bytes = plain[topic_field].astype(np.int64)
    if is_v2.any():
        topic_bytes = np.where(is_v2, topic_bytes << 8 | plain[topic_at - 1], topic_bytes)
    topic_end = topic_at + topic_bytes
    check(topic_end + 2 <= ends)
    properties_at = topic_end + 2
    properties_bytes = plain[topic_end].astype(np.int64) << 8 | plain[topic_end + 1]
    check(properties_at + properties_bytes == ends)
    return Frames(
        starts,
        sizes,
        head,
        born_extra + HOST_V4_BYTES,
        pick(plain, stored_at, np.dtype(_NUMPY["q"])),
        store_host_at,
        store_extra + HOST_V4_BYTES,
        tail,
        body_at,
        topic_at,
        topic_bytes,
        properties_at,
        starts,
    )


def spans(buffer: pa.Buffer, starts: Ints, ends: Ints) -> pa.Array:
    """The bytes from each start to its end, as a binary column.

    Starts and ends in turn are offsets of a column in which every other element is wanted, and ``take`` copies those.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    wanted = np.arange(0, 2 * count, 2, dtype=np.int32)
    if (starts[1:] < starts[:-1]).any():
        # Offsets must not fall from the first to the last, so they are put in order, and taken out of it.
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        wanted[order] = wanted.copy()
    offsets = np.empty(2 * count + 1, dtype=np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = offsets[-2]
    every = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(offsets), buffer])
    if int((ends - starts).sum()) < count * _LONG_BYTES:
        return every.take(pa.array(wanted))
    # ``take`` makes room for as many bytes as so many elements have on average, half of what is needed here, and copies
    # everything once more when that is full. With the last element, an empty one, behind each there is room enough.
    padded = np.full(2 * count, 2 * count - 1, dtype=np.int32)
    padded[0::2] = wanted
    _, taken, content = every.take(pa.array(padded)).buffers()
    bounds = np.frombuffer(taken, dtype=np.int32)[: 2 * count + 1 : 2].copy()
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), content])


def pick(plain: Ints, positions: Ints, kind: np.dtype[Any]) -> Ints:
    """What lies at each position, taken for ``kind``: one small copy each, wherever it starts."""
    width = kind.itemsize
    windows: Ints = np.ndarray(
        (max(len(plain) - width + 1, 0),),
        dtype=np.dtype((np.void, width)),
        buffer=plain,
        strides=(1,),
    )
    return windows[positions].view(kind)


def common(plain: Ints, starts: Ints, lengths: Ints) -> bytes | None:
    """What lies at every start, if it is the same everywhere; None if it is not, or nothing is asked for."""
    if not len(starts):
        return None
    length = int(lengths[0])
    if (lengths != length).any():
        return None
    if not length:
        return b""
    found = pick(plain, starts, np.dtype((np.void, length))).tobytes()
    first = found[:length]
    return first if found == first * len(starts) else None


def _reason(data: Data, position: int, size: int) -> str:
    """In the words of the decoder of single records."""
    if position < 0 or position >= len(data):
        return f"outside of the {len(data)} bytes at hand"
    try:
        found = read_record(memoryview(data)[: position + max(size, 0)], position, False)
    except BadRecord as error:
        return str(error)
    return f"a record of {found[4]} bytes where one of {size} was expected"
