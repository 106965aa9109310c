"""What becomes of a message that a consumer could not process: tried again later, or a dead letter. Pure decisions."""

from __future__ import annotations

from typing import Final

from cometmq.model.messages.properties import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    WAIT,
    render_properties,
)
from cometmq.model.messages.record import Record
from cometmq.store.log.copied_record import copy_of
from cometmq.store.log.new_messages import NewMessage

FIRST_LEVEL: Final = 3
"""The delay level before the first retry; each further one waits a level longer."""


def retry_level(record: Record, wanted_level: int, times_max: int) -> int | None:
    """The delay level at which a message is tried again, or None when it becomes a dead letter.

    Args:
        wanted_level: what the consumer asks for; 0 leaves it to the broker, less than 0 means not to try again.
        times_max: how often a message of the group is tried again.
    """
    if wanted_level < 0 or record.reconsume_times >= times_max:
        return None
    return wanted_level or FIRST_LEVEL + record.reconsume_times


def sent_back_form(record: Record, topic: str, queue_id: int, level: int) -> NewMessage:
    """The message for the retry topic, or (``level`` 0) for the dead letters of a group.

    It keeps who made it and under which id, and remembers the topic and the place where it was first stored.
    """
    pairs = dict(record.properties)
    pairs.setdefault(RETRY_TOPIC, record.topic)
    pairs.setdefault(ORIGIN_MESSAGE_ID, record.offset_id)
    pairs[WAIT] = "false"
    pairs[DELAY] = str(level)
    return copy_of(
        record,
        topic=topic,
        queue_id=queue_id,
        properties=render_properties(pairs).encode(),
        retries=1,
    )
