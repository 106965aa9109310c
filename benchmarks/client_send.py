"""How fast our producer sends: one process, one event loop, against an ``mqbroker`` process on the same machine.

    python benchmarks/client_send.py [--seconds 4] [--body 1024] [--loop asyncio|uvloop] [--profile send]

Three figures: single sends that wait for their answer, 64 at a time; batches of 32, 4 at a time; one-way sends, which
nobody answers (their count is confirmed by the broker's offsets before the clock stops). The client's CPU time per
message tells what the library costs, whoever else uses the machine.
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
from cometmq.client.aio.send.producer import Producer
from cometmq.model.messages.message import Message
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

TOPIC = "ClientSend"
QUEUES = 4
IN_FLIGHT = 64
BATCH = 32
BATCHES_IN_FLIGHT = 4
ONEWAY_TURN = 200
START_SECONDS_MAX = 60.0
ROUNDS = 3

Sending = Callable[[Producer, float], Awaitable[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each round")
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--profile", choices=("send", "batch", "oneway"))
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="cometmq-client-send-")
    try:
        with servers(Path(directory), queues=QUEUES) as started:
            name_server, broker = started.name_server, started.broker
            pid = started.broker_pid
            work = _measure(name_server, broker, pid, arguments)
            if arguments.loop == "uvloop":
                uvloop.run(work)
            else:
                asyncio.run(work)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _measure(name_server: str, broker: str, pid: int, arguments: argparse.Namespace) -> None:
    body = b"x" * arguments.body
    sendings: dict[str, Sending] = {
        "send": lambda producer, until: send_in_flight(producer, body, until),
        "batch": lambda producer, until: send_batches(producer, body, until),
        "oneway": lambda producer, until: _send_oneway(producer, body, until, broker),
    }
    async with Producer("client-send", name_servers=name_server) as producer:
        await until_served(producer)
        print(f"loop {arguments.loop}, bodies of {arguments.body} bytes")
        for name, sending in sendings.items():
            if arguments.profile and name != arguments.profile:
                continue
            if arguments.profile:
                await _profile(producer, sending, arguments.seconds)
                continue
            await sending(producer, time.perf_counter() + 1.0)
            rounds = [
                await _round(producer, sending, arguments.seconds, pid) for _ in range(ROUNDS)
            ]
            rate, client_us, broker_us = max(rounds)
            print(
                f"  {name:<8}{rate:>10,.0f} messages/s; CPU each: "
                f"client {client_us:.1f} us, broker {broker_us:.1f} us"
            )


async def _round(
    producer: Producer, sending: Sending, seconds: float, pid: int
) -> tuple[float, float, float]:
    """Messages per second, microseconds of CPU per message here and in the broker."""
    broker_cpu, cpu, started = _cpu_seconds(pid), time.process_time(), time.perf_counter()
    count = await sending(producer, started + seconds)
    elapsed = time.perf_counter() - started
    return (
        count / elapsed,
        (time.process_time() - cpu) / count * 1e6,
        (_cpu_seconds(pid) - broker_cpu) / count * 1e6,
    )


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _profile(producer: Producer, sending: Sending, seconds: float) -> None:
    profile = cProfile.Profile()
    profile.enable()
    count = await sending(producer, time.perf_counter() + seconds)
    profile.disable()
    print(f"{count} messages")
    pstats.Stats(profile).sort_stats("tottime").print_stats(40)


async def send_in_flight(producer: Producer, body: bytes, until: float) -> int:
    count = 0

    async def one_after_another() -> None:
        nonlocal count
        while time.perf_counter() < until:
            await producer.send(Message(topic=TOPIC, body=body, tags="t"))
            count += 1

    await asyncio.gather(*(one_after_another() for _ in range(IN_FLIGHT)))
    return count


async def send_batches(producer: Producer, body: bytes, until: float) -> int:
    count = 0

    async def one_after_another() -> None:
        nonlocal count
        while time.perf_counter() < until:
            batch = [Message(topic=TOPIC, body=body, tags="t") for _ in range(BATCH)]
            await producer.send_batch(batch)
            count += BATCH

    await asyncio.gather(*(one_after_another() for _ in range(BATCHES_IN_FLIGHT)))
    return count


async def _send_oneway(producer: Producer, body: bytes, until: float, broker: str) -> int:
    client = RemotingClient()
    try:
        before = await _stored(client, broker)
        while time.perf_counter() < until:
            for _ in range(ONEWAY_TURN):
                await producer.send_oneway(Message(topic=TOPIC, body=body, tags="t"))
            # Sending alone never waits while the socket takes it; the loop must have its turn to write.
            await asyncio.sleep(0)
        # The last ones are on their way; what counts is what the broker has.
        last = -1
        while (now := await _stored(client, broker)) != last:
            last = now
            await asyncio.sleep(0.05)
        return last - before
    finally:
        await client.close()


async def _stored(client: RemotingClient, broker: str) -> int:
    total = 0
    for queue_id in range(QUEUES):
        request = Command(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": str(queue_id)})
        reply = await client.call(broker, request, timeout=30)
        total += int((reply.ext or {})["offset"])
    return total


async def until_served(producer: Producer) -> None:
    deadline = time.perf_counter() + START_SECONDS_MAX
    while True:
        try:
            await producer.send(Message(topic=TOPIC, body=b"x"))
            return
        except CometError:
            if time.perf_counter() > deadline:
                raise
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    main()
