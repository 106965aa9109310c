"""The two forms of a delayed message: as it waits in the schedule topic, and as it is delivered. Pure.

The waiting record names its destination in the properties REAL_TOPIC and REAL_QID; these and DELAY stay in the
delivered text, as with RocketMQ. Only the place of a record tells whether it waits.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cometmq.model.messages.properties import (
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    parse_properties,
    render_properties,
)
from cometmq.model.messages.record import Record
from cometmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC, topic_fault
from cometmq.store.log.copied_record import copy_of
from cometmq.store.log.delivered import delivery_mark
from cometmq.store.log.new_messages import NewMessage

# A message for one of these would come back here, or count as half of a transaction.
_NO_DESTINATION: Final = frozenset({SCHEDULE_TOPIC, HALF_TOPIC})
_QUEUE_ID_DIGITS_MAX: Final = 9


def waiting_form(message: NewMessage, level: int) -> NewMessage:
    """The message as it is stored to wait; ``level`` is one that exists."""
    pairs = parse_properties(message.properties.decode())
    pairs[DELAY] = str(level)
    pairs[REAL_TOPIC] = message.topic
    pairs[REAL_QUEUE_ID] = str(message.queue_id)
    return msgspec.structs.replace(
        message,
        topic=SCHEDULE_TOPIC,
        queue_id=level - 1,
        properties=render_properties(pairs).encode(),
    )


def delivered_form(record: Record) -> NewMessage | None:
    """The message that a waiting record becomes; None when it names no destination."""
    properties = record.properties
    topic = properties.get(REAL_TOPIC, "")
    queue_id = properties.get(REAL_QUEUE_ID, "")
    if topic_fault(topic) or topic in _NO_DESTINATION:
        return None
    if not queue_id.isdecimal() or len(queue_id) > _QUEUE_ID_DIGITS_MAX:
        return None
    return copy_of(
        record,
        topic=topic,
        queue_id=int(queue_id),
        properties=record.properties_text.encode(),
        prepared_transaction_offset=delivery_mark(record.physical_offset),
    )
