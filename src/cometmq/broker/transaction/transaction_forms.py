"""The forms a message of a transaction takes on its way through the log. Pure.

    half      RMQ_SYS_TRANS_HALF_TOPIC: as sent, with its destination in REAL_TOPIC and REAL_QID
    copy      the same again, made for each check: it carries how often the producer was asked
    committed the destination: what consumers see
    discarded TRANS_CHECK_MAX_TIME_TOPIC: nobody told what became of it
    mark      RMQ_SYS_TRANS_OP_HALF_TOPIC: the half message or copy at this queue offset is done with

Every form but the first follows from one in the half topic and is stored together with the mark of that. It carries the
place of what it follows from in its prepared-transaction offset: a committed message as RocketMQ does, the others as
the complement, so that nobody takes them for one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cometmq.model.flags import TRANSACTION_MASK, SysFlag
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import (
    PREPARED_QUEUE_OFFSET,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TRANSACTION_CHECK_TIMES,
    UNIQ_KEY,
    WAIT,
    render_properties,
)
from cometmq.model.messages.record import Record, encode_record
from cometmq.model.names import (
    HALF_OP_TOPIC,
    HALF_TOPIC,
    NOT_SENDABLE,
    TRANSACTION_DISCARD_TOPIC,
    topic_fault,
)
from cometmq.store.log.copied_record import copy_of
from cometmq.store.log.new_messages import NewMessage

QUEUE_ID: Final = 0
"""The half topic and the topic of marks have one queue."""
TEXT_BYTES_SPARE: Final = 128
"""What copies add to the property text: it must fit as long as the message lives."""
_MARK_TAG: Final = "d"
_MARK_PROPERTIES: Final = render_properties({WAIT: "true", TAGS: _MARK_TAG}).encode()
_MARK_TAG_CODE: Final = java_hash(_MARK_TAG)
_NUMBER_DIGITS_MAX: Final = 18
_QUEUE_ID_DIGITS_MAX: Final = 9


def half_form(message: NewMessage, pairs: dict[str, str], *, is_wait: bool) -> NewMessage:
    """A message as it is stored until its transaction ends; ``pairs`` are its properties."""
    pairs = {
        **pairs,
        WAIT: "true" if is_wait else "false",
        REAL_TOPIC: message.topic,
        REAL_QUEUE_ID: str(message.queue_id),
    }
    return msgspec.structs.replace(
        message,
        topic=HALF_TOPIC,
        queue_id=QUEUE_ID,
        properties=render_properties(pairs).encode(),
        sys_flag=message.sys_flag & ~TRANSACTION_MASK,
    )


def copy_form(half: Record, identity: int, check_count: int) -> NewMessage:
    """The half message again, for the check that makes it ``check_count`` checks."""
    pairs = {
        **half.properties,
        TRANSACTION_CHECK_TIMES: str(check_count),
        PREPARED_QUEUE_OFFSET: str(identity),
    }
    return _follower(half, HALF_TOPIC, QUEUE_ID, pairs, ~half.physical_offset)


def committed_form(half: Record) -> NewMessage | None:
    """What consumers get; None when the half message names no destination."""
    pairs = dict(half.properties)
    topic, queue_id = pairs.get(REAL_TOPIC, ""), pairs.get(REAL_QUEUE_ID, "")
    if topic_fault(topic) or topic in NOT_SENDABLE:
        return None
    if not queue_id.isdecimal() or len(queue_id) > _QUEUE_ID_DIGITS_MAX:
        return None
    pairs.pop(PREPARED_QUEUE_OFFSET, None)
    message = _follower(half, topic, int(queue_id), pairs, half.physical_offset)
    message.sys_flag |= int(SysFlag.TRANSACTION_COMMIT)
    return message


def discarded_form(half: Record) -> NewMessage:
    pairs = dict(half.properties)
    pairs.pop(PREPARED_QUEUE_OFFSET, None)
    return _follower(half, TRANSACTION_DISCARD_TOPIC, 0, pairs, ~half.physical_offset)


def reopened_form(discarded: Record) -> NewMessage:
    """A discarded message as a half message again, of which nobody has been asked yet."""
    pairs = {**discarded.properties, TRANSACTION_CHECK_TIMES: "0", WAIT: "false"}
    return _follower(discarded, HALF_TOPIC, QUEUE_ID, pairs, 0)


def mark_form(half_offset: int, now_ms: int) -> NewMessage:
    """Says that the half message at this offset of the half queue is done with."""
    return NewMessage(
        topic=HALF_OP_TOPIC,
        queue_id=QUEUE_ID,
        body=b"%d" % half_offset,
        properties=_MARK_PROPERTIES,
        tags_code=_MARK_TAG_CODE,
        born_timestamp=now_ms,
    )


def marked_offsets(body: bytes) -> list[int]:
    """What a mark says: RocketMQ 4 writes one offset, RocketMQ 5 several with a comma behind each.

    Raises:
        ValueError: it says nothing that can be understood.
    """
    return [_number(part.decode()) for part in body.split(b",") if part]


def identity_of(half: Record) -> int:
    """The same number for a half message and all its copies: the queue offset of the first."""
    text = half.properties.get(PREPARED_QUEUE_OFFSET)
    try:
        return half.queue_offset if text is None else _number(text)
    except ValueError:
        return half.queue_offset


def check_count_of(half: Record) -> int:
    try:
        return _number(half.properties.get(TRANSACTION_CHECK_TIMES, "0"))
    except ValueError:
        return 0


def followed_offset(record: Record) -> int | None:
    """Where the record lies, if any, that this one may follow from: a committed message, a copy or a discarded one."""
    place = record.prepared_transaction_offset
    if record.topic in (HALF_TOPIC, TRANSACTION_DISCARD_TOPIC):
        return ~place if place < 0 else None
    is_committed = record.sys_flag & TRANSACTION_MASK == SysFlag.TRANSACTION_COMMIT
    return place if is_committed and place >= 0 else None


def follows(record: Record, half: Record) -> bool:
    """Whether a record was made from a half message: it is the same message, and nobody changed it since."""
    return (
        half.topic == HALF_TOPIC
        and half.physical_offset < record.physical_offset
        and record.topic in (HALF_TOPIC, TRANSACTION_DISCARD_TOPIC, half.properties.get(REAL_TOPIC))
        and record.properties.get(UNIQ_KEY) == half.properties.get(UNIQ_KEY)
        and record.born_timestamp == half.born_timestamp
        and record.body == half.body
    )


def question_body(copy: Record) -> bytes:
    """The record a producer is asked about: the copy of its half message, as if it were at its destination."""
    properties = copy.properties
    queue_id = properties.get(REAL_QUEUE_ID, "")
    is_number = queue_id.isdecimal() and len(queue_id) <= _QUEUE_ID_DIGITS_MAX
    return encode_record(
        topic=properties.get(REAL_TOPIC, "").encode(),
        queue_id=int(queue_id) if is_number else 0,
        queue_offset=copy.queue_offset,
        physical_offset=copy.physical_offset,
        flag=copy.flag,
        sys_flag=copy.sys_flag,
        born_timestamp=copy.born_timestamp,
        born_host=copy.born_host,
        store_timestamp=copy.store_timestamp,
        store_host=copy.store_host,
        reconsume_times=copy.reconsume_times,
        prepared_transaction_offset=0,
        body=copy.body,
        properties=copy.properties_text.encode(),
    )


def _follower(
    half: Record, topic: str, queue_id: int, pairs: dict[str, str], followed: int
) -> NewMessage:
    message = copy_of(
        half,
        topic=topic,
        queue_id=queue_id,
        properties=render_properties(pairs).encode(),
        prepared_transaction_offset=followed,
    )
    message.sys_flag &= ~TRANSACTION_MASK
    return message


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > _NUMBER_DIGITS_MAX:
        raise ValueError(f"expected an offset or a count, found {text[:50]!r}")
    return int(text)
