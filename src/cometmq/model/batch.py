"""Body of a batch send: messages of one topic, one behind the other.

int32 total size, int32 magic (0), int32 CRC (0), int32 flag, int32 + n body, int16 + n properties
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from cometmq.base.errors import RemoteProtocolError

_HEAD = struct.Struct(">iiiii")
_HEAD_BYTES = _HEAD.size


class BatchElement(NamedTuple):
    flag: int
    body: bytes
    properties: bytes


def encode_batch(elements: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """Of flag, body and properties each; a ``BatchElement`` is such a tuple."""
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


def decode_batch(buffer: bytes) -> Iterator[BatchElement]:
    """Raises RemoteProtocolError at the first element that does not fit."""
    position = 0
    buffer_end = len(buffer)
    while position < buffer_end:
        try:
            size, _, _, flag, body_bytes = _HEAD.unpack_from(buffer, position)
        except struct.error:
            raise _broken(position, "is cut off") from None
        body_at = position + _HEAD_BYTES
        properties_at = body_at + body_bytes + 2
        end = position + size
        if body_bytes < 0 or size < 22 or end > buffer_end or properties_at > end:
            raise _broken(position, f"has size {size} and a body of {body_bytes} bytes")
        properties_bytes = int.from_bytes(buffer[properties_at - 2 : properties_at], "big")
        if properties_at + properties_bytes != end:
            raise _broken(position, f"has properties of {properties_bytes} bytes")
        yield BatchElement(flag, buffer[body_at : properties_at - 2], buffer[properties_at:end])
        position = end


def _broken(position: int, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"batch element at byte {position} {what}")
