"""All messages of a topic in one order: a topic with a single queue, and an orderly consumer.

One queue lives on one broker and is consumed by one member of the group: choose this only where the order of everything
matters more than speed and availability. Otherwise order by a key, as in ordered.py.

$ python examples/global_order.py
queues: 1
deposit 100, withdraw 30, deposit 5, withdraw 60
"""

import os
import queue

from cometmq.client import Message, ProducerConfig, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
ENTRIES = ("deposit 100", "withdraw 30", "deposit 5", "withdraw 60")

handled: queue.Queue[str] = queue.Queue()


def handle(message: ReceivedMessage) -> None:
    handled.put(message.body.decode())


# The first message creates the topic with this many queues. Where brokers create no topics, an operator does it.
ONE_QUEUE = ProducerConfig(default_topic_queue_count=1)

with Producer("ledger", name_servers=NAME_SERVERS, config=ONE_QUEUE) as producer:
    queues = {
        producer.send(Message(topic="GlobalOrder", body=entry.encode())).queue for entry in ENTRIES
    }
    print("queues:", len(queues))

consumer = PushConsumer("ledger-book", listener=handle, orderly=True, name_servers=NAME_SERVERS)
consumer.subscribe("GlobalOrder")
with consumer:
    print(", ".join(handled.get(timeout=30) for _ in ENTRIES))
