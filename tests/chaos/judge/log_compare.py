"""Whether two brokers' commit logs are the same bytes, as far as both go.

A log is a directory of files named by the offset of their first byte. Records begin with their size and a magic number;
zeros, or what is no record, end the log. Written out here so that it judges the store without the store's own code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.chaos.judge.history import Reign

_HEAD: Final = struct.Struct(">iI")
_RECORDS: Final = (0xDAA320A7, 0xDAA320AB)  # versions 1 and 2
_REST_OF_FILE: Final = 0xCBD43194


def segments(directory: Path) -> dict[int, Path]:
    """Files by their first offset."""
    return {
        int(file.name): file for file in sorted(directory.glob("[0-9]*")) if file.name.isdigit()
    }


def end_of(directory: Path) -> int:
    """The offset behind the last record; 0 for a log without files."""
    end = 0
    for start, file in segments(directory).items():
        if end and start != end:
            break
        data = file.read_bytes()
        written = _written(data)
        end = start + written
        if written < len(data):
            break
    return end


def records(data: bytes) -> Iterator[tuple[int, int]]:
    """Position and size of the records of one file."""
    position = 0
    while position + _HEAD.size <= len(data):
        size, magic = _HEAD.unpack_from(data, position)
        if magic not in _RECORDS or size < _HEAD.size or position + size > len(data):
            return
        yield position, size
        position += size


def difference(first: Path, second: Path) -> str:
    """Where the logs begin to differ, as a sentence; empty if they do not, below the end of the shorter one."""
    until = min(end_of(first), end_of(second))
    one, other = segments(first), segments(second)
    for start in sorted(one.keys() & other.keys()):
        length = min(until - start, one[start].stat().st_size, other[start].stat().st_size)
        if length <= 0:
            break
        mine, theirs = one[start].read_bytes()[:length], other[start].read_bytes()[:length]
        if mine != theirs:
            at = next(index for index in range(length) if mine[index] != theirs[index])
            return f"{first} and {second} differ from {start + at} on, both reach {until}"
    return ""


def _written(data: bytes) -> int:
    end = 0
    for position, size in records(data):
        end = position + size
    if end + _HEAD.size <= len(data) and _HEAD.unpack_from(data, end)[1] == _REST_OF_FILE:
        return len(data)
    return end


def reigns_in(epoch_file: Path) -> list[Reign]:
    """The epochs of a log under a controller, from the file beside it: count, checksum, then ``epoch-start`` lines."""
    if not epoch_file.exists():
        return []
    _, _, *lines = epoch_file.read_text().split()
    return [Reign(*map(int, line.split("-"))) for line in lines]
