"""A network of TCP proxies: every server listens at 127.0.0.1, and others find it at an address of its own, 127.88.0.N,
where a proxy passes on what comes. Needs no rights.

Bytes on a link that is cut wait, as TCP would keep them and send them again. A lost packet is a pause, as TCP's own is.
Who calls is known by where it calls: each host has its own way to the name server, and only slaves of a group call its
replication ports. Slaves that ask their master for topics and offsets count as clients.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from random import Random
from typing import Final

from tests.chaos.world.network import CLIENTS, GOOD, NAME_SERVER, Link, Links, Place
from tests.interop.servers import free_ports

CHUNK_BYTES: Final = 64 << 10
WAITING_BYTES_MAX: Final = 1 << 20
LOSS_PAUSE_SECONDS: Final = 0.2
"""TCP's first retransmission."""


class Proxies:
    def __init__(self, seed: int) -> None:
        self._links: Links = {}
        self._changed = asyncio.Event()
        self._random = Random(seed)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._groups: dict[str, str] = {}
        (self._name_server_port,) = free_ports(0)
        self.name_server = f"127.88.0.1:{self._name_server_port}"

    async def start(self) -> None:
        """The name server's host is ``NAME_SERVER``, and first."""

    async def add(self, host: str, group: str) -> Place:
        number = len(self._groups) + 1
        address = f"127.88.0.{number}"
        self._groups[host] = group
        ns_port = self._name_server_port
        if host == NAME_SERVER:
            await self._serve(address, ns_port, ns_port, CLIENTS, host)
            return Place("127.0.0.1", address, ns_port, 0, "")
        port = free_ports(0, -2, +1)[0]
        await self._serve(address, port, port, CLIENTS, host)
        await self._serve(address, port - 2, port - 2, CLIENTS, host)
        await self._serve(address, port + 1, port + 1, "", host)
        await self._serve(address, ns_port, ns_port, host, NAME_SERVER)
        return Place("127.0.0.1", address, port, port + 1, f"{address}:{ns_port}")

    async def set_links(self, links: Links) -> None:
        self._links = links
        self._changed.set()
        self._changed = asyncio.Event()

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, address: str, port: int, target: int, source: str, host: str) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._pass_on(reader, writer, target, source or self._slave_of(host), host)
            finally:
                self._tasks.discard(task)

        self._servers.append(await asyncio.start_server(accept, address, port))

    def _slave_of(self, host: str) -> str:
        group = self._groups[host]
        others = [each for each, its in self._groups.items() if its == group and each != host]
        return others[0] if others else CLIENTS

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        port: int,
        source: str,
        host: str,
    ) -> None:
        try:
            await self._open(source, host)
            await self._open(host, source)
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return
            try:
                # Whichever side ends, the connection has ended.
                pumps = [
                    asyncio.create_task(self._pump(reader, far_writer, source, host)),
                    asyncio.create_task(self._pump(far_reader, writer, host, source)),
                ]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
                    await asyncio.gather(*pumps, return_exceptions=True)
            finally:
                far_writer.close()
        finally:
            writer.close()

    async def _open(self, source: str, target: str) -> Link:
        """Wait until the link is not cut."""
        while (link := self._links.get((source, target), GOOD)).is_cut:
            await self._changed.wait()
        return link

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str, target: str
    ) -> None:
        waiting: deque[tuple[float, bytes]] = deque()
        waiting_bytes = 0
        came, went = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        async def deliver() -> None:
            nonlocal waiting_bytes
            while True:
                while not waiting:
                    came.clear()
                    await came.wait()
                due, data = waiting[0]
                link = await self._open(source, target)
                if (pause := due - loop.time()) > 0:
                    await asyncio.sleep(pause)
                if link.loss and self._random.random() < link.loss:
                    await asyncio.sleep(LOSS_PAUSE_SECONDS)
                    continue
                waiting.popleft()
                waiting_bytes -= len(data)
                went.set()
                if not data:
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.create_task(deliver())
        try:
            data = b" "
            while data and not delivery.done():
                while waiting_bytes > WAITING_BYTES_MAX:
                    went.clear()
                    await went.wait()
                with contextlib.suppress(ConnectionError):
                    data = await reader.read(CHUNK_BYTES)
                    delay = self._links.get((source, target), GOOD).delay_ms / 1000
                    waiting.append((loop.time() + delay, data))
                    waiting_bytes += len(data)
                    came.set()
                    continue
                return
            with contextlib.suppress(ConnectionError):
                await delivery
        finally:
            delivery.cancel()
            await asyncio.gather(delivery, return_exceptions=True)
