"""What a million messages that wait cost: memory, the throughput of plain sends, and how late the due ones come.

    python -m benchmarks.timer [--timed 1000000] [--levels 100000] [--rounds 3] [--rate 2000] [--seconds 10]

Two brokers, one of them without a waiting message, take plain sends in turns, so that whoever else uses the machine
disturbs both. Then messages come due at a steady rate in the full one, with and without plain sends beside them, and a
client that pulls notes when they arrive. Everything is on this machine: the client's own slowness counts, too.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.compare.load import LoadProgram, build

from cometmq.cli.server_process import ServerProcess
from cometmq.model.messages.properties import render_properties
from cometmq.model.messages.record import decode_records
from cometmq.protocol.command import Command
from cometmq.protocol.frame import decode_bytes, encode_bytes

BODY = b"x" * 100
FAR_SECONDS = (1800, 40 * 86_400)
"""Those that wait do so beyond the end of the measurement."""
IN_FLIGHT = 256
QUEUES = 4
BUSY = 2
TOPIC = "Due"
SETTLE_SECONDS = 3.0
_LENGTH = struct.Struct(">i")


class Pipe:
    """One connection, many requests at once, answered in any order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def reply(self) -> Command:
        head = await self._reader.readexactly(4)
        return decode_bytes(head + await self._reader.readexactly(_LENGTH.unpack(head)[0]))

    async def ask(self, command: Command) -> Command:
        self._writer.write(encode_bytes(command))
        return await self.reply()

    async def send_all(self, commands: Iterator[Command]) -> int:
        """Send them all, with a window; again what a busy broker refuses. How often it did."""
        refused = 0
        under_way: dict[int, Command] = {}
        for opaque, command in enumerate(commands):
            command.opaque = opaque
            under_way[opaque] = command
            self._writer.write(encode_bytes(command))
            if len(under_way) == IN_FLIGHT:
                await self._writer.drain()
                for _ in range(IN_FLIGHT // 2):
                    refused += await self._settle(under_way)
        while under_way:
            refused += await self._settle(under_way)
        return refused

    async def _settle(self, under_way: dict[int, Command]) -> int:
        reply = await self.reply()
        if reply.code == BUSY:
            await asyncio.sleep(0.01)
            self._writer.write(encode_bytes(under_way[reply.opaque]))
            return 1
        if reply.code != 0:
            raise SystemExit(f"a send was answered {reply.code}: {reply.remark}")
        del under_way[reply.opaque]
        return 0

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Pipe]:
    host, _, port = address.partition(":")
    pipe = Pipe(*await asyncio.open_connection(host, int(port), limit=1 << 20))
    try:
        yield pipe
    finally:
        pipe.close()


async def main(options: argparse.Namespace) -> None:
    load = build()
    with tempfile.TemporaryDirectory() as directory:
        empty = ServerProcess(f"{directory}/empty")
        full = ServerProcess(f"{directory}/full")
        try:
            await empty.start()
            await full.start()
            await fill(full, options.timed, options.levels)
            await compare(load, empty, full, options.rounds)
            await due(full, options.rate, options.seconds, None)
            await due(full, options.rate, options.seconds, load)
            await full.stop()
            _print("stop and start again with all that waits", await full.start(), "s")
            _print("resident memory after that", _rss_mb(full.pid), "MB")
        finally:
            await empty.stop()
            await full.stop()


async def fill(servers: ServerProcess, timed: int, levels: int) -> None:
    await asyncio.sleep(SETTLE_SECONDS)
    before = _rss_mb(servers.pid)
    now = int(time.time() * 1000)
    low, high = (seconds * 1000 for seconds in FAR_SECONDS)
    started = time.perf_counter()
    async with connected(servers.broker) as pipe:
        refused = await pipe.send_all(
            # Times that jump about, as those of many senders do.
            _send("Far", {"TIMER_DELIVER_MS": str(now + low + number * 7919 * 2003 % (high - low))})
            for number in range(timed)
        )
        took = time.perf_counter() - started
        _print(f"{timed} timed messages sent, per second", timed / took, f"({refused} refused)")
        started = time.perf_counter()
        refused = await pipe.send_all(_send("Far", {"DELAY": "18"}) for _ in range(levels))
        took = time.perf_counter() - started
        _print(f"{levels} delayed messages sent, per second", levels / took, f"({refused} refused)")
    await asyncio.sleep(SETTLE_SECONDS)
    _print("resident memory, before", before, "MB")
    _print("resident memory, all of them waiting", _rss_mb(servers.pid), "MB")
    _print("of this in files that are mapped", _rss_mb(servers.pid, "RssFile"), "MB")


async def compare(
    load: LoadProgram, empty: ServerProcess, full: ServerProcess, rounds: int
) -> None:
    found: dict[ServerProcess, list[float]] = {empty: [], full: []}
    for _ in range(rounds):
        for servers in (empty, full):
            found[servers].append(await plain_sends(load, servers, 4.0))
    rates = [statistics.median(found[servers]) for servers in (empty, full)]
    _print("plain sends per second, nothing waits", rates[0], "")
    _print("plain sends per second, all of them waiting", rates[1], "")
    _print("kept", 100 * rates[1] / rates[0], "%")


async def plain_sends(load: LoadProgram, servers: ServerProcess, seconds: float) -> float:
    arguments = ["--address", servers.broker, "--connections", "4", "--in-flight", "64"]
    result = await asyncio.to_thread(
        load.run, "send", [*arguments, "--body", "1024"], seconds=seconds
    )
    return float(result["per_second"])


async def due(servers: ServerProcess, rate: int, seconds: int, load: LoadProgram | None) -> None:
    """Messages due ``rate`` times a second; how late they arrive at a client that pulls."""
    topic = TOPIC + ("Loaded" if load else "")
    count = rate * seconds
    start = int(time.time() * 1000) + 5000 + count // 5
    late: list[float] = []
    async with connected(servers.broker) as pipe:
        for queue_id in range(QUEUES):
            await pipe.ask(_send(topic, {}, queue_id))
        commands = (
            _send(
                topic,
                {"TIMER_DELIVER_MS": str(start + number * 1000 // rate)},
                number % QUEUES,
            )
            for number in range(count)
        )
        await pipe.send_all(commands)
    assert time.time() * 1000 < start, "the messages were sent too slowly"
    stopping = asyncio.Event()
    pulls = [
        asyncio.create_task(arrivals(servers.broker, topic, queue_id, count // QUEUES, late))
        for queue_id in range(QUEUES)
    ]
    sends = None if load is None else asyncio.create_task(busy(load, servers, stopping))
    await asyncio.gather(*pulls)
    stopping.set()
    beside = ""
    if sends is not None:
        beside = f", beside {await sends:.0f} plain sends a second"
    late.sort()
    print(f"{len(late)} messages, {rate} due a second{beside}:")
    for percent in (50, 99, 99.9, 100):
        index = min(int(len(late) * percent / 100), len(late) - 1)
        _print(f"  {percent} % arrive within", late[index], "ms")
    assert late[0] >= 0, f"one came {late[0]} ms early"


async def busy(load: LoadProgram, servers: ServerProcess, stopping: asyncio.Event) -> float:
    rates = []
    while not stopping.is_set():
        rates.append(await plain_sends(load, servers, 2.0))
    return statistics.median(rates)


async def arrivals(address: str, topic: str, queue_id: int, count: int, late: list[float]) -> None:
    offset = 1
    async with connected(address) as pipe:
        while offset <= count:
            ext = {
                "consumerGroup": "CG",
                "topic": topic,
                "queueId": str(queue_id),
                "queueOffset": str(offset),
                "maxMsgNums": "32",
                "sysFlag": "6",
                "suspendTimeoutMillis": "15000",
                "subscription": "*",
            }
            reply = await pipe.ask(Command(11, ext))
            now = time.time() * 1000
            if reply.code != 0:
                continue
            for record in decode_records(reply.body):
                late.append(now - int(record.properties["TIMER_DELIVER_MS"]))
                offset += 1


def _send(topic: str, properties: dict[str, str], queue_id: int = 0) -> Command:
    ext = {
        **{"a": "PG", "b": topic, "c": "TBW102", "d": str(QUEUES), "e": str(queue_id), "f": "0"},
        **{"g": "1700000000000", "h": "0", "j": "0", "k": "false", "m": "false"},
        "i": render_properties(properties),
    }
    return Command(310, ext, BODY)


def _rss_mb(pid: int, kind: str = "VmRSS") -> float:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) / 1024


def _print(label: str, value: float, unit: str) -> None:
    print(f"{label:60} {value:12.1f} {unit}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--timed", type=int, default=1_000_000)
    parser.add_argument("--levels", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=10)
    asyncio.run(main(parser.parse_args()))
