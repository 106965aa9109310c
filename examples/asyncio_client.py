"""The same client for asyncio: the same names, with await.

$ python examples/asyncio_client.py
sent 100
received 100
"""

import asyncio
import os

from cometmq.client import Message, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
COUNT = 100


async def main() -> None:
    received: asyncio.Queue[ReceivedMessage] = asyncio.Queue()

    async def handle(message: ReceivedMessage) -> None:  # runs as a task, many at a time
        received.put_nowait(message)

    async with Producer("asyncio-producers", name_servers=NAME_SERVERS) as producer:
        sends = [
            producer.send(Message(topic="AsyncioExample", body=b"%d" % number))
            for number in range(COUNT)
        ]
        print("sent", len(await asyncio.gather(*sends)))

    consumer = PushConsumer("asyncio-consumers", listener=handle, name_servers=NAME_SERVERS)
    consumer.subscribe("AsyncioExample")
    async with consumer, asyncio.timeout(30):
        for _ in range(COUNT):
            await received.get()
    print("received", COUNT)


asyncio.run(main())
