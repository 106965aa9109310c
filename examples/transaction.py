"""A message and a change in a database happen together, or neither does.

The broker holds the message back until the local transaction has ended. If it does not learn how, it asks.

$ python examples/transaction.py
order 1: COMMIT
order 2: ROLLBACK
shipping order 1
"""

import os
import queue

from cometmq.client import Message, ReceivedMessage
from cometmq.client.sync import PushConsumer, TransactionProducer, TransactionState

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

database: set[str] = set()
delivered: queue.Queue[str] = queue.Queue()


def execute(message: Message, order: str) -> TransactionState:
    """The local transaction."""
    if order == "2":
        return TransactionState.ROLLBACK  # say, it is not paid
    database.add(order)
    return TransactionState.COMMIT


def check(message: ReceivedMessage) -> TransactionState:
    """The broker asks, perhaps after a crash, and perhaps another producer of the group than the one that sent."""
    return TransactionState.COMMIT if message.keys[0] in database else TransactionState.ROLLBACK


def ship(message: ReceivedMessage) -> None:
    delivered.put(message.keys[0])


with TransactionProducer(
    "order-placing", execute=execute, check=check, name_servers=NAME_SERVERS
) as producer:
    for order in ("1", "2"):
        message = Message(topic="TransactionExample", body=b"ship it", keys=[order])
        result = producer.send_transaction(message, order)
        print(f"order {order}: {result.state.name}")

    consumer = PushConsumer("order-shipping", listener=ship, name_servers=NAME_SERVERS)
    consumer.subscribe("TransactionExample")
    with consumer:
        print("shipping order", delivered.get(timeout=30))
