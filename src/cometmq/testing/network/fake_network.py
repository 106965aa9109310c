"""Connections in memory: bytes arrive late, in any pieces and in order; directions are cut, peers vanish.

cut         bytes of one direction wait, as TCP sends them again, until it is healed
reset       both ends learn that the connection is gone, bytes on the way are lost
half open   one end learns it; the other writes into the void
died        of a process: peers are told unless its machine lost power, and then at their next write after its return
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar, Final

LATENCY_SECONDS_MAX: Final = 0.004
BUFFER_BYTES_MAX: Final = 6000
"""A transport asks to pause above it."""
RETRANSMIT_SECONDS: Final = 0.5
SOONER: Final = 0.3
"""How often bytes arrive at once."""


class Process:
    """What runs on a host between a start and its end."""

    current: ClassVar[contextvars.ContextVar[Process]] = contextvars.ContextVar("process")

    def __init__(self, host: str, is_down: Callable[[], bool]) -> None:
        self.host = host
        self.is_dead = False
        self._is_down = is_down
        self.context = contextvars.Context()
        self.context.run(Process.current.set, self)

    @property
    def is_gone(self) -> bool:
        return self.is_dead or self._is_down()

    def __repr__(self) -> str:
        return f"<Process {self.host}{' dead' if self.is_dead else ''}>"


def current_process() -> Process:
    return Process.current.get()


class MemoryNetwork:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.loop: asyncio.AbstractEventLoop
        self.latency_max = LATENCY_SECONDS_MAX
        self._servers: dict[tuple[str, int], FakeServer] = {}
        self._cut: set[tuple[str, str]] = set()
        self._ends: list[MemoryTransport] = []
        self._hosts_up: set[str] = set()
        self._port = 40000

    @property
    def connections(self) -> list[MemoryTransport]:
        """The ends that connected, of connections that both ends believe in."""
        return [one for one in self._ends if one.is_client and one.is_up and one.peer.is_up]

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def cut(self, source: str, target: str) -> None:
        self._cut.add((source, target))

    def heal(self) -> None:
        self._cut.clear()
        for end in self._ends:
            end.pump()

    def latency(self) -> float:
        if self.random.random() < SOONER:
            return 0.0
        return self.random.random() * self.latency_max

    def reset(self, end: MemoryTransport) -> None:
        for one in (end, end.peer):
            one.forget()
            one.lose_later(ConnectionResetError("reset by peer"), 0.0)

    def half_open(self, end: MemoryTransport) -> None:
        """``end`` learns that the connection is gone, its peer does not."""
        end.forget()
        end.peer.forget()
        # Both: what an end writes until it is told must not arrive, since what it wrote before does not.
        end.is_in_void = end.peer.is_in_void = True
        end.lose_later(ConnectionResetError("timed out"), 0.0)

    def came_up(self, process: Process) -> None:
        self._hosts_up.add(process.host)

    def died(self, process: Process, *, is_silent: bool) -> None:
        self._hosts_up.discard(process.host)
        self._servers = {at: one for at, one in self._servers.items() if one.process is not process}
        for end in [one for one in self._ends if one.process is process and one.is_up]:
            end.is_up = False
            end.forget()
            peer = end.peer
            if not peer.is_up:
                continue
            if is_silent or self.is_cut(process.host, peer.process.host):
                peer.is_in_void = True
            else:
                peer.lose_later(ConnectionResetError("reset by peer"))
        self._ends = [one for one in self._ends if one.is_up or one.peer.is_up]

    def is_host_up(self, host: str) -> bool:
        return host in self._hosts_up

    def listen(self, server: FakeServer) -> None:
        if server.at in self._servers:
            raise OSError(f"{server.at} is in use")
        self._servers[server.at] = server

    def unlisten(self, server: FakeServer) -> None:
        if self._servers.get(server.at) is server:
            del self._servers[server.at]

    async def connect(
        self, process: Process, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]
    ) -> tuple[MemoryTransport, asyncio.BaseProtocol]:
        await asyncio.sleep(self.latency())
        while self.is_cut(process.host, host) or self.is_cut(host, process.host):  # noqa: ASYNC110 - as TCP does
            await asyncio.sleep(RETRANSMIT_SECONDS)
        if not self.is_host_up(host):
            # No machine answers.
            await asyncio.sleep(3600)
        server = self._servers.get((host, port))
        if server is None or server.process.is_gone:
            raise ConnectionRefusedError(f"{host}:{port} refused")
        self._port += 1
        near = MemoryTransport(self, process, (host, port), is_client=True)
        far = MemoryTransport(self, server.process, (process.host, self._port), is_client=False)
        near.peer, far.peer = far, near
        self._ends += [near, far]
        far.later(0.0, lambda: far.begin(server.factory()))
        near.begin(factory())
        return near, near.protocol


class FakeServer:
    def __init__(
        self,
        network: MemoryNetwork,
        process: Process,
        host: str,
        port: int,
        factory: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self.at = (host, port)
        self.process = process
        self.factory = factory
        self.sockets = [self]
        self._network = network
        network.listen(self)

    def getsockname(self) -> tuple[str, int]:
        return self.at

    def close(self) -> None:
        self._network.unlisten(self)

    async def wait_closed(self) -> None:
        return None


class MemoryTransport(asyncio.Transport):
    """One end of a connection."""

    peer: MemoryTransport
    protocol: asyncio.BaseProtocol

    def __init__(
        self,
        network: MemoryNetwork,
        process: Process,
        peer_name: tuple[str, int],
        *,
        is_client: bool,
    ) -> None:
        super().__init__({"peername": peer_name})
        self._network = network
        self.process = process
        self.is_client = is_client
        self.is_up = True
        self.is_in_void = False
        """The peer is gone, and nobody said so, or not yet."""
        self._is_closing = False
        self._is_ending = False
        self._has_begun = False
        self._is_paused = False
        self._is_pumping = False
        self._buffer = bytearray()

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol
        self._has_begun = True
        protocol.connection_made(self)
        self.peer.pump()

    def later(self, delay: float, callback: Callable[[], None]) -> None:
        """In the process of this end."""
        self._network.loop.call_later(delay, callback, context=self.process.context)

    # What the owner of this end calls.

    def write(self, data: Any) -> None:
        if self._is_closing or not self.is_up or self.process.is_gone:
            return
        if self.is_in_void:
            if self._network.is_host_up(self.peer.process.host) and self.peer.process.is_dead:
                self.lose_later(ConnectionResetError("reset by peer"))
            return
        self._buffer += data
        if len(self._buffer) > BUFFER_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self.protocol.pause_writing()
        self.pump()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def abort(self) -> None:
        if not self._is_closing or self._is_ending:
            self._is_ending = False
            self._is_closing = True
            self.later(0.0, lambda: self.lose(None))
            network = self._network
            if self.is_in_void or not self.peer.is_up:
                return
            self.forget()
            if network.is_cut(self.process.host, self.peer.process.host):
                self.peer.is_in_void = True
            else:
                self.peer.lose_later(ConnectionResetError("reset by peer"))

    def close(self) -> None:
        """What was written still arrives."""
        if self._buffer and self.is_up and not self._is_closing and not self.is_in_void:
            self._is_closing = True
            self._is_ending = True
            self.pump()
        else:
            self.abort()

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        """The network has its own pace."""

    def resume_reading(self) -> None:
        return None

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The network has its own, so small that they matter."""

    # What the network does.

    def pump(self) -> None:
        if self._buffer and not self._is_pumping and self.peer._has_begun and self.peer.is_up:
            self._is_pumping = True
            self.peer.later(self._network.latency(), self._deliver)

    def forget(self) -> None:
        """What is on its way never arrives."""
        self._buffer.clear()

    def lose(self, error: Exception | None) -> None:
        if self.is_up:
            self.is_up = False
            self._is_closing = True
            if self._has_begun and not self.process.is_gone:
                self.protocol.connection_lost(error)

    def lose_later(self, error: Exception, delay: float | None = None) -> None:
        self.later(self._network.latency() if delay is None else delay, lambda: self.lose(error))

    def _deliver(self) -> None:
        self._is_pumping = False
        network, peer = self._network, self.peer
        if not self._buffer or not peer.is_up or peer._is_closing:
            return
        if network.is_cut(self.process.host, peer.process.host):
            return
        size_bytes = len(self._buffer)
        if network.random.random() < 0.4:
            size_bytes = network.random.randint(1, size_bytes)
        data = bytes(self._buffer[:size_bytes])
        del self._buffer[:size_bytes]
        self.pump()
        if self._is_paused and len(self._buffer) < BUFFER_BYTES_MAX // 2 and self.is_up:
            self._is_paused = False
            self.later(0.0, self.protocol.resume_writing)
        if self._is_ending and not self._buffer:
            self.later(0.0, self.abort)
        peer._receive(data)

    def _receive(self, data: bytes) -> None:
        protocol = self.protocol
        if isinstance(protocol, asyncio.Protocol):
            protocol.data_received(data)
            return
        assert isinstance(protocol, asyncio.BufferedProtocol)
        while data and self.is_up:
            room = memoryview(protocol.get_buffer(-1))
            part, data = data[: len(room)], data[len(room) :]
            room[: len(part)] = part
            protocol.buffer_updated(len(part))

    def __repr__(self) -> str:
        return f"<MemoryTransport {self.process.host} to {self.get_extra_info('peername')}>"
