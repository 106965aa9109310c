"""The cases of clients.py with our client: NAME_SERVER SECONDS ROUNDS MESSAGES, a JSON line each.

The work is that of the benchmarks beside this directory; here they run with the same measure as the other clients.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import client_consume
import client_pull
import client_send
import client_sync

from cometmq.client import sync
from cometmq.client.aio import Producer

BODY = b"x" * 1024


def main(name_server: str, seconds: float, rounds: int, messages: int) -> None:
    asyncio.run(_sends(name_server, seconds, rounds))
    with sync.Producer("client-sync", name_servers=name_server) as producer:
        found = []
        for _ in range(rounds):
            cpu, started = time.process_time(), time.perf_counter()
            count = client_sync.send_one_by_one(producer, BODY, started + seconds)
            found.append(_figures(count, started, cpu))
        _tell("send-1", *max(found))
    asyncio.run(_reads(name_server, rounds, messages))


async def _sends(name_server: str, seconds: float, rounds: int) -> None:
    async with Producer("client-send", name_servers=name_server) as producer:
        await client_send.until_served(producer)
        for name, work in (
            ("send-64", client_send.send_in_flight),
            ("batch-32", client_send.send_batches),
        ):
            await _best(
                name,
                rounds,
                lambda work=work: work(producer, BODY, time.perf_counter() + seconds),  # type: ignore[misc]
            )


async def _reads(name_server: str, rounds: int, messages: int) -> None:
    found = [
        await client_consume.consume_backlog(
            name_server, "async", f"clients-{number}", messages, os.getpid()
        )
        for number in range(rounds)
    ]
    rate, cpu_us, _ = max(found)
    _tell("push", rate, cpu_us)

    async def read() -> int:
        return (await client_pull.read_lite(name_server, messages, len(BODY), 32)).count

    await _best("lite-pull", rounds, read)
    async with Producer("client-latency", name_servers=name_server) as producer:
        times = await client_consume.measure_latency(producer, name_server, "async", BODY)
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(json.dumps({"case": "latency", "p50_ms": p50 * 1000, "p99_ms": p99 * 1000}), flush=True)


async def _best(name: str, rounds: int, work: Callable[[], Awaitable[int]]) -> None:
    found = []
    for _ in range(rounds):
        cpu, started = time.process_time(), time.perf_counter()
        found.append(_figures(await work(), started, cpu))
    _tell(name, *max(found))


def _figures(count: int, started: float, cpu: float) -> tuple[float, float]:
    """Messages per second and microseconds of CPU per message."""
    elapsed = time.perf_counter() - started
    return count / elapsed, (time.process_time() - cpu) / count * 1e6


def _tell(name: str, rate: float, cpu_us: float) -> None:
    print(json.dumps({"case": name, "rate": rate, "cpu_us": cpu_us}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
