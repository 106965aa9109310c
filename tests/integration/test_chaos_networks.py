"""The two networks of the chaos harness do to a real connection what they are told."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest
from tests.chaos.plan.faults import Fault
from tests.chaos.world import namespaces
from tests.chaos.world.network import CLIENTS, NAME_SERVER, Network, links_under
from tests.chaos.world.proxies import Proxies

HOSTS: Final = [CLIENTS, NAME_SERVER, "b1"]
DELAY_MS: Final = 50
SILENCE_SECONDS: Final = 0.5

ECHO: Final = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
connection, _ = server.accept()
while data := connection.recv(65536):
    connection.sendall(data)
"""

needs_root = pytest.mark.skipif(not namespaces.is_possible(), reason="namespaces need root")
networks = pytest.mark.parametrize(
    "make", [Proxies, pytest.param(namespaces.Namespaces, marks=needs_root)]
)


class Peer:
    """A connection from the clients to a server on ``b1`` that sends everything back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def round_trip_seconds(self) -> float:
        began = time.monotonic()
        self.writer.write(b"ping")
        assert await self._reader.readexactly(4) == b"ping"
        return time.monotonic() - began

    async def is_silent(self) -> bool:
        """Sends something; it comes later, or never."""
        self.writer.write(b"ping")
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._reader.readexactly(4)
        except TimeoutError:
            return True
        return False

    async def rest_comes(self) -> None:
        assert await self._reader.readexactly(4) == b"ping"


@asynccontextmanager
async def joined(network: Network) -> AsyncIterator[Peer]:
    await network.start()
    try:
        await network.add(NAME_SERVER, "")
        place = await network.add("b1", "b1")
        server = await asyncio.create_subprocess_exec(
            *(*place.command, sys.executable, "-c", ECHO, place.bind, str(place.port)),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            assert await server.stdout.readline() == b"ready\n"
            reader, writer = await asyncio.open_connection(place.address, place.port)
            yield Peer(reader, writer)
            writer.close()
        finally:
            server.kill()
            await server.wait()
    finally:
        await network.stop()


@networks
@pytest.mark.slow
@pytest.mark.parametrize("kind", [Fault.CUT, Fault.CUT_IN, Fault.CUT_OUT])
async def test_a_link_that_is_cut_carries_nothing_until_it_is_good_again(
    make: Callable[[int], Network], kind: Fault
) -> None:
    network = make(1)
    async with joined(network) as peer, asyncio.timeout(30):
        await peer.round_trip_seconds()
        await network.set_links(links_under(kind, "b1", 0, HOSTS))
        assert await peer.is_silent()
        await network.set_links({})
        await peer.rest_comes()
        await peer.round_trip_seconds()


@networks
async def test_a_slow_link_takes_its_time_both_ways(make: Callable[[int], Network]) -> None:
    network = make(1)
    async with joined(network) as peer, asyncio.timeout(30):
        await network.set_links(links_under(Fault.SLOW, "b1", DELAY_MS, HOSTS))
        assert await peer.round_trip_seconds() >= 2 * DELAY_MS / 1000
