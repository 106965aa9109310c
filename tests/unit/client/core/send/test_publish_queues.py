from __future__ import annotations

from cometmq.client.core.send.publish_queues import publish_queues, subscribe_queues
from cometmq.client.core.send.queue_selector import RoundRobin
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import BrokerData, QueueData, TopicRoute


def _route(*, order: str | None = None) -> TopicRoute:
    return TopicRoute(
        queue_datas=[
            QueueData(broker_name="b", read_queue_nums=3, write_queue_nums=2, perm=6),
            QueueData(broker_name="a", read_queue_nums=1, write_queue_nums=1, perm=6),
            QueueData(broker_name="readonly", read_queue_nums=1, write_queue_nums=1, perm=4),
            QueueData(broker_name="headless", read_queue_nums=1, write_queue_nums=1, perm=6),
            QueueData(broker_name="writeonly", read_queue_nums=1, write_queue_nums=1, perm=2),
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name="a", broker_addrs={0: "127.0.0.1:1"}),
            BrokerData(cluster="c", broker_name="b", broker_addrs={0: "127.0.0.1:2"}),
            BrokerData(cluster="c", broker_name="readonly", broker_addrs={0: "127.0.0.1:3"}),
            BrokerData(cluster="c", broker_name="headless", broker_addrs={1: "127.0.0.1:4"}),
            BrokerData(cluster="c", broker_name="writeonly", broker_addrs={0: "127.0.0.1:5"}),
        ],
        order_topic_conf=order,
    )


def _names(queues: list[MessageQueue]) -> list[tuple[str, int]]:
    return [(queue.broker_name, queue.queue_id) for queue in queues]


def test_publishes_to_writable_queues_of_masters_in_broker_order() -> None:
    assert _names(publish_queues("T", _route())) == [("a", 0), ("b", 0), ("b", 1), ("writeonly", 0)]


def test_reads_from_every_readable_queue_even_without_a_master() -> None:
    assert _names(subscribe_queues("T", _route())) == [
        ("a", 0),
        ("b", 0),
        ("b", 1),
        ("b", 2),
        ("headless", 0),
        ("readonly", 0),
    ]


def test_order_config_fixes_the_queues() -> None:
    assert _names(publish_queues("T", _route(order="b:2;gone:1"))) == [
        ("b", 0),
        ("b", 1),
        ("gone", 0),
    ]


def test_round_robin_visits_every_queue() -> None:
    queues = publish_queues("T", _route())
    selector = RoundRobin()
    assert {selector.select(queues) for _ in queues} == set(queues)


def test_a_retry_avoids_the_broker_that_failed() -> None:
    queues = publish_queues("T", _route())
    selector = RoundRobin()
    assert all(selector.select(queues, "b").broker_name != "b" for _ in range(10))


def test_a_retry_takes_the_same_broker_when_there_is_no_other() -> None:
    queues = [MessageQueue(broker_name="b", queue_id=0, topic="T")]
    assert RoundRobin().select(queues, "b") == queues[0]
