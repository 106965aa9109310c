"""A consumer gets only the messages whose properties meet a condition, written in SQL92.

$ python examples/filter_sql.py
the VIP desk got orders 2, 3
"""

import os
import queue

from cometmq.client import Message, ReceivedMessage, Sql
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
ORDERS = (("1", "50", "EU"), ("2", "5000", "EU"), ("3", "1500", "UK"), ("4", "9000", "US"))

received: queue.Queue[str] = queue.Queue()


def handle(message: ReceivedMessage) -> None:
    received.put(message.body.decode())


with Producer("vip-shop", name_servers=NAME_SERVERS) as producer:
    for order, amount, region in ORDERS:
        properties = {"amount": amount, "region": region}
        producer.send(Message(topic="SqlFilterExample", body=order.encode(), properties=properties))

consumer = PushConsumer("vip-orders", listener=handle, name_servers=NAME_SERVERS)
consumer.subscribe("SqlFilterExample", Sql("amount > 1000 AND region IN ('EU', 'UK')"))
with consumer:
    orders = [received.get(timeout=30) for _ in range(2)]
print("the VIP desk got orders", ", ".join(sorted(orders)))
