"""Every member of the group gets every message: for caches and configuration.

$ python examples/broadcast.py
web-1 forgets the prices
web-2 forgets the prices
"""

import os
import queue
import tempfile
import uuid

from cometmq.client import ClientConfig, Message, PushConsumerConfig, ReceivedMessage
from cometmq.client.sync import Producer, PushConsumer

NAME_SERVERS = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
RUN = uuid.uuid4().hex

seen: queue.Queue[str] = queue.Queue()


def member(name: str, directory: str) -> PushConsumer:
    def forget(message: ReceivedMessage) -> None:
        if message.keys == [RUN]:  # not a message of an earlier run of this example
            seen.put(f"{name} forgets the {message.body.decode()}")

    config = PushConsumerConfig(
        message_model="BROADCASTING",
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        # Each member keeps its own position, in a file. Here for this run; by default in your home directory.
        local_offset_directory=directory,
        # Two members on one machine need two names.
        client=ClientConfig(name_servers=NAME_SERVERS, instance_name=name),
    )
    consumer = PushConsumer("caches", listener=forget, config=config)
    consumer.subscribe("BroadcastExample")
    return consumer


with Producer("price-desk", name_servers=NAME_SERVERS) as producer:
    producer.send(Message(topic="BroadcastExample", body=b"prices", keys=[RUN]))

with (
    tempfile.TemporaryDirectory() as directory,
    member("web-1", directory),
    member("web-2", directory),
):
    print(*sorted(seen.get(timeout=30) for _ in range(2)), sep="\n")
