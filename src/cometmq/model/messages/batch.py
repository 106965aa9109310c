"""Body of a batch send: messages of one topic in sequence.

int32 total size, int32 magic (0), int32 CRC (0), int32 flag, int32 + n body, int16 + n properties
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from cometmq.base.errors import RemoteProtocolError

_HEAD = struct.Struct(">iiiii")
_HEAD_BYTES = _HEAD.size
_unpack_head = _HEAD.unpack_from


class TooManyElements(RemoteProtocolError):
    """A batch has more elements than its reader accepts."""


class BatchElement(NamedTuple):
    flag: int
    body: bytes
    properties: bytes


def encode_batch(elements: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """From flag, body and properties of each element; a ``BatchElement`` is such a tuple."""
    parts: list[bytes] = []
    for flag, body, properties in elements:
        body_bytes, properties_bytes = len(body), len(properties)
        parts += (
            _HEAD.pack(22 + body_bytes + properties_bytes, 0, 0, flag, body_bytes),
            body,
            properties_bytes.to_bytes(2, "big"),
            properties,
        )
    return b"".join(parts)


def decode_batch(buffer: bytes) -> list[BatchElement]:
    """Raises RemoteProtocolError at the first element that does not fit."""
    columns = decode_columns(buffer, len(buffer))
    return [BatchElement(*element) for element in zip(*columns, strict=True)]


def decode_columns(buffer: bytes, count_max: int) -> tuple[list[int], list[bytes], list[bytes]]:
    """Flags, bodies and properties of the elements as columns, because processing a column is faster.

    Raises:
        TooManyElements: more than ``count_max``.
        RemoteProtocolError: an element does not fit.
    """
    return _alike(buffer, count_max) or _each(buffer, count_max)


def _alike(buffer: bytes, count_max: int) -> tuple[list[int], list[bytes], list[bytes]] | None:
    """The columns if all elements have the same sizes as the first, so that one layout fits all. Otherwise None."""
    if len(buffer) < _HEAD_BYTES:
        return None
    size, _, _, _, body_bytes = _unpack_head(buffer)
    properties_bytes = size - _HEAD_BYTES - 2 - body_bytes
    if body_bytes < 0 or not 0 <= properties_bytes < 1 << 16 or len(buffer) % size:
        return None
    if len(buffer) // size > count_max:
        return None
    layout = _layout(body_bytes, properties_bytes)
    sizes, _, _, flags, body_sizes, bodies, properties_sizes, properties = zip(
        *layout.iter_unpack(buffer), strict=True
    )
    is_alike = (
        set(sizes) == {size}
        and set(body_sizes) == {body_bytes}
        and set(properties_sizes) == {properties_bytes}
    )
    return (list(flags), list(bodies), list(properties)) if is_alike else None


@lru_cache(maxsize=256)
def _layout(body_bytes: int, properties_bytes: int) -> struct.Struct:
    return struct.Struct(f">iiiii{body_bytes}sH{properties_bytes}s")


def _each(buffer: bytes, count_max: int) -> tuple[list[int], list[bytes], list[bytes]]:
    flags: list[int] = []
    bodies: list[bytes] = []
    properties: list[bytes] = []
    position = 0
    buffer_end = len(buffer)
    while position < buffer_end:
        try:
            size, _, _, flag, body_bytes = _unpack_head(buffer, position)
        except struct.error:
            raise _broken(position, "is cut off") from None
        body_at = position + _HEAD_BYTES
        body_end = body_at + body_bytes
        end = position + size
        if body_bytes < 0 or size < 22 or end > buffer_end or body_end + 2 > end:
            raise _broken(position, f"has size {size} and a body of {body_bytes} bytes")
        properties_bytes = buffer[body_end] << 8 | buffer[body_end + 1]
        if body_end + 2 + properties_bytes != end:
            raise _broken(position, f"has properties of {properties_bytes} bytes")
        if len(flags) == count_max:
            raise TooManyElements(f"a batch holds at most {count_max} messages")
        flags.append(flag)
        bodies.append(buffer[body_at:body_end])
        properties.append(buffer[body_end + 2 : end])
        position = end
    return flags, bodies, properties


def _broken(position: int, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"batch element at byte {position} {what}")
