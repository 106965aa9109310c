"""SIGKILL under load, again and again on one store: what was acknowledged stays, in order, once, byte for byte."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from cometmq.base.errors import CometError
from cometmq.cli.server_process import ServerProcess
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message

ROUNDS = 20
SENDERS = 32
TOPIC = "Survivors"
FIRST_SECONDS_MAX = 30.0

Place = tuple[MessageQueue, int]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
async def test_twenty_kills_lose_and_alter_nothing_acknowledged(tmp_path: Path, flush: str) -> None:
    seed = int(os.environ.get("COMETMQ_SEED", random.randrange(1 << 32)))
    print(f"COMETMQ_SEED={seed}")
    await _twenty_kills(str(tmp_path), flush, random.Random(seed))


async def _twenty_kills(directory: str, flush: str, chance: random.Random) -> None:
    # Small files, so that kills also hit the change from one file to the next.
    servers = ServerProcess(
        directory,
        settings={
            "flushDiskType": flush,
            "mappedFileSizeCommitLog": str(1024 * 1024),
            "mappedFileSizeConsumeQueue": str(20 * 500),
            "maxHashSlotNum": "1000",
            "maxIndexNum": "4000",
            "maxMessageSize": str(64 * 1024),
        },
    )
    acknowledged: dict[Place, bytes] = {}
    await servers.start()
    try:
        for number in range(ROUNDS):
            fresh = await _load_until_killed(servers, chance, number)
            assert not fresh.keys() & acknowledged.keys(), "an offset was given away twice"
            acknowledged |= fresh
            await servers.start()
        await _verify(servers.name_server, acknowledged)
    finally:
        await servers.stop()


async def _load_until_killed(
    servers: ServerProcess, chance: random.Random, number: int
) -> dict[Place, bytes]:
    acknowledged: dict[Place, bytes] = {}
    stop, is_under_way = asyncio.Event(), asyncio.Event()
    async with Producer("survivors", name_servers=servers.name_server) as producer:

        async def send(sender: int) -> None:
            count = 0
            while not stop.is_set():
                count += 1
                head = f"{number}/{sender}/{count}/".encode()
                body = head + b"x" * chance.randrange(3000)
                message = Message(topic=TOPIC, body=body, keys=[head.decode()], tags="t")
                try:
                    if count % 7:
                        result = await producer.send(message)
                        acknowledged[result.queue, result.queue_offset] = body
                        is_under_way.set()
                    else:
                        bodies = [b"%d/" % index + body for index in range(3)]
                        batch = [Message(topic=TOPIC, body=one) for one in bodies]
                        result = await producer.send_batch(batch)
                        for index, one in enumerate(bodies):
                            acknowledged[result.queue, result.queue_offset + index] = one
                except CometError:
                    return

        senders = [asyncio.create_task(send(sender)) for sender in range(SENDERS)]
        async with asyncio.timeout(FIRST_SECONDS_MAX):
            await is_under_way.wait()
        await asyncio.sleep(chance.random() * 0.7)
        await servers.kill()
        stop.set()
        await asyncio.gather(*senders)
    return acknowledged


async def _verify(name_server: str, acknowledged: dict[Place, bytes]) -> None:
    stored: dict[Place, bytes] = {}
    async with PullConsumer("verifier", name_servers=name_server) as consumer:
        for queue in await consumer.queues(TOPIC):
            offset, end = await consumer.min_offset(queue), await consumer.max_offset(queue)
            assert offset == 0
            while offset < end:
                result = await consumer.pull(queue, offset)
                assert [m.queue_offset for m in result.messages] == list(
                    range(offset, result.next_offset)
                )
                stored.update(((queue, m.queue_offset), m.body) for m in result.messages)
                offset = result.next_offset
    lost = acknowledged.keys() - stored.keys()
    assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged messages are lost"
    altered = [place for place, body in acknowledged.items() if stored[place] != body]
    assert not altered, f"{len(altered)} messages are altered"
    assert len(set(stored.values())) == len(stored), "a message is there twice"
