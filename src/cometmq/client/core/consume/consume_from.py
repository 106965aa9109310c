"""Where a group starts in a queue it has no position in. No I/O.

    consume from     normal topic                  %RETRY% topic
    last offset      the end                       0
    first offset     0                             0
    timestamp        by time                       the end

An offset below the queue's first is moved there by the broker's answer to the first pull.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cometmq.model.consumption import ConsumeFromWhere
from cometmq.model.names import RETRY_PREFIX


class Ask(Enum):
    """What the broker has to be asked for."""

    MAX_OFFSET = "max offset"
    OFFSET_BY_TIME = "offset by time"


@dataclass(frozen=True, slots=True)
class At:
    """A known offset."""

    offset: int


def start_of(where: ConsumeFromWhere, topic: str, stored: int | None) -> At | Ask:
    """The start in a queue of ``topic``. A stored position always wins."""
    if stored is not None and stored >= 0:
        return At(stored)
    is_retry = topic.startswith(RETRY_PREFIX)
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return At(0)
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        return Ask.MAX_OFFSET if is_retry else Ask.OFFSET_BY_TIME
    # The three other values are old names that RocketMQ treats as "last offset".
    return At(0) if is_retry else Ask.MAX_OFFSET
