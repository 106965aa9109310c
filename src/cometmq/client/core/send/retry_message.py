"""A new message for the group's retry topic, if the broker cannot send the old one back itself. No I/O."""

from __future__ import annotations

from typing import Final

from cometmq.model.flags import COMPRESSION_MASK, SysFlag
from cometmq.model.messages.properties import (
    DELAY,
    MAX_OFFSET,
    MAX_RECONSUME_TIMES,
    MIN_OFFSET,
    ORIGIN_MESSAGE_ID,
    RECONSUME_TIME,
    RETRY_TOPIC,
    TRANSACTION_PREPARED,
    WAIT,
    render_properties,
)
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import AUTO_CREATE_TOPIC, retry_topic
from cometmq.protocol.headers.send import SendMessageHeaderV2

INNER_GROUP: Final = "CLIENT_INNER_PRODUCER"
"""The producer group that RocketMQ's clients use for their own sends."""

FIRST_RETRY_LEVEL: Final = 3
"""Delay level of the first retry (10 s); each further retry uses the next level."""

_PACKED: Final = int(SysFlag.COMPRESSED) | COMPRESSION_MASK

# Properties that the reader added, and those that the header carries.
_LEFT_OUT: Final = (
    MIN_OFFSET,
    MAX_OFFSET,
    TRANSACTION_PREPARED,
    RECONSUME_TIME,
    MAX_RECONSUME_TIMES,
)


def retry_header(
    message: ReceivedMessage,
    *,
    group: str,
    origin_topic: str,
    reconsume_times: int,
    reconsume_times_max: int,
    now_ms: int,
    is_delayed: bool = True,
) -> SendMessageHeaderV2:
    """The header of a send that delivers the message to the group again; queue and broker are left open.

    If ``reconsume_times`` is at its maximum, the broker puts it into the dead letter queue instead.

    Args:
        is_delayed: by the level of its next retry; else at once.
    """
    pairs = {name: value for name, value in message.properties.items() if name not in _LEFT_OUT}
    pairs.setdefault(ORIGIN_MESSAGE_ID, message.offset_id)
    pairs[RETRY_TOPIC] = origin_topic
    pairs.pop(DELAY, None)
    if is_delayed:
        pairs[DELAY] = str(FIRST_RETRY_LEVEL + message.reconsume_times)
    pairs[WAIT] = "true"
    return SendMessageHeaderV2(
        producer_group=INNER_GROUP,
        topic=retry_topic(group),
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=4,
        queue_id=0,
        # A body that could not be decompressed is still compressed.
        sys_flag=0 if message.body_error is None else message.sys_flag & _PACKED,
        born_timestamp=now_ms,
        flag=message.flag,
        properties=render_properties(pairs),
        reconsume_times=reconsume_times,
        unit_mode=False,
        max_reconsume_times=reconsume_times_max,
        batch=False,
    )
