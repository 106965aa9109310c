"""How fast our consumers pull a backlog: one process, one event loop, against an ``mqbroker`` process beside it.

    python benchmarks/client_pull.py [--count 200000] [--body 1024] [--loop asyncio|uvloop] [--profile lite]

The backlog lies in four queues and is read to its end in each round; every message's offset and body size are checked.

    lite        LitePullConsumer.poll, 32 messages a pull
    lite-10     the same with RocketMQ's default of 10
    iterate     async for message in consumer, 32 messages a pull
    classic     PullConsumer.pull, one task a queue, 32 messages a pull
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from processes.own_servers import servers

from cometmq.base.errors import CometError
from cometmq.client.aio.pull.lite_pull_consumer import LitePullConsumer
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

PATIENT = "waitTimeMillsInSendQueue=30000\n"
"""The backlog is written as fast as it goes; nobody minds when a send has to wait."""
TOPIC = "ClientPull"
QUEUES = 4
FILL_BATCH = 200
START_SECONDS_MAX = 60.0
ROUNDS = 3

Reading = Callable[[], Awaitable["Tally"]]


class Tally:
    """Counts what comes, and checks that nothing is missing, repeated or cut."""

    def __init__(self, body_bytes: int) -> None:
        self._body_bytes = body_bytes
        self._next: dict[int, int] = {}
        self.count = 0

    def add(self, messages: list[ReceivedMessage]) -> None:
        for message in messages:
            expected = self._next.get(message.queue_id, 0)
            assert message.queue_offset == expected, message
            assert len(message.body) == self._body_bytes, message
            self._next[message.queue_id] = expected + 1
        self.count += len(messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=200_000, help="messages of the backlog")
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--profile", choices=("lite", "lite-10", "iterate", "classic"))
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="cometmq-client-pull-")
    try:
        with servers(Path(directory), queues=QUEUES, settings=PATIENT) as started:
            name_server, pid = started.name_server, started.broker_pid
            work = _measure(name_server, pid, arguments)
            if arguments.loop == "uvloop":
                uvloop.run(work)
            else:
                asyncio.run(work)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _measure(name_server: str, pid: int, arguments: argparse.Namespace) -> None:
    count, body_bytes = arguments.count // QUEUES * QUEUES, arguments.body
    await fill_backlog(name_server, count, body_bytes)
    readings: dict[str, Reading] = {
        "lite": lambda: read_lite(name_server, count, body_bytes, 32),
        "lite-10": lambda: read_lite(name_server, count, body_bytes, 10),
        "iterate": lambda: _iterate(name_server, count, body_bytes),
        "classic": lambda: _classic(name_server, body_bytes),
    }
    print(f"loop {arguments.loop}, {count:,} bodies of {body_bytes} bytes")
    for name, reading in readings.items():
        if arguments.profile:
            if name == arguments.profile:
                await _profile(reading)
            continue
        rate, client_us, broker_us = max([await _round(reading, pid) for _ in range(ROUNDS)])
        print(
            f"  {name:<8}{rate:>10,.0f} messages/s; CPU each: "
            f"client {client_us:.1f} us, broker {broker_us:.1f} us",
            flush=True,
        )


async def _round(reading: Reading, pid: int) -> tuple[float, float, float]:
    """Messages per second, microseconds of CPU per message here and in the broker."""
    broker_cpu, cpu, started = _cpu_seconds(pid), time.process_time(), time.perf_counter()
    count = (await reading()).count
    elapsed = time.perf_counter() - started
    return (
        count / elapsed,
        (time.process_time() - cpu) / count * 1e6,
        (_cpu_seconds(pid) - broker_cpu) / count * 1e6,
    )


async def _profile(reading: Reading) -> None:
    profile = cProfile.Profile()
    profile.enable()
    tally = await reading()
    profile.disable()
    print(f"{tally.count} messages")
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)


def _consumer(name_server: str, pull_batch_size: int) -> LitePullConsumer:
    config = LitePullConfig(
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        pull_batch_size=pull_batch_size,
        auto_commit=False,
    )
    consumer = LitePullConsumer("lite-readers", name_servers=name_server, config=config)
    consumer.subscribe(TOPIC)
    return consumer


async def read_lite(name_server: str, count: int, body_bytes: int, pull_batch_size: int) -> Tally:
    tally = Tally(body_bytes)
    async with _consumer(name_server, pull_batch_size) as consumer:
        while tally.count < count:
            tally.add(await consumer.poll())
    return tally


async def _iterate(name_server: str, count: int, body_bytes: int) -> Tally:
    tally = Tally(body_bytes)
    async with _consumer(name_server, 32) as consumer:
        async for message in consumer:
            tally.add([message])
            if tally.count == count:
                break
    return tally


async def _classic(name_server: str, body_bytes: int) -> Tally:
    tally = Tally(body_bytes)
    async with PullConsumer("classic-readers", name_servers=name_server) as consumer:

        async def read(queue: MessageQueue) -> None:
            offset, end = 0, await consumer.max_offset(queue)
            while offset < end:
                result = await consumer.pull(queue, offset)
                tally.add(result.messages)
                offset = result.next_offset

        await asyncio.gather(*(read(queue) for queue in await consumer.queues(TOPIC)))
    return tally


async def fill_backlog(name_server: str, count: int, body_bytes: int) -> None:
    body = b"x" * body_bytes
    async with Producer("client-pull", name_servers=name_server) as producer:
        queues = await _queues(producer)

        async def fill(queue: MessageQueue) -> None:
            left = count // QUEUES
            while left > 0:
                batch = [
                    Message(topic=TOPIC, body=body, tags="t", keys=["k"])
                    for _ in range(min(left, FILL_BATCH))
                ]
                await producer.send_batch(batch, queue=queue, timeout=30.0)
                left -= len(batch)

        await asyncio.gather(*map(fill, queues))


async def _queues(producer: Producer) -> list[MessageQueue]:
    deadline = time.perf_counter() + START_SECONDS_MAX
    while True:
        try:
            return await producer.fetch_publish_queues(TOPIC)
        except CometError:
            if time.perf_counter() > deadline:
                raise
            await asyncio.sleep(0.05)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
