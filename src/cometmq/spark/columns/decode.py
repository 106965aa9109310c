"""Stored records into Arrow columns, without a step of Python per message.

``frames`` finds the parts of all records at once, bodies and texts are copied by one ``take`` each, and
``property_columns`` cuts the properties. Only compressed bodies and inner batches cost a step each, and each distinct
host is put into words once.

A body that cannot be unpacked is a row like the others, with what is stored as its body and the reason among its
properties: whoever can send a message could stop every query otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.address import host_text
from cometmq.model.flags import SysFlag
from cometmq.model.messages.batch import decode_batch
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.compression import decompress
from cometmq.model.messages.properties import BODY_ERROR, KEYS, TAGS, UNIQ_KEY
from cometmq.model.messages.record import decode_record, encode_record
from cometmq.model.messages.record_layout import BORN_HOST_AT, HOST_V4_BYTES, HOST_V6_BYTES
from cometmq.model.subscription import build_subscription
from cometmq.spark.columns.compiled import Wanted, batch_of
from cometmq.spark.columns.frames import (
    DATA_BYTES_MAX,
    Data,
    Frames,
    Ints,
    UndecodableRecord,
    common,
    locate,
    pick,
    spans,
    walk,
)
from cometmq.spark.columns.property_columns import PropertyColumns
from cometmq.spark.columns.schema import arrow_schema
from cometmq.spark.columns.texts import hosts_v4, repeated

__all__ = ["UndecodableRecord", "decode", "decode_at"]

_INNER: Final = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_COMPRESSED: Final = int(SysFlag.COMPRESSED)
_FROM_PROPERTIES: Final = frozenset(["msgId", "keys", "tags", "properties"])
_MILLISECONDS_MAX: Final = (2**63 - 1) // 1000
_HEX: Final = np.frombuffer(b"".join(b"%02X" % byte for byte in range(256)), dtype="S2")


def decode(
    data: Data,
    sizes: Ints | None,
    columns: Sequence[str],
    broker_name: str,
    *,
    first_offset: int | None = None,
    last_offset: int | None = None,
    tag: str | None = None,
    check_crc: bool = False,
) -> pa.RecordBatch:
    """Rows of the records in ``data``, one behind the other, in their order.

    Args:
        sizes: the length of each record; None when not known, which costs a step per record.
        columns: some of ``schema.COLUMNS``, in that order.
        first_offset: records of a smaller queue offset are left out.
        last_offset: records of a greater queue offset are left out (this one is still in).
        tag: a tag, or several joined by ``||``: others are left out; None or ``*`` for all.
        check_crc: compare each body with its checksum, which costs a step per record.

    Raises:
        UndecodableRecord: bytes that are no record, or a body that does not match its checksum.
    """
    lengths = walk(data) if sizes is None else np.asarray(sizes, dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    end = int(lengths.sum())
    if end != len(data):
        raise UndecodableRecord(end, f"sizes sum up to {end} bytes, {len(data)} are at hand")
    return decode_at(
        data,
        starts,
        lengths,
        columns,
        broker_name,
        first_offset=first_offset,
        last_offset=last_offset,
        tag=tag,
        check_crc=check_crc,
    )


def decode_at(
    data: Data,
    starts: Ints,
    sizes: Ints,
    columns: Sequence[str],
    broker_name: str,
    *,
    first_offset: int | None = None,
    last_offset: int | None = None,
    tag: str | None = None,
    check_crc: bool = False,
    physical_offsets: Ints | None = None,
) -> pa.RecordBatch:
    """As ``decode``, of records that start at the given positions of ``data``, with anything between them.

    Args:
        physical_offsets: where each record lies in its log; one that says something else of itself is refused.
    """
    assert len(data) <= DATA_BYTES_MAX, len(data)
    wanted = Wanted(tuple(columns), broker_name, first_offset, last_offset, _tags(tag))
    if not check_crc:
        made = batch_of(data, starts, sizes, wanted, physical_offsets)
        if made is not None:
            return made
    return decode_python(data, starts, sizes, wanted, check_crc, physical_offsets)


def decode_python(
    data: Data,
    starts: Ints,
    sizes: Ints,
    wanted: Wanted,
    check_crc: bool = False,
    physical_offsets: Ints | None = None,
) -> pa.RecordBatch:
    """What ``decode_at`` says of all records, those included that the compiled twin leaves to others."""
    frames = locate(data, starts, sizes)
    if physical_offsets is not None:
        _check_places(frames, physical_offsets)
    if check_crc:
        _check_crc(data, frames)
    is_inner = frames.head["sys_flag"] & _INNER == _INNER
    errors: dict[int, str] = {}
    if is_inner.any():
        data, frames = _unwrapped(data, frames, is_inner, errors)
    frames = _within(frames, wanted.first_offset, wanted.last_offset)
    return _Columns(data, frames, wanted.broker_name, errors).batch(wanted.columns, wanted.tags)


class _Columns:
    """The columns of some records, each made when it is asked for.

    Args:
        errors: why bodies are not unpacked, by the origin of their record.
    """

    def __init__(
        self, data: Data, frames: Frames, broker_name: str, errors: dict[int, str]
    ) -> None:
        self._errors = errors
        self._data = data
        self._buffer = pa.py_buffer(data)
        self._plain = np.frombuffer(data, dtype=np.uint8)
        self._frames = frames
        self._broker_name = broker_name
        self._makers: dict[str, Callable[[], pa.Array]] = {
            "topic": self._topic,
            "brokerName": lambda: self._repeated(broker_name),
            "queueId": lambda: self._int32("queue_id"),
            "queueOffset": lambda: pa.array(self._frames.head["queue_offset"].astype(np.int64)),
            "msgId": self._message_id,
            "keys": lambda: self._properties.value(KEYS),
            "tags": lambda: self._properties.value(TAGS),
            "body": self._body,
            "properties": self._property_map,
            "bornTimestamp": lambda: _timestamps(self._frames.head["born_timestamp"]),
            "storeTimestamp": lambda: _timestamps(self._frames.store_timestamps),
            "bornHost": lambda: self._host_texts(
                self._frames.starts + BORN_HOST_AT, self._frames.born_host_bytes
            ),
            "storeHost": lambda: self._host_texts(
                self._frames.store_host_at, self._frames.store_host_bytes
            ),
            "sysFlag": lambda: self._int32("sys_flag"),
            "flag": lambda: self._int32("flag"),
            "reconsumeTimes": lambda: pa.array(
                self._frames.tail["reconsume_times"].astype(np.int32)
            ),
            "physicalOffset": lambda: pa.array(
                self._frames.head["physical_offset"].astype(np.int64)
            ),
            "storedSize": lambda: self._int32("size"),
        }

    def batch(self, columns: Sequence[str], tags: Sequence[str] | None) -> pa.RecordBatch:
        if tags is not None or not _FROM_PROPERTIES.isdisjoint(columns):
            self._properties = self._parsed_properties()
        if tags is not None:
            is_wanted = pc.is_in(self._properties.value(TAGS), value_set=pa.array(tags))
            if not pc.all(is_wanted, min_count=0).as_py():
                self._frames = self._frames.where(is_wanted.to_numpy(zero_copy_only=False))
                self._properties = self._parsed_properties()
        # The body before the properties, which tell of bodies that are not unpacked.
        arrays = [self._makers[name]() for name in columns]
        # They hold this object and it holds megabytes: nothing to leave to the garbage collector.
        self._makers.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))

    def _parsed_properties(self) -> PropertyColumns:
        frames = self._frames
        texts = self._text(frames.properties_at, frames.ends, "properties")
        return PropertyColumns(texts.view(pa.binary()))

    def _topic(self) -> pa.Array:
        frames = self._frames
        name = common(self._plain, frames.topic_at, frames.topic_bytes)
        if name is not None and _is_utf8(name):
            return self._repeated(name.decode())
        return self._text(frames.topic_at, frames.topic_at + frames.topic_bytes, "topic")

    def _repeated(self, text: str) -> pa.Array:
        return repeated(text, len(self._frames))

    def _text(self, starts: Ints, ends: Ints, what: str) -> pa.Array:
        raw = spans(self._buffer, starts, ends)
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            row = next(row for row, text in enumerate(raw.to_pylist()) if not _is_utf8(text))
            position = int(self._frames.origins[row])
            raise UndecodableRecord(position, f"its {what} is not UTF-8") from None

    def _int32(self, field: str) -> pa.Array:
        return pa.array(self._frames.head[field].astype(np.int32))

    def _body(self) -> pa.Array:
        frames = self._frames
        ends = frames.body_at + frames.tail["body_bytes"]
        is_packed = frames.head["sys_flag"] & _COMPRESSED != 0
        if not is_packed.any():
            return spans(self._buffer, frames.body_at, ends)
        packed = np.flatnonzero(is_packed)
        plain = [self._unpacked(row) for row in packed.tolist()]
        # Packed bodies are not copied: an empty one holds the place of each until the plain ones are put in.
        bodies = spans(self._buffer, frames.body_at, np.where(is_packed, frames.body_at, ends))
        return pc.replace_with_mask(bodies, pa.array(is_packed), pa.array(plain, pa.binary()))

    def _unpacked(self, row: int) -> bytes:
        frames = self._frames
        at = int(frames.body_at[row])
        body = bytes(self._data[at : at + int(frames.tail["body_bytes"][row])])
        try:
            return decompress(body, int(frames.head["sys_flag"][row]))
        except RemoteProtocolError as error:
            self._errors.setdefault(int(frames.origins[row]), str(error))
            return body

    def _property_map(self) -> pa.Array:
        pairs = self._properties.map()
        if not self._errors:
            return pairs
        parts, done = [], 0
        for row in np.flatnonzero(np.isin(self._frames.origins, list(self._errors))).tolist():
            reason = self._errors[int(self._frames.origins[row])]
            own = [pair for pair in pairs[row].as_py() if pair[0] != BODY_ERROR]
            parts += [
                pairs.slice(done, row - done),
                pa.array([[*own, (BODY_ERROR, reason)]], pairs.type),
            ]
            done = row + 1
        return pa.concat_arrays([*parts, pairs.slice(done)])

    def _host_texts(self, starts: Ints, lengths: Ints) -> pa.Array:
        only = common(self._plain, starts, lengths)
        if only is not None:
            return self._repeated(host_text(only))
        if (lengths == HOST_V4_BYTES).all():
            return hosts_v4(pick(self._plain, starts, np.dtype("=i8")))
        encoded = spans(self._buffer, starts, starts + lengths).dictionary_encode()
        hosts = encoded.dictionary.to_pylist()
        return pa.array(map(host_text, hosts), pa.string()).take(encoded.indices)

    def _message_id(self) -> pa.Array:
        """The id of its producer, or for a message without one the place where it is stored."""
        ids = self._properties.value(UNIQ_KEY)
        if not ids.null_count:
            return ids
        is_missing = ids.is_null().to_numpy(zero_copy_only=False)
        for host_bytes in (HOST_V4_BYTES, HOST_V6_BYTES):
            mask = is_missing & (self._frames.store_host_bytes == host_bytes)
            if mask.any():
                ids = pc.replace_with_mask(ids, pa.array(mask), self._offset_ids(mask, host_bytes))
        return ids

    def _offset_ids(self, mask: Ints, host_bytes: int) -> pa.Array:
        """Upper-case hex of store host and physical offset."""
        frames = self._frames
        host_at = frames.store_host_at[mask]
        count, width = len(host_at), host_bytes + 8
        raw = np.empty((count, width), dtype=np.uint8)
        raw[:, :host_bytes] = self._plain[host_at[:, None] + np.arange(host_bytes)]
        physical = np.ascontiguousarray(frames.head["physical_offset"][mask])
        raw[:, host_bytes:] = physical.view(np.uint8).reshape(count, 8)
        offsets = np.arange(count + 1, dtype=np.int32) * (2 * width)
        text = pa.py_buffer(_HEX[raw])
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), text])


def _within(frames: Frames, first_offset: int | None, last_offset: int | None) -> Frames:
    if first_offset is None and last_offset is None:
        return frames
    queue_offsets = frames.head["queue_offset"]
    mask = np.ones(len(frames), dtype=bool)
    if first_offset is not None:
        mask &= queue_offsets >= first_offset
    if last_offset is not None:
        mask &= queue_offsets <= last_offset
    return frames if mask.all() else frames.where(mask)


def _tags(expression: str | None) -> list[str] | None:
    return build_subscription("", expression).tags_set or None if expression else None


def _timestamps(milliseconds: Ints) -> pa.Array:
    """Times that no calendar reaches are drawn to the nearest one that Spark can hold."""
    bounded = np.clip(milliseconds.astype(np.int64), -_MILLISECONDS_MAX, _MILLISECONDS_MAX)
    return pa.array(bounded * 1000).view(pa.timestamp("us", tz="UTC"))


def _check_places(frames: Frames, physical_offsets: Ints) -> None:
    is_right = frames.head["physical_offset"] == physical_offsets
    if not is_right.all():
        row = int(np.argmin(is_right))
        told, expected = int(frames.head["physical_offset"][row]), int(physical_offsets[row])
        position = int(frames.origins[row])
        raise UndecodableRecord(position, f"a record of offset {told} at offset {expected}")


def _check_crc(data: Data, frames: Frames) -> None:
    view = memoryview(data)
    places = zip(
        frames.body_at.tolist(),
        (frames.body_at + frames.tail["body_bytes"]).tolist(),
        frames.head["crc"].tolist(),
        strict=True,
    )
    for row, (start, end, crc) in enumerate(places):
        if end > start and crc32(view[start:end]) & 0x7FFFFFFF != crc:
            position = int(frames.origins[row])
            raise UndecodableRecord(position, f"body does not match its checksum {crc}")


def _unwrapped(
    data: Data, frames: Frames, is_inner: Ints, errors: dict[int, str]
) -> tuple[Data, Frames]:
    """The same records with every inner batch replaced by a record per message in it, its offset counted on.

    One that is none is left as it is, with the reason in ``errors``.
    """
    view = memoryview(data)
    parts: list[bytes | memoryview] = []
    origins: list[int] = []
    for start, size, inner in zip(
        frames.starts.tolist(), frames.sizes.tolist(), is_inner.tolist(), strict=True
    ):
        stored = view[start : start + size]
        try:
            parts += _messages_of(stored) if inner else [stored]
        except RemoteProtocolError as error:
            errors[start] = f"inner batch: {error}"
            parts.append(stored)
        origins += [start] * (len(parts) - len(origins))
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    joined = b"".join(parts)
    unwrapped = locate(joined, np.cumsum(sizes) - sizes, sizes)
    unwrapped.origins = np.array(origins, dtype=np.int64)
    return joined, unwrapped


def _messages_of(stored: memoryview) -> list[bytes]:
    """Raises RemoteProtocolError when it holds no messages."""
    record = decode_record(stored, check_crc=False)
    elements = decode_batch(decompress(record.body, record.sys_flag))
    return [
        encode_record(
            topic=record.topic.encode(),
            queue_id=record.queue_id,
            queue_offset=record.queue_offset + number,
            physical_offset=record.physical_offset,
            flag=element.flag,
            sys_flag=record.sys_flag & ~_COMPRESSED,
            born_timestamp=record.born_timestamp,
            born_host=record.born_host,
            store_timestamp=record.store_timestamp,
            store_host=record.store_host,
            reconsume_times=record.reconsume_times,
            prepared_transaction_offset=record.prepared_transaction_offset,
            body=element.body,
            properties=element.properties,
        )
        for number, element in enumerate(elements)
    ]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
