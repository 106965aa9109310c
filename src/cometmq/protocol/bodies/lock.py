"""Bodies of the queue locks of orderly consumption: 41, 42."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec

from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson
from cometmq.protocol.json_body import JsonBody

QUEUES_MAX: Final = 65_536
"""Maximum number of queues in one request. A client asks for its own share of a topic on one broker."""

_LIMITS: Final = fastjson.Limits(16 * 1024 * 1024, 5 * QUEUES_MAX)


class LockBatchBody(JsonBody):
    """Requests 41 and 42."""

    LIMITS: ClassVar[fastjson.Limits] = _LIMITS

    client_id: str
    consumer_group: str
    mq_set: Annotated[list[MessageQueue], msgspec.Meta(max_length=QUEUES_MAX)] = msgspec.field(
        default_factory=list
    )
    only_this_broker: bool | None = None


class LockBatchReply(JsonBody):
    """Reply to 41: the queues that the client now holds."""

    LIMITS: ClassVar[fastjson.Limits] = _LIMITS

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default_factory=list)
