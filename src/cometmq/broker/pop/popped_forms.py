"""The forms of a popped message: as it is given out again, tried again, or buried. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cometmq.model.messages.properties import (
    ORIGIN_MESSAGE_ID,
    POP_HANDLE,
    RETRY_TOPIC,
    TEXT_BYTES_MAX,
    render_properties,
)
from cometmq.model.messages.record import BadRecord, Record, encode_record
from cometmq.model.messages.record_layout import PLACE
from cometmq.store.log.copied_record import copy_of
from cometmq.store.log.new_messages import NewMessage

FIRST_POP_TIME: Final = "1ST_POP_TIME"


def queue_offsets(records: bytes | memoryview) -> Iterator[int]:
    """The offsets in their queue of records that lie one behind the other. Raises BadRecord."""
    at, end = 0, len(records)
    while at + PLACE.size <= end:
        size_bytes, _, queue_offset, _, _ = PLACE.unpack_from(records, at)
        if size_bytes < PLACE.size:
            raise BadRecord(f"expected a record at byte {at}, found a size of {size_bytes}")
        yield queue_offset
        at += size_bytes


def retry_form(record: Record, topic: str, pop_time: int) -> NewMessage:
    """The message for a retry topic."""
    pairs = dict(record.properties)
    pairs.setdefault(FIRST_POP_TIME, str(pop_time))
    return copy_of(record, topic=topic, queue_id=0, properties=_text(record, pairs), retries=1)


def dead_form(record: Record, topic: str, origin: str) -> NewMessage:
    """The message for the dead letters, which remembers where it came from."""
    pairs = dict(record.properties)
    pairs.setdefault(RETRY_TOPIC, origin)
    pairs.setdefault(ORIGIN_MESSAGE_ID, record.offset_id)
    return copy_of(record, topic=topic, queue_id=0, properties=_text(record, pairs), retries=1)


def given_form(record: Record, topic: str, handle: str) -> bytes:
    """A record of a retry topic as a consumer gets it: under the topic it asked for, with its handle."""
    pairs = dict(record.properties)
    pairs[POP_HANDLE] = handle
    return encode_record(
        topic=topic.encode(),
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_timestamp=record.store_timestamp,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        body=record.body,
        properties=_text(record, pairs),
    )


def _text(record: Record, pairs: Mapping[str, str]) -> bytes:
    """What is added must not make a message too large to be stored or given out."""
    text = render_properties(pairs).encode()
    return text if len(text) <= TEXT_BYTES_MAX else record.properties_text.encode()
