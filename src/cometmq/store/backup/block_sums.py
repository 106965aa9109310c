"""Checksums of a log, block by block. A block that was not full goes on where it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq.model.messages.checksum import crc32
from cometmq.store.backup.manifest import Block, block_end
from cometmq.store.files.log_files import LogFileGone, LogFiles

_CHUNK_BYTES: Final = 4 << 20


def crc_of(log: LogFiles, start: int, end: int, crc: int = 0) -> int:
    """The checksum of a range of one file, as the continuation of another. Raises LogFileGone."""
    while start < end:
        data = log.read(start, min(_CHUNK_BYTES, end - start))
        if not data:
            raise LogFileGone(start)
        crc = crc32(data, crc)
        start += len(data)
    return crc


def block_sums(
    log: LogFiles, before: Sequence[Block], start: int, end: int, file_bytes: int
) -> list[Block]:
    """Blocks up to ``end``. Those ``before`` reach up to ``start``, unless there is none. Raises LogFileGone."""
    blocks = list(before)
    while start < end:
        first, crc = start, 0
        if blocks and blocks[-1].end == start and block_end(blocks[-1].start, file_bytes) > start:
            unfinished = blocks.pop()
            first, crc = unfinished.start, unfinished.crc
        until = min(block_end(start, file_bytes), end)
        blocks.append(Block(first, until, crc_of(log, start, until, crc)))
        start = until
    return blocks
