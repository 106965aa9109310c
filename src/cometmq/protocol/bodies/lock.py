"""Bodies of the queue locks of orderly consumption: 41, 42."""

from __future__ import annotations

import msgspec

from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.json_body import JsonBody


class LockBatchBody(JsonBody):
    """Requests 41 and 42."""

    client_id: str
    consumer_group: str
    mq_set: list[MessageQueue] = msgspec.field(default_factory=list)
    only_this_broker: bool | None = None


class LockBatchReply(JsonBody):
    """Reply of 41: the queues that are now the client's."""

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default_factory=list)
