"""The forms of a timed message: as it waits, as it waits once more, as it is delivered; and the recall of one. Pure.

A waiting record is a RocketMQ 5 one: in the timer topic, with its destination in REAL_TOPIC and REAL_QID and its time
in TIMER_OUT_MS. What the sender said stays in the text, also of what is delivered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import (
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TEXT_BYTES_MAX,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    UNIQ_KEY,
    render_properties,
)
from cometmq.model.messages.recall_handle import RecallHandle
from cometmq.model.messages.record import Record
from cometmq.model.messages.timer_properties import (
    PRECISION_MS,
    PRECISION_MS_MAX,
    TIMER_DELETE_KEY,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
)
from cometmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC, topic_fault
from cometmq.store.log.copied_record import copy_of
from cometmq.store.log.delivered import delivery_mark
from cometmq.store.log.new_messages import NewMessage

# A message for one of these would come back here, or count as half of a transaction.
_NO_DESTINATION: Final = frozenset({TIMER_TOPIC, SCHEDULE_TOPIC, HALF_TOPIC})
_NUMBER_DIGITS_MAX: Final = 15
_RECALL_TAG: Final = "_RECALL_TAG_"

TimedName = tuple[str, str, str]
"""Topic, unique key and TIMER_OUT_MS: what a message and its recall have in common."""


def waiting_form(message: NewMessage, pairs: dict[str, str], deliver_ms: int) -> NewMessage:
    """The message as it is stored to wait; ``pairs`` are its properties, and get some more."""
    pairs[TIMER_OUT_MS] = str(deliver_ms - PRECISION_MS)
    pairs[REAL_TOPIC] = message.topic
    pairs[REAL_QUEUE_ID] = str(message.queue_id)
    return msgspec.structs.replace(
        message,
        topic=TIMER_TOPIC,
        queue_id=0,
        properties=render_properties(pairs).encode(),
    )


def recall_form(
    handle: RecallHandle, producer_group: str | None, message: NewMessage
) -> NewMessage:
    """A message that takes another one back when both come due.

    Args:
        message: gives its times and its host.
    """
    pairs = {
        TAGS: _RECALL_TAG,
        TIMER_DELETE_KEY: handle.unique_key,
        UNIQ_KEY: handle.unique_key,
        TIMER_DELIVER_MS: str(handle.deliver_ms),
    }
    if producer_group:
        pairs[PRODUCER_GROUP] = producer_group
    return waiting_form(
        msgspec.structs.replace(
            message,
            topic=handle.topic,
            queue_id=0,
            body=b"0",
            tags_code=java_hash(_RECALL_TAG),
            keys=[handle.unique_key],
        ),
        pairs,
        handle.deliver_ms,
    )


def rolled_form(record: Record) -> NewMessage:
    """The message as it waits once more, so that its record is not deleted with the log file it lies in."""
    times = (_number(record.properties.get(TIMER_ROLL_TIMES)) or 0) + 1
    return _copy(record, TIMER_TOPIC, 0, _noted(record, {TIMER_ROLL_TIMES: str(times)}))


def delivered_form(record: Record, now_ms: int) -> NewMessage | None:
    """The message that a waiting record becomes; None when it names no destination."""
    properties = record.properties
    topic = properties.get(REAL_TOPIC, "")
    queue_id = _number(properties.get(REAL_QUEUE_ID))
    if topic_fault(topic) or topic in _NO_DESTINATION or queue_id is None or queue_id >= 1 << 31:
        return None
    times = {TIMER_ENQUEUE_MS: str(record.store_timestamp), TIMER_DEQUEUE_MS: str(now_ms)}
    return _copy(record, topic, queue_id, _noted(record, times))


def due_ms(record: Record) -> int | None:
    """When a waiting record is to be delivered; None when it does not say.

    A RocketMQ broker rounds the time down and waits for the end of that second. What was asked for is then found in
    what the sender said, and it is taken if it rounds to the time noted.
    """
    properties = record.properties
    out_ms = _number(properties.get(TIMER_OUT_MS))
    if out_ms is None:
        return None
    asked_ms = -1
    if (delay := delay_ms(properties)) is not None:
        asked_ms = record.store_timestamp + delay
    elif (deliver := _number(properties.get(TIMER_DELIVER_MS))) is not None:
        asked_ms = deliver
    return asked_ms if out_ms < asked_ms <= out_ms + PRECISION_MS_MAX else out_ms + PRECISION_MS


def delay_ms(properties: Mapping[str, str]) -> int | None:
    """How long the sender wants the message to wait; None when it does not say so, but when it is to be delivered."""
    for name, unit_ms in ((TIMER_DELAY_SEC, 1000), (TIMER_DELAY_MS, 1)):
        if (delay := _number(properties.get(name))) is not None:
            return delay * unit_ms
    return None


def wake_ms(due: int, stored_ms: int, window_ms: int) -> int:
    """When to look at a waiting record: when it is due, or when it has waited in its log file for ``window_ms``."""
    # Close to the end of the window it is not worth another copy.
    if due - stored_ms <= window_ms + PRECISION_MS_MAX:
        return due
    return stored_ms + window_ms


def recalled_by(record: Record) -> TimedName | None:
    """What a recall takes back; None for a record that is no recall."""
    properties = record.properties
    key = properties.get(TIMER_DELETE_KEY)
    if key is None:
        return None
    topic = properties.get(REAL_TOPIC, "")
    # RocketMQ can be told to put the topic before the key (appendTopicForTimerDeleteKey).
    return topic, key.removeprefix(f"{topic}+"), properties.get(TIMER_OUT_MS, "")


def recalled_as(record: Record) -> TimedName:
    """By what name a waiting record would be recalled."""
    properties = record.properties
    return (
        properties.get(REAL_TOPIC, ""),
        properties.get(UNIQ_KEY, ""),
        properties.get(TIMER_OUT_MS, ""),
    )


def _noted(record: Record, notes: dict[str, str]) -> bytes:
    """The properties with our notes, or without where they would not fit: a message is worth more than notes on it."""
    text = render_properties({**record.properties, **notes}).encode()
    return text if len(text) <= TEXT_BYTES_MAX else record.properties_text.encode()


def _copy(record: Record, topic: str, queue_id: int, properties: bytes) -> NewMessage:
    return copy_of(
        record,
        topic=topic,
        queue_id=queue_id,
        properties=properties,
        prepared_transaction_offset=delivery_mark(record.physical_offset),
    )


def _number(text: str | None) -> int | None:
    if text is None or not text.isdecimal() or len(text) > _NUMBER_DIGITS_MAX:
        return None
    return int(text)
