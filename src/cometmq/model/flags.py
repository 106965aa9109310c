"""Bit fields of the wire and the files: message system flags, pull flags, permissions, topic flags."""

from __future__ import annotations

from enum import IntFlag


class SysFlag(IntFlag):
    """What the system knows of a message; stored in every record."""

    COMPRESSED = 1
    MULTI_TAGS = 2
    TRANSACTION_PREPARED = 4
    TRANSACTION_COMMIT = 8
    TRANSACTION_ROLLBACK = 12
    BORN_HOST_V6 = 16
    STORE_HOST_V6 = 32
    NEED_UNWRAP = 64
    INNER_BATCH = 128


TRANSACTION_MASK = 12
COMPRESSION_MASK = 0x700
COMPRESSION_ZLIB = 3 << 8
COMPRESSION_LZ4 = 1 << 8
COMPRESSION_ZSTD = 2 << 8


class PullFlag(IntFlag):
    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


class Perm(IntFlag):
    INHERIT = 1
    WRITE = 2
    READ = 4
    PRIORITY = 8


READ_WRITE = int(Perm.READ | Perm.WRITE)


class TopicFlag(IntFlag):
    UNIT = 1
    UNIT_SUB = 2


def is_readable(perm: int) -> bool:
    return perm & 4 != 0


def is_writable(perm: int) -> bool:
    return perm & 2 != 0


def is_inherited(perm: int) -> bool:
    return perm & 1 != 0


def perm_text(perm: int) -> str:
    """``RW-`` and the like, as RocketMQ prints permissions."""
    return (
        ("R" if is_readable(perm) else "-")
        + ("W" if is_writable(perm) else "-")
        + ("X" if is_inherited(perm) else "-")
    )
