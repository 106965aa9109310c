"""Brokers, name servers and consumers are killed under load; what RocketMQ promises holds: see ``chaos_book``.

``COMETMQ_CHAOS_SECONDS`` is how long (10 unless given), ``COMETMQ_CHAOS_SEED`` repeats a run's choices.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest
from tests.integration.client.chaos_book import (
    SendBook,
    inversions,
    missing,
    repeated,
)
from tests.integration.client.chaos_cluster import ChaosCluster, until_true
from tests.interop.servers import ServerCommands

from cometmq.base.errors import CometError
from cometmq.client import ClientConfig, Message, ProducerConfig
from cometmq.client.aio import Producer

CHAOS_SECONDS = float(os.environ.get("COMETMQ_CHAOS_SECONDS") or 10)
CONSUMED_SECONDS_MAX = 90.0
SETTLED_SECONDS_MAX = 60.0
PLAIN, ORDERED = "plain", "ordered"
PLAIN_SENDERS, KEYS = 4, 8
PAUSE_SECONDS = 0.008

pytestmark = [pytest.mark.slow, pytest.mark.timeout(int(CHAOS_SECONDS) + 300)]


class Load:
    """Sends until told to stop. What failed is sent again: the next number of a key waits for its predecessor."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._is_stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._next: dict[tuple[str, str], int] = {}
        self.books = {PLAIN: SendBook(), ORDERED: SendBook()}

    def start(self) -> None:
        self._is_stopped = False
        senders = [(PLAIN, f"{PLAIN}{number}") for number in range(PLAIN_SENDERS)]
        senders += [(ORDERED, f"{ORDERED}{number}") for number in range(KEYS)]
        self._tasks = [asyncio.create_task(self._send(*sender)) for sender in senders]

    async def stop(self) -> None:
        self._is_stopped = True
        await asyncio.gather(*self._tasks)

    async def _send(self, topic: str, key: str) -> None:
        book = self.books[topic]
        while not self._is_stopped:
            number = self._next.setdefault((topic, key), 0)
            message = Message(topic=topic, body=f"{key}:{number}".encode())
            try:
                result = await self._producer.send(
                    message, sharding_key=key if topic == ORDERED else None
                )
            except CometError:
                book.failed += 1
            else:
                queue = result.queue
                place = (queue.broker_name, queue.queue_id, result.queue_offset)
                assert place not in book.confirmed, f"{place} was given twice"
                book.confirmed[place] = message.body.decode()
                self._next[topic, key] = number + 1
            await asyncio.sleep(PAUSE_SECONDS)


async def test_killed_servers_and_consumers_lose_nothing_and_keep_the_order(
    makers: ServerCommands, tmp_path: Path
) -> None:
    seed = int(os.environ.get("COMETMQ_CHAOS_SEED") or random.randrange(1_000_000))
    print(f"COMETMQ_CHAOS_SEED={seed}")

    kinds = {PLAIN: "plain", ORDERED: "orderly"}
    cluster = ChaosCluster(makers, tmp_path, kinds, seed)
    config = ProducerConfig(client=ClientConfig(poll_name_server_millis=1000))
    async with (
        cluster.running(),
        Producer("chaos", name_servers=cluster.name_servers, config=config) as producer,
    ):
        load = Load(producer)
        await cluster.settled(SETTLED_SECONDS_MAX)
        load.start()
        await cluster.chaos(CHAOS_SECONDS)
        await load.stop()
        await _consumed(cluster, load)
        await cluster.settled(SETTLED_SECONDS_MAX)
        await cluster.caught_up(SETTLED_SECONDS_MAX)
        _tell(cluster, load)
        # From here on nothing is killed: one consumer after the other is replaced, as a service is rolled out.
        rolling_from = time.monotonic_ns()
        load.start()
        for consumer in list(cluster.consumers):
            await cluster.replace_consumer(consumer)
            await cluster.settled(SETTLED_SECONDS_MAX)
        await load.stop()
        await _consumed(cluster, load)
        for consumer in cluster.consumers:
            await asyncio.to_thread(consumer.close)
        for topic, book in load.books.items():
            assert missing(book.confirmed, cluster.deliveries(topic)) == []
            assert repeated(cluster.deliveries(topic), rolling_from) == []
        assert load.books[ORDERED].queue_orders() == []
        assert inversions(cluster.deliveries(ORDERED)) == []
        assert all(cluster.kills.values()), cluster.kills


async def _consumed(cluster: ChaosCluster, load: Load) -> None:
    def is_all_there() -> bool:
        return not any(
            missing(book.confirmed, cluster.deliveries(topic)) for topic, book in load.books.items()
        )

    try:
        await until_true(is_all_there, CONSUMED_SECONDS_MAX)
    except TimeoutError:
        for topic, book in load.books.items():
            lost = missing(book.confirmed, cluster.deliveries(topic))
            assert not lost, f"{len(lost)} of {len(book.confirmed)} {topic} messages: {lost[:10]}"
        raise


def _tell(cluster: ChaosCluster, load: Load) -> None:
    for topic, book in load.books.items():
        again = len(repeated(cluster.deliveries(topic)))
        print(f"{topic}: {len(book.confirmed)} confirmed, {book.failed} failed, {again} repeated")
    print(f"killed: {dict(cluster.kills)}")
