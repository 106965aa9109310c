"""Reading a queue through a filter function: batch by batch, until something is wanted or enough has been looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.filters.functions.protocol import FunctionMessage
from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.store.message_store import UNLIMITED, MessageStore
from cometmq.store.read.read_results import GetResult, GetStatus

SCAN_COUNT_MAX: Final = 800
"""Most messages one pull has judged, as with other filters."""
BATCH_COUNT_MAX: Final = 32


async def read_by_function(
    store: MessageStore,
    functions: FilterFunctions,
    name: str,
    header: PullMessageHeader,
    *,
    seconds_max: float,
    monotonic: Callable[[], float],
) -> GetResult:
    """What a pull gets of its queue.

    Raises:
        StoreError: the queue cannot be read.
        FunctionUnusable, FunctionsBusy: nobody can judge.
    """
    offset = header.queue_offset
    count = min(max(header.max_msg_nums, 1), BATCH_COUNT_MAX)
    size_bytes = header.max_msg_bytes or UNLIMITED
    give_up_at = monotonic() + seconds_max
    while True:
        found = store.get(header.topic, header.queue_id, offset, count, max_bytes=size_bytes)
        if found.status is not GetStatus.FOUND:
            # The end of the queue behind messages that nobody wants is no news for who asked from before them.
            return found if offset == header.queue_offset else _nothing(found, offset)
        # A copy: the log may go on without these bytes while the function takes its time.
        data = b"".join(found.parts)
        records = decode_records(data, check_crc=False)
        verdicts = await functions.judge(name, [_message(record) for record in records])
        is_whole = len(verdicts) == len(records)
        offset = found.next_offset if is_whole else records[len(verdicts)].queue_offset
        parts: list[memoryview] = []
        start = 0
        for record, wanted in zip(records, verdicts, strict=False):
            if wanted:
                parts.append(memoryview(data)[start : start + record.size_bytes])
            start += record.size_bytes
        if parts:
            found.next_offset = offset
            found.parts = parts
            found.count = len(parts)
            found.size_bytes = sum(map(len, parts))
            return found
        if offset - header.queue_offset >= SCAN_COUNT_MAX or monotonic() >= give_up_at:
            return _nothing(found, offset)


def _nothing(found: GetResult, offset: int) -> GetResult:
    return GetResult(GetStatus.NO_MATCHED_MESSAGE, offset, found.min_offset, found.max_offset)


def _message(record: Record) -> FunctionMessage:
    return FunctionMessage(
        record.topic, record.queue_offset, record.properties_text, record.sys_flag, record.body
    )
