"""How fast the blocking clients are: threads that wait, against an ``mqbroker`` process on the same machine.

    python benchmarks/client_sync.py [--seconds 4] [--body 1024]

Sends of one thread that wait for their answer, of eight threads, futures of ``send_soon``, batches of 32; messages
polled and iterated; and what an empty call to the event loop's thread and back costs.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from client_send import BATCH, QUEUES, TOPIC
from processes.own_servers import servers

from cometmq.base.errors import CometError
from cometmq.client import LitePullConfig, Message, SendResult
from cometmq.client.sync import LitePullConsumer, Producer
from cometmq.client.sync import loop as loops

ROUNDS = 3
THREADS = 8
IN_FLIGHT = 256
HOPS = 20_000
START_SECONDS_MAX = 60.0
POLL_BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each round")
    parser.add_argument("--body", type=int, default=1024)
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="cometmq-client-sync-")
    try:
        with servers(Path(directory), queues=QUEUES) as started:
            name_server = started.name_server
            _measure(name_server, arguments.seconds, b"x" * arguments.body)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(name_server: str, seconds: float, body: bytes) -> None:
    print(f"bodies of {len(body)} bytes")
    print(f"  empty call   {_hop_microseconds():>10.1f} us there and back")
    with Producer("client-sync", name_servers=name_server) as producer:
        until_served(producer)
        _best("send", seconds, lambda until: send_one_by_one(producer, body, until))
        _best(f"{THREADS} threads", seconds, lambda until: _send_in_threads(producer, body, until))
        _best("send_soon", seconds, lambda until: _send_soon(producer, body, until))
        _best("batches", seconds, lambda until: _send_batches(producer, body, until))
    for name, read in (("poll", _poll), ("iterate", _iterate)):
        config = LitePullConfig(
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            pull_batch_size=POLL_BATCH,
            auto_commit=False,
        )
        with LitePullConsumer(
            f"client-sync-{name}", name_servers=name_server, config=config
        ) as consumer:
            consumer.subscribe(TOPIC)
            # The first message comes when the queues are shared out.
            next(iter(consumer))
            _rate(name, lambda until, read=read, consumer=consumer: read(consumer, until), seconds)


def _best(name: str, seconds: float, work: Callable[[float], int]) -> None:
    work(time.perf_counter() + 0.5)
    rates = []
    for _ in range(ROUNDS):
        cpu, started = time.process_time(), time.perf_counter()
        count = work(started + seconds)
        elapsed = time.perf_counter() - started
        rates.append((count / elapsed, (time.process_time() - cpu) / count * 1e6))
    rate, cpu_us = max(rates)
    print(f"  {name:<12} {rate:>10,.0f} messages/s; CPU of the client each: {cpu_us:.1f} us")


def _rate(name: str, work: Callable[[float], int], seconds: float) -> None:
    started = time.perf_counter()
    count = work(started + seconds)
    print(f"  {name:<12} {count / (time.perf_counter() - started):>10,.0f} messages/s")


def _hop_microseconds() -> float:
    async def nothing() -> None:
        pass

    loop = loops.acquire()
    try:
        started = time.perf_counter()
        for _ in range(HOPS):
            loop.run(nothing)
        return (time.perf_counter() - started) / HOPS * 1e6
    finally:
        loops.release(loop)


def send_one_by_one(producer: Producer, body: bytes, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        producer.send(Message(topic=TOPIC, body=body, tags="t"))
        count += 1
    return count


def _send_in_threads(producer: Producer, body: bytes, until: float) -> int:
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(send_one_by_one(producer, body, until)))
        for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def _send_soon(producer: Producer, body: bytes, until: float) -> int:
    count = 0
    under_way: deque[Future[SendResult]] = deque()
    while time.perf_counter() < until:
        under_way.append(producer.send_soon(Message(topic=TOPIC, body=body, tags="t")))
        if len(under_way) >= IN_FLIGHT:
            under_way.popleft().result()
            count += 1
    for future in under_way:
        future.result()
    return count + len(under_way)


def _send_batches(producer: Producer, body: bytes, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        producer.send_batch([Message(topic=TOPIC, body=body, tags="t") for _ in range(BATCH)])
        count += BATCH
    return count


def _poll(consumer: LitePullConsumer, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        count += len(consumer.poll())
    return count


def _iterate(consumer: LitePullConsumer, until: float) -> int:
    count = 0
    for _ in consumer:
        count += 1
        if time.perf_counter() >= until:
            break
    return count


def until_served(producer: Producer) -> None:
    deadline = time.perf_counter() + START_SECONDS_MAX
    while True:
        try:
            producer.send(Message(topic=TOPIC, body=b"x"))
            return
        except CometError:
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    main()
