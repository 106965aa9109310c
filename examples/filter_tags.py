"""A consumer gets only the messages with the tags that it asks for; the broker drops the others.

$ python examples/filter_tags.py
accounting got: paid order 17, refunded order 16
"""

import os
import queue

from cometmq.client import Message, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

received: queue.Queue[str] = queue.Queue()


def handle(message: ReceivedMessage) -> None:
    received.put(f"{message.tags} {message.body.decode()}")


with Producer("filter-shop", name_servers=NAME_SERVERS) as producer:
    for tag, order in (("created", "18"), ("paid", "17"), ("refunded", "16"), ("shipped", "15")):
        producer.send(Message(topic="TagFilterExample", body=f"order {order}".encode(), tags=tag))

consumer = PushConsumer("accounting", listener=handle, name_servers=NAME_SERVERS)
consumer.subscribe("TagFilterExample", "paid || refunded")
with consumer:
    orders = [received.get(timeout=30) for _ in range(2)]
print("accounting got:", ", ".join(sorted(orders)))
