"""What a backup holds: one JSON line, and its checksum on a second one.

A backup exists once its manifest does; it is written last. Blocks cut the files of the log every 64 MiB, so that a
checksum covers every byte, and a damaged one can be named.
"""

from __future__ import annotations

import datetime
from typing import Final

import msgspec

from cometmq.base.errors import CorruptFile
from cometmq.model.messages.checksum import crc32

FORMAT: Final = 1
BLOCK_BYTES: Final = 64 << 20


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Bytes of the log from ``start`` up to ``end``, of one file."""

    start: int
    end: int
    crc: int


class Table(msgspec.Struct, frozen=True, array_like=True):
    """A small file of the store, by its path below the store's root."""

    name: str
    size_bytes: int
    crc: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    taken_ms: int
    """When the tables were copied. The log was read up to its end after that: tables are never ahead of it."""
    log_start: int
    log_end: int
    file_bytes: int
    """Size of one file of the log."""
    first_stored_ms: int
    """Store time of the first record; 0 if there is none."""
    last_stored_ms: int
    copied_bytes: int
    """Bytes of the log that this backup added to those before it."""
    blocks: list[Block]
    tables: list[Table]
    queue_ends: dict[str, dict[int, int]]
    """By topic and queue, the offset of the next message. The log alone does not tell it once all messages expired."""
    deleted: list[tuple[str, int]]
    """Topics that were deleted, and where the log ended then."""
    damaged: list[int]
    """Where in the log records were already damaged in the store."""
    format: int = FORMAT


def encode_manifest(manifest: Manifest) -> bytes:
    text = msgspec.json.encode(manifest)
    return text + b"\n%08x\n" % crc32(text)


def decode_manifest(content: bytes, path: str) -> Manifest:
    """Raises CorruptFile."""
    text, _, rest = content.partition(b"\n")
    if rest.strip() != b"%08x" % crc32(text):
        raise CorruptFile(path, "its checksum is wrong", "Use another backup")
    try:
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as error:
        raise CorruptFile(
            path, f"not understood: {error}", "It may come from a newer version of CometMQ"
        ) from None


def block_end(offset: int, file_bytes: int) -> int:
    """Where the block that holds a byte ends at the latest."""
    file_start = offset - offset % file_bytes
    at = offset - file_start
    return file_start + min((at // BLOCK_BYTES + 1) * BLOCK_BYTES, file_bytes)


def backup_name(taken_ms: int) -> str:
    """Names sort by time."""
    moment = datetime.datetime.fromtimestamp(taken_ms / 1000, tz=datetime.UTC)
    return moment.strftime("%Y%m%dT%H%M%S.") + f"{taken_ms % 1000:03d}Z"


def time_text(ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(ms / 1000, tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
