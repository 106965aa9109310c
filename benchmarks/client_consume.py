"""How fast our push consumer consumes: one process, one event loop, against an ``mqbroker`` process on this machine.

    python benchmarks/client_consume.py [--messages 200000] [--body 1024] [--loop asyncio|uvloop] [--only async]
        [--profile async]

A backlog is sent first. Then a listener that does nothing but count takes it, each kind as a new group: from the first
message to the last. The client's CPU time per message tells what the library costs, whoever else uses the machine.
At the end the time from a send to the listener, one message every 10 ms.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from processes.own_servers import servers

from cometmq.base.errors import CometError
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.model.messages.message import Message

TOPIC = "ClientConsume"
LATENCY_TOPIC = "ClientConsumeLatency"
QUEUES = 4
BATCH = 32
BATCHES_IN_FLIGHT = 8
ROUNDS = 3
LATENCY_MESSAGES = 500
LATENCY_STEP_SECONDS = 0.01
START_SECONDS_MAX = 60.0
CONSUME_SECONDS_MAX = 120.0
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"

KINDS = ("async", "def", "async-batch", "orderly-async", "orderly-def")


class Tally:
    """Counts messages; knows when the first and the last came."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.first_at = 0.0
        self.cpu_at = 0.0
        self.done = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        self.first_at = time.perf_counter()
        self.cpu_at = time.process_time()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self.done.set)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--only", choices=(*KINDS, "latency"))
    parser.add_argument("--profile", choices=KINDS)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="cometmq-client-consume-")
    try:
        with servers(Path(directory), queues=QUEUES) as started:
            name_server, pid = started.name_server, started.broker_pid
            work = _measure(name_server, pid, arguments)
            if arguments.loop == "uvloop":
                uvloop.run(work)
            else:
                asyncio.run(work)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _measure(name_server: str, pid: int, arguments: argparse.Namespace) -> None:
    print(f"loop {arguments.loop}, {arguments.messages} messages of {arguments.body} bytes")
    async with Producer("client-consume", name_servers=name_server) as producer:
        await until_served(producer)
        if arguments.only != "latency":
            await fill_backlog(producer, arguments.messages, b"x" * arguments.body)
        for kind in KINDS:
            wanted = arguments.profile or arguments.only
            if wanted and kind != wanted:
                continue
            if arguments.profile:
                profile = cProfile.Profile()
                profile.enable()
                await consume_backlog(name_server, kind, "profile", arguments.messages, pid)
                profile.disable()
                pstats.Stats(profile).sort_stats("tottime").print_stats(45)
                continue
            rounds = [
                await consume_backlog(name_server, kind, str(number), arguments.messages, pid)
                for number in range(ROUNDS)
            ]
            rate, client_us, broker_us = max(rounds)
            print(
                f"  {kind:<14}{rate:>10,.0f} messages/s; CPU each: "
                f"client {client_us:.1f} us, broker {broker_us:.1f} us"
            )
        if not arguments.profile and arguments.only in (None, "latency"):
            for kind in ("async", "def"):
                times = await measure_latency(producer, name_server, kind, b"x" * arguments.body)
                p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
                print(
                    f"  send to {kind} listener: p50 {p50 * 1000:.2f} ms, "
                    f"p99 {p99 * 1000:.2f} ms, max {times[-1] * 1000:.2f} ms"
                )


async def fill_backlog(producer: Producer, count: int, body: bytes) -> None:
    left = count // BATCH

    async def one_after_another() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await producer.send_batch(
                [Message(topic=TOPIC, body=body, tags="t") for _ in range(BATCH)]
            )

    await asyncio.gather(*(one_after_another() for _ in range(BATCHES_IN_FLIGHT)))


async def consume_backlog(
    name_server: str, kind: str, number: str, count: int, pid: int
) -> tuple[float, float, float]:
    """Messages per second, microseconds of CPU per message here and in the broker."""
    tally = Tally(count // BATCH * BATCH)
    consumer = PushConsumer(
        f"group-{kind}-{number}",
        name_servers=name_server,
        orderly=kind.startswith("orderly"),
        config=PushConsumerConfig(consume_from_where=FROM_FIRST, consume_batch_max=32),
        **_listener(kind, tally),
    )
    consumer.subscribe(TOPIC)
    broker_cpu = _cpu_seconds(pid)
    async with consumer:
        async with asyncio.timeout(CONSUME_SECONDS_MAX):
            await tally.done.wait()
        elapsed = time.perf_counter() - tally.first_at
        cpu = time.process_time() - tally.cpu_at
        broker_cpu = _cpu_seconds(pid) - broker_cpu
    return tally.wanted / elapsed, cpu / tally.wanted * 1e6, broker_cpu / tally.wanted * 1e6


def _listener(kind: str, tally: Tally) -> dict[str, Callable[[Any], Any]]:
    async def take(message: object) -> None:
        tally.count += 1
        if tally.count == 1:
            tally.begin()
        if tally.count == tally.wanted:
            tally.end()

    def take_in_thread(message: object) -> None:
        tally.count += 1
        if tally.count == 1:
            tally.begin()
        if tally.count == tally.wanted:
            tally.end()

    async def take_batch(messages: list[object]) -> None:
        if not tally.count:
            tally.begin()
        tally.count += len(messages)
        if tally.count >= tally.wanted:
            tally.end()

    if kind == "async-batch":
        return {"batch_listener": take_batch}
    return {"listener": take if kind.endswith("async") else take_in_thread}


async def measure_latency(
    producer: Producer, name_server: str, kind: str, body: bytes
) -> list[float]:
    sent: dict[str, float] = {}
    times: list[float] = []

    def note(message: Any) -> None:
        now = time.perf_counter()
        # A send is timed from before it; the listener may be faster than the send's own answer. A new group of a young
        # topic gets what was sent before it, too.
        if (sent_at := sent.get(message.keys[0])) is not None:
            times.append(now - sent_at)

    async def note_async(message: Any) -> None:
        note(message)

    consumer = PushConsumer(
        f"latency-{kind}",
        name_servers=name_server,
        listener=note if kind == "def" else note_async,
        config=PushConsumerConfig(consume_from_where="CONSUME_FROM_LAST_OFFSET"),
    )
    consumer.subscribe(LATENCY_TOPIC)
    async with consumer:
        while len(consumer.queues) < QUEUES + 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)
        for number in range(LATENCY_MESSAGES):
            key = f"{kind}-{number}"
            sent[key] = time.perf_counter()
            await producer.send(Message(topic=LATENCY_TOPIC, body=body, keys=[key]))
            await asyncio.sleep(LATENCY_STEP_SECONDS)
        async with asyncio.timeout(CONSUME_SECONDS_MAX):
            while len(times) < LATENCY_MESSAGES:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    return sorted(times)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until_served(producer: Producer) -> None:
    deadline = time.perf_counter() + START_SECONDS_MAX
    while True:
        try:
            # Creates both topics; no consumer is there yet to count these.
            await producer.send(Message(topic=LATENCY_TOPIC, body=b"x", keys=["start"]))
            return
        except CometError:
            if time.perf_counter() > deadline:
                raise
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
