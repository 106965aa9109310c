"""Accepted sockets that speak TLS, until they are connections. Bounded in number and time.

Peers that begin a handshake and then wait cannot keep others out: one too many ends the oldest, which is no loss, since
a peer that means well is done in a moment.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from cometmq.model.address import join_address
from cometmq.remoting.bounds.reached import Reached
from cometmq.remoting.remoting_config import RemotingServerConfig

logger = logging.getLogger("cometmq.remoting")

SHUTDOWN_SECONDS: Final = 1.0


class Handshakes:
    """Owned by the event loop."""

    def __init__(
        self, context: ssl.SSLContext, config: RemotingServerConfig, reached: Reached
    ) -> None:
        self._context = context
        self._seconds_max = config.handshake_millis_max / 1000
        self._count_max = config.handshakes_max
        self._reached = reached
        self._tasks: dict[asyncio.Task[None], None] = {}
        """The oldest first."""

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, sock: socket.socket, make: Callable[[], asyncio.BaseProtocol]) -> None:
        """Greet a peer; ``make`` makes its connection when that is done."""
        if len(self._tasks) >= self._count_max:
            oldest = next(iter(self._tasks))
            del self._tasks[oldest]
            oldest.cancel()
            self._reached.count("tlsHandshakesMax")
        task = asyncio.get_running_loop().create_task(self._greet(sock, make))
        self._tasks[task] = None
        task.add_done_callback(self._end)

    async def stop(self) -> None:
        """End all that are under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=SHUTDOWN_SECONDS)

    async def _greet(self, sock: socket.socket, make: Callable[[], asyncio.BaseProtocol]) -> None:
        peer = peer_text(sock)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                make,
                sock,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds_max,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
        except OSError as error:
            # ssl.SSLError and TimeoutError are OSErrors too.
            logger.warning("tls handshake failed peer=%s reason=%s", peer, error)
            sock.close()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)


def peer_text(sock: socket.socket) -> str:
    try:
        host, port = sock.getpeername()[:2]
    except OSError:
        return "gone"
    return join_address(host, port)
