"""The steps of one order stay in order; different orders are handled in parallel.

Messages with the same sharding key go to the same queue, and an orderly consumer works through a queue one by one.

$ python examples/ordered.py
order 0: created, paid, shipped
order 1: created, paid, shipped
order 2: created, paid, shipped
order 3: created, paid, shipped
"""

import os
import queue
from collections import defaultdict

from cometmq.client import Message, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
STEPS = ("created", "paid", "shipped")
ORDERS = ("0", "1", "2", "3")

handled: queue.Queue[tuple[str, str]] = queue.Queue()


def handle(message: ReceivedMessage) -> None:
    handled.put((message.keys[0], message.body.decode()))


with Producer("order-desk", name_servers=NAME_SERVERS) as producer:
    for step in STEPS:
        for order in ORDERS:
            message = Message(topic="OrderedExample", body=step.encode(), keys=[order])
            producer.send(message, sharding_key=order)

consumer = PushConsumer("order-tracking", listener=handle, orderly=True, name_servers=NAME_SERVERS)
consumer.subscribe("OrderedExample")
seen: dict[str, list[str]] = defaultdict(list)
with consumer:
    for _ in range(len(ORDERS) * len(STEPS)):
        order, step = handled.get(timeout=30)
        seen[order].append(step)
for order in ORDERS:
    print(f"order {order}: {', '.join(seen[order])}")
