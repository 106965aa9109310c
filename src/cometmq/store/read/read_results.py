"""The results of reads."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class GetStatus(StrEnum):
    """How a read ended. The values are RocketMQ's names: a pull reply carries them as its remark."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_RESET = "OFFSET_RESET"


class GetResult(msgspec.Struct):
    """Records found, and where to continue. ``parts`` are views of the log, with adjacent records joined."""

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    parts: list[memoryview] = []
    count: int = 0
    size_bytes: int = 0
    suggest_slave: bool = False


class QueryResult(msgspec.Struct):
    """Records with a key, newest first, and how far the index reaches."""

    parts: list[memoryview]
    last_update_ms: int
    last_update_offset: int
