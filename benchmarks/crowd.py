"""Sends while 10,000 idle connections are open, and while 2,000 others come and go every second.

    python benchmarks/crowd.py [--idle 10000] [--connects 2000] [--seconds 5] [--core 0]

The broker is bound to one core, the load program and the crowd to the others. Three rounds of: alone, with the idle
connections, with those and the connects; the medians count. Each connect says one request (a heartbeat without groups),
gets its answer and closes. The goal is half of the speed that the broker has alone. The crowd comes from several
addresses of the loopback network: no machine has 10,000 free ports for one address and target otherwise left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from benchmarks.compare.load import LoadProgram, NoCompiler, build
from benchmarks.processes.own_servers import Servers, servers

from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes

ROUNDS: Final = 3
GOAL: Final = 0.5
SPARE_DESCRIPTORS: Final = 500
ADDRESSES: Final = 8
BIND_ADDRESS_NO_PORT: Final = 24
"""Linux: the port is chosen at the connect, which is fast with many ports in use."""
AT_ONCE: Final = 200
READY_SECONDS_MAX: Final = 30.0
QUESTION: Final = encode_bytes(Command(RequestCode.HEART_BEAT, body=b'{"clientID":"crowd"}'))
RESULT: Final = Path(__file__).parent / "results" / "crowd.json"
LIMITS: Final = "serverConnectionsMax=60000\nserverConnectionsPerAddressMax=60000\n"
TITLES: Final = {
    "alone": "alone",
    "idle": "with idle connections",
    "connects": "with those, and connects",
}


def main() -> int:
    wish = _parse()
    if (fault := _descriptor_fault(wish.idle)) is not None:
        print(fault, file=sys.stderr)
        return 3
    try:
        program = build()
    except NoCompiler as error:
        print(f"benchmark cannot run: {error}", file=sys.stderr)
        return 3
    others = sorted(os.sched_getaffinity(0) - {wish.core})
    if not others:
        print(f"the broker gets core {wish.core}, and no other core is left for its load")
        return 3
    directory = tempfile.mkdtemp(prefix="cometmq-crowd-")
    try:
        with servers(Path(directory), queues=4, settings=LIMITS) as running:
            os.sched_setaffinity(running.broker_pid, {wish.core})
            os.sched_setaffinity(0, others)
            figures = asyncio.run(_measure(running, program, wish))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    _tell(figures, wish)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--connects", type=int, default=2000, help="a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a round")
    parser.add_argument("--core", type=int, default=0, help="of the broker")
    return parser.parse_args()


def _descriptor_fault(idle: int) -> str | None:
    """Both sides need a descriptor for each connection; the broker has the limit of whoever starts it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The broker keeps a share of its descriptors for the store, whatever comes.
    wanted = int(idle * 1.35) + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return (
            f"{idle} idle connections need {wanted} file descriptors in each process, and the limit is {hard}: "
            f"raise it (ulimit -n {wanted}) or take fewer with --idle"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    return None


async def _measure(
    running: Servers, program: LoadProgram, wish: argparse.Namespace
) -> dict[str, list[dict[str, Any]]]:
    host, _, port = running.broker.rpartition(":")
    await _until_listening(host, int(port))
    crowd = Crowd(host, int(port))
    figures: dict[str, list[dict[str, Any]]] = {title: [] for title in TITLES}
    await asyncio.to_thread(_send, program, running.broker, 3.0)
    for _ in range(ROUNDS):
        figures["alone"].append(await _sends(running, program, wish.seconds))
        async with crowd.idle(wish.idle):
            figures["idle"].append(await _sends(running, program, wish.seconds))
            async with crowd.coming_and_going(wish.connects):
                result = await _sends(running, program, wish.seconds)
            figures["connects"].append(result | crowd.counts())
            assert crowd.idle_left() == wish.idle, "the broker closed idle connections"
    return figures


async def _sends(running: Servers, program: LoadProgram, seconds: float) -> dict[str, Any]:
    before = _cpu_seconds(running.broker_pid)
    result = await asyncio.to_thread(_send, program, running.broker, seconds)
    return {
        "per_second": result["per_second"],
        "busy": result["busy"],
        "broker_cpu_seconds": round(_cpu_seconds(running.broker_pid) - before, 3),
        "broker_memory_mb": _memory_mb(running.broker_pid),
    }


def _send(program: LoadProgram, address: str, seconds: float) -> dict[str, Any]:
    flags = ("--address", address, "--connections", "4", "--in-flight", "64", "--body", "1024")
    return program.run("send", (*flags, "--busy-ok"), seconds=seconds)


class Crowd:
    """Connections that do nothing, and others that come and go at a rate."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._number = 0
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._answered = 0
        self._failed = 0
        self._seconds = 0.0

    @contextlib.asynccontextmanager
    async def idle(self, count: int) -> AsyncIterator[None]:
        try:
            for _ in range(0, count, AT_ONCE):
                wanted = min(AT_ONCE, count - len(self._idle))
                self._idle += await asyncio.gather(*(self._connect() for _ in range(wanted)))
            yield
        finally:
            for _, writer in self._idle:
                writer.transport.abort()
            self._idle.clear()
            # The broker hears of the end of each.
            await asyncio.sleep(2.0)

    def idle_left(self) -> int:
        return sum(not reader.at_eof() for reader, _ in self._idle)

    @contextlib.asynccontextmanager
    async def coming_and_going(self, per_second: int) -> AsyncIterator[None]:
        self._answered = self._failed = 0
        over = threading.Event()
        started = time.monotonic()
        visits = asyncio.create_task(asyncio.to_thread(self._come_and_go, per_second, over))
        try:
            yield
        finally:
            self._seconds = time.monotonic() - started
            over.set()
            await visits

    def counts(self) -> dict[str, Any]:
        rate = self._answered / self._seconds
        return {"connects_per_second": round(rate), "connects_failed": self._failed}

    def _come_and_go(self, per_second: int, over: threading.Event) -> None:
        """In step with the clock: who is late does not come less often.

        With bare sockets: streams would take all of a core, and the load program would have to wait for it.
        """
        poll = select.epoll()
        visitors: dict[int, socket.socket] = {}
        begun, started = 0, time.monotonic()
        while not over.is_set():
            due = int((time.monotonic() - started) * per_second)
            for _ in range(min(due - begun, AT_ONCE - len(visitors))):
                begun += 1
                visitor = self._visit()
                visitors[visitor.fileno()] = visitor
                poll.register(visitor, select.EPOLLIN)
            for descriptor, _ in poll.poll(0.002):
                visitor = visitors.pop(descriptor)
                is_answered = bool(visitor.recv(4096))
                self._answered += is_answered
                self._failed += not is_answered
                visitor.close()
        for visitor in visitors.values():
            visitor.close()
        poll.close()

    def _visit(self) -> socket.socket:
        visitor = socket.socket()
        # Reset, not closed: the machine would keep each port for a minute otherwise.
        visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        visitor.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        visitor.bind((self._own_address(), 0))
        visitor.connect(self._target)
        visitor.sendall(QUESTION)
        return visitor

    def _own_address(self) -> str:
        self._number += 1
        return f"127.0.1.{1 + self._number % ADDRESSES}"

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        own = (self._own_address(), 0)
        return await asyncio.open_connection(*self._target, local_addr=own, limit=1024)


async def _until_listening(host: str, port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _tell(figures: dict[str, list[dict[str, Any]]], wish: argparse.Namespace) -> None:
    medians = {
        name: statistics.median(one["per_second"] for one in rounds)
        for name, rounds in figures.items()
    }
    for name, title in TITLES.items():
        share = medians[name] / medians["alone"]
        verdict = "" if name == "alone" else f"{share:.2f} of alone, goal {GOAL}"
        memory = max(one["broker_memory_mb"] for one in figures[name])
        busy = sum(one["busy"] for one in figures[name])
        refused = f"  {busy} refused as busy" if busy else ""
        cpu = statistics.median(one["broker_cpu_seconds"] for one in figures[name]) / wish.seconds
        print(
            f"{title:28} {medians[name]:10,.0f} sends/s  broker {memory:4.0f} MB, {cpu:.2f} of its core"
            f"  {verdict}{refused}"
        )
    connects = [one["connects_per_second"] for one in figures["connects"]]
    failed = sum(one["connects_failed"] for one in figures["connects"])
    print(f"{'connects':28} {statistics.median(connects):10,.0f} a second, {failed} failed")
    RESULT.write_text(json.dumps({"idle": wish.idle, "rounds": figures}, indent=1) + "\n")
    print(f"written: {RESULT}", file=sys.stderr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired:
        sys.exit("the load program did not end")
