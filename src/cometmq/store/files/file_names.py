"""Names in a store's directory, which RocketMQ gave them.

    commitlog/00000000000000000000            the log: each file is named by the offset of its first byte
    consumequeue/<topic>/<queue>/000…         queues: by the byte of the queue at which the file starts

Numbers have 20 digits, so that names sort as numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq.base.errors import CorruptFile

LOG_DIRECTORY: Final = "commitlog"
QUEUES_DIRECTORY: Final = "consumequeue"
BATCH_QUEUES_DIRECTORY: Final = "batchconsumequeue"
"""RocketMQ 5's queues of another kind, whose entries stand for batches."""

NAME_DIGITS: Final = 20


def file_name(start: int) -> str:
    return f"{start:020d}"


def start_of(name: str) -> int | None:
    """Where the file of this name starts; None when it is no such name."""
    is_number = len(name) == NAME_DIGITS and name.isascii() and name.isdecimal()
    return int(name) if is_number else None


def queue_id_of(name: str) -> int | None:
    """The queue whose directory has this name; None when it is no such name."""
    is_number = name.isascii() and name.isdecimal() and str(int(name)) == name
    return int(name) if is_number else None


def starts_of(names: Sequence[str], directory: str, file_bytes: int, setting: str) -> list[int]:
    """The offsets that sorted file names stand for.

    Raises:
        CorruptFile: a name that is none, or a row with a gap.
    """
    starts: list[int] = []
    for name in names:
        path = f"{directory}/{name}"
        start = start_of(name)
        if start is None:
            raise CorruptFile(path, "a foreign file among the store's", "Move it elsewhere.")
        if start % file_bytes:
            raise CorruptFile(
                path,
                f"its name is no multiple of the file size {file_bytes}",
                f"Set {setting} to the size the files were written with.",
            )
        if starts and start != starts[-1] + file_bytes:
            missing = f"{directory}/{file_name(starts[-1] + file_bytes)}"
            raise CorruptFile(
                missing,
                f"missing between {file_name(starts[-1])} and {name}",
                "Restore it from a copy, or move the files before the gap elsewhere.",
            )
        starts.append(start)
    return starts


def check_size(path: str, size_bytes: int, expected: int, setting: str) -> None:
    """Raises CorruptFile when a file does not have the size that all of its row have."""
    if size_bytes != expected:
        raise CorruptFile(
            path,
            f"{size_bytes} bytes long where {expected} are expected",
            f"Set {setting} to the size the files were written with, or restore the file from a copy.",
        )
