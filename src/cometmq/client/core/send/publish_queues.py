"""Which queues of a route a producer may write and a consumer may read. No I/O."""

from __future__ import annotations

from cometmq.model.flags import is_readable, is_writable
from cometmq.model.ids import MASTER_ID
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import TopicRoute


def publish_queues(
    topic: str, route: TopicRoute, queue_count_max: int | None = None
) -> list[MessageQueue]:
    """Writable queues of brokers that have a master, in RocketMQ's order; optionally limited per broker.

    An order-topic config (``brokerA:4;brokerB:2``) fixes the queues whatever the brokers say, so that a key keeps its
    queue while a broker is down.
    """
    if route.order_topic_conf:
        return [
            MessageQueue(broker_name=name, queue_id=queue_id, topic=topic)
            for name, count in route.order_counts()
            for queue_id in range(count)
        ]
    masters = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    return [
        MessageQueue(broker_name=data.broker_name, queue_id=queue_id, topic=topic)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if is_writable(data.perm) and data.broker_name in masters
        for queue_id in range(
            data.write_queue_nums
            if queue_count_max is None
            else min(data.write_queue_nums, queue_count_max)
        )
    ]


def subscribe_queues(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """Readable queues; a slave alone is enough for reading."""
    return sorted(
        MessageQueue(broker_name=data.broker_name, queue_id=queue_id, topic=topic)
        for data in route.queue_datas
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    )
