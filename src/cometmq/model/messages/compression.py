"""Body compression: zlib, LZ4 (frame format) and ZSTD, distinguished by three bits of the system flag.

Only clients compress and decompress; the broker stores what it receives.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import lz4.frame
import zstandard

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.flags import (
    COMPRESSION_LZ4,
    COMPRESSION_MASK,
    COMPRESSION_ZLIB,
    COMPRESSION_ZSTD,
    SysFlag,
)

DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
"""A body of 4 MiB can expand a thousandfold; one message must not exhaust a consumer's memory."""

ZLIB_LEVEL: Final = 5


def compress(body: bytes, kind: int = COMPRESSION_ZLIB) -> tuple[bytes, int]:
    """The compressed body and its bits in the system flag."""
    if kind == COMPRESSION_LZ4:
        packed: bytes = lz4.frame.compress(body)
    elif kind == COMPRESSION_ZSTD:
        packed = zstandard.ZstdCompressor().compress(body)
    else:
        assert kind == COMPRESSION_ZLIB, kind
        packed = zlib.compress(body, ZLIB_LEVEL)
    return packed, SysFlag.COMPRESSED | kind


def decompress(body: bytes, sys_flag: int, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The plain body; unchanged if the flag says that it is not compressed.

    Raises:
        RemoteProtocolError: the bytes are not what the flag says, or the plain body is larger than ``bytes_max``.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return body
    kind = sys_flag & COMPRESSION_MASK
    try:
        if kind == COMPRESSION_LZ4:
            plain = _bounded(lz4.frame.LZ4FrameDecompressor(), body, bytes_max)
        elif kind == COMPRESSION_ZSTD:
            # The frame may declare its plain size, which the library would allocate before reading on.
            if zstandard.frame_content_size(body) > bytes_max:
                raise RemoteProtocolError(_above(bytes_max))
            plain = zstandard.ZstdDecompressor().decompress(body, max_output_size=bytes_max)
        elif kind in (0, COMPRESSION_ZLIB):
            plain = _bounded(zlib.decompressobj(), body, bytes_max)
        else:
            raise RemoteProtocolError(f"unknown compression type {kind >> 8}")
    except (zlib.error, RuntimeError, zstandard.ZstdError) as error:
        raise RemoteProtocolError(f"compressed body is broken: {error}") from None
    return plain


def _bounded(decompressor: Any, body: bytes, bytes_max: int) -> bytes:
    plain: bytes = decompressor.decompress(body, bytes_max + 1)
    if len(plain) > bytes_max:
        raise RemoteProtocolError(_above(bytes_max))
    if not decompressor.eof:
        raise RemoteProtocolError("compressed body is cut off")
    return plain


def _above(bytes_max: int) -> str:
    return f"compressed body is above {bytes_max} bytes when unpacked"
