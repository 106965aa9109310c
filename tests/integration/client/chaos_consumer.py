"""A consumer as a process of its own, to be killed: writes down what it is given.

    python chaos_consumer.py NAME_SERVERS TOPIC GROUP plain|orderly BOOK

A line for each call of the listener, written before it does anything else, so that it is there whatever happens to the
process: ``nanoseconds broker queue offset body``. The queues that it has now are in a file beside the book: one line.
SIGTERM closes it as a service does: what was consumed is committed, and it leaves its group.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from cometmq.client import ClientConfig, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import PushConsumer

WORK_SECONDS = 0.001
LOOK_SECONDS = 0.05

CLIENT = ClientConfig(
    poll_name_server_millis=1000, heartbeat_millis=1000, persist_offsets_millis=1000
)
CONFIG = PushConsumerConfig(
    client=CLIENT,
    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    rebalance_interval_ms=1000,
    lock_interval_ms=1000,
    lock_valid_ms=3000,
)


async def main(name_servers: str, topic: str, group: str, kind: str, book: str) -> None:
    lines = os.open(book, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    shares = Path(book).with_suffix(".queues")
    is_ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_ended.set)

    async def listener(message: ReceivedMessage) -> None:
        place = f"{message.broker_name} {message.queue_id} {message.queue_offset}"
        os.write(lines, f"{time.monotonic_ns()} {place} {message.body.decode()}\n".encode())
        await asyncio.sleep(WORK_SECONDS)

    consumer = PushConsumer(
        group,
        listener=listener,
        orderly=kind == "orderly",
        name_servers=name_servers,
        config=CONFIG,
    )
    consumer.subscribe(topic)
    async with consumer:
        written: list[str] | None = None
        while not is_ended.is_set():
            queues = [
                f"{queue.broker_name}/{queue.queue_id}"
                for queue in consumer.queues
                if queue.topic == topic
            ]
            if queues != written:
                shares.write_text(" ".join(queues))
                written = queues
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await is_ended.wait()
            except TimeoutError:
                pass
    os.close(lines)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
