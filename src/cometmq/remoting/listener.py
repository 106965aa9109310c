"""Listening sockets and freshly accepted ones, until it is known what they speak.

RocketMQ serves TLS and plain text on one port and tells them apart by the first byte, which is looked at without taking
it off the socket. A socket that has not sent that byte yet costs a file descriptor and an entry here, nothing more.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

from cometmq.base.errors import RemotingError

logger = logging.getLogger("cometmq.remoting")

# Out of descriptors or kernel memory: accepting again at once would spin.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REST_SECONDS = 1.0
_ACCEPTS_PER_TURN = 64
_PORT_TRIES = 8


class Listener:
    """Accepts on one or more sockets and hands each new socket on, with the address of its peer."""

    def __init__(
        self, sockets: list[socket.socket], accepted: Callable[[socket.socket, str], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._accepted = accepted
        self._rests: dict[socket.socket, asyncio.TimerHandle] = {}
        for sock in sockets:
            self._loop.add_reader(sock.fileno(), self._accept, sock)

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        for sock in self._sockets:
            rest = self._rests.pop(sock, None)
            if rest is not None:
                rest.cancel()
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets = []

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted, address = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Anything else concerns the one peer that gave up while it waited to be accepted.
                if error.errno in _EXHAUSTED:
                    self._rest(sock, error)
                    return
                continue
            accepted.setblocking(False)
            # asyncio does this only for sockets it made itself; without it a reply may wait 40 ms for an ACK.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted(accepted, address[0])

    def _rest(self, sock: socket.socket, error: OSError) -> None:
        logger.error("accept failed reason=%s retry_seconds=%g", error.strerror, _REST_SECONDS)
        self._loop.remove_reader(sock.fileno())
        self._rests[sock] = self._loop.call_later(_REST_SECONDS, self._go_on, sock)

    def _go_on(self, sock: socket.socket) -> None:
        del self._rests[sock]
        self._loop.add_reader(sock.fileno(), self._accept, sock)


class FirstByte:
    """Accepted sockets whose first byte has not come yet."""

    def __init__(self, arrived: Callable[[socket.socket, bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived = arrived
        self._since: dict[socket.socket, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def watch(self, sock: socket.socket) -> None:
        self._since[sock] = self._loop.time()
        self._loop.add_reader(sock.fileno(), self._readable, sock)

    def close_older_than(self, seconds: float) -> None:
        before = self._loop.time() - seconds
        for sock in [sock for sock, since in self._since.items() if since < before]:
            self._forget(sock)
            sock.close()

    def close(self) -> None:
        self.close_older_than(-1.0)

    def _readable(self, sock: socket.socket) -> None:
        try:
            first = sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            first = b""
        self._forget(sock)
        if first:
            self._arrived(sock, first)
        else:
            sock.close()

    def _forget(self, sock: socket.socket) -> None:
        del self._since[sock]
        self._loop.remove_reader(sock.fileno())


async def bind(
    host: str, port: int, *, backlog: int, send_buffer_bytes: int, receive_buffer_bytes: int
) -> list[socket.socket]:
    """Listening sockets on all addresses of ``host`` with one port; "" is every address of the machine.

    Raises:
        RemotingError: the name does not resolve, or the address cannot be had.
    """
    where = f"{host or '*'}:{port}"
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        # IPv4 first: its port, when any will do, is the one that the others must have as well.
        addresses = sorted({(info[0], info[4]) for info in infos})
        buffers = (send_buffer_bytes, receive_buffer_bytes)
        for _ in range(_PORT_TRIES):
            try:
                return _bind_all(addresses, port, backlog, buffers)
            except OSError as error:
                # A free IPv4 port may be taken on IPv6; another one will do.
                if port or error.errno != errno.EADDRINUSE:
                    raise
        return _bind_all(addresses, port, backlog, buffers)
    except OSError as error:
        hint = "; is another server running there?" if error.errno == errno.EADDRINUSE else ""
        raise RemotingError(f"cannot listen on {where}: {error.strerror or error}{hint}") from error


def _bind_all(
    addresses: Sequence[tuple[int, tuple[Any, ...]]],
    port: int,
    backlog: int,
    buffers: tuple[int, int],
) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for family, address in addresses:
            bound_port = port or (sockets[0].getsockname()[1] if sockets else 0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                # The kernel does without this family, though the resolver names it.
                continue
            sockets.append(sock)
            _prepare(sock, family, *buffers)
            try:
                sock.bind((address[0], bound_port, *address[2:]))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL or len(addresses) == 1:
                    raise
                sockets.pop().close()
                continue
            sock.listen(backlog)
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no such address on this machine")
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _prepare(
    sock: socket.socket, family: int, send_buffer_bytes: int, receive_buffer_bytes: int
) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # IPv4 has its own socket, so a peer's address never looks like ::ffff:10.0.0.1.
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    # Set before accepting: the accepted sockets inherit them, and the window scale is agreed at connect.
    if send_buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
