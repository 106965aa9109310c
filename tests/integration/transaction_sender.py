"""A producer that starts transactions and never ends one: ``python transaction_sender.py NAME_SERVER GROUP TOPIC``.

It prints the body of every half message that the broker confirmed, and goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from cometmq.client.aio import TransactionProducer, TransactionState
from cometmq.model.messages.message import Message


async def unknown(message: Message, argument: Any) -> TransactionState:
    print(message.body.decode(), flush=True)
    return TransactionState.UNKNOWN


async def never_asked(message: Any) -> TransactionState:
    return TransactionState.UNKNOWN


async def main(name_server: str, group: str, topic: str) -> None:
    producer = TransactionProducer(
        group, execute=unknown, check=never_asked, name_servers=name_server
    )
    await producer.start()
    for number in range(1_000_000):
        await producer.send_transaction(Message(topic=topic, body=b"orphan-%d" % number))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
