"""Messages that are delivered later: after a delay level, after any delay, or at a time.

$ python examples/delayed.py
after 1 s: delay_level=1
after 1.5 s: delay_ms=1500
after 2 s: deliver_at_ms
"""

import os
import queue
import time

from cometmq.client import Message, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
TOPIC = "DelayedExample"

received: queue.Queue[str] = queue.Queue()


def handle(message: ReceivedMessage) -> None:
    received.put(message.body.decode())


with Producer("reminders", name_servers=NAME_SERVERS) as producer:
    # A level of the broker's list: 1 s, 5 s, 10 s, 30 s, 1 min ... 2 h. Every RocketMQ broker knows them.
    producer.send(Message(topic=TOPIC, body=b"after 1 s: delay_level=1", delay_level=1))
    # Any delay or time up to 40 days: our broker, or RocketMQ 5.
    producer.send(Message(topic=TOPIC, body=b"after 1.5 s: delay_ms=1500", delay_ms=1500))
    at_ms = int((time.time() + 2) * 1000)
    producer.send(Message(topic=TOPIC, body=b"after 2 s: deliver_at_ms", deliver_at_ms=at_ms))

consumer = PushConsumer("reminded", listener=handle, name_servers=NAME_SERVERS)
consumer.subscribe(TOPIC)
with consumer:
    print(*sorted(received.get(timeout=30) for _ in range(3)), sep="\n")
