"""A port that answers HTTP: one request per connection, one answer, then it is closed.

Connections, bytes of a request, and the time from the connection to the end of the answer are bounded. Owned by the
event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, cast

from cometmq.base.errors import RemotingError
from cometmq.model.address import join_address
from cometmq.remoting.http.exchange import (
    HttpAnswer,
    HttpRequest,
    fault,
    is_whole,
    read_head,
    render,
)

logger = logging.getLogger("cometmq.remoting")

REQUEST_BYTES_MAX: Final = 8 * 1024
_METHODS: Final = ("GET", "HEAD")

Answer = Callable[[HttpRequest], HttpAnswer | Awaitable[HttpAnswer]]
"""Only asked about GET and HEAD."""


class HttpPort:
    """
    Args:
        noun: what it serves, for people: ``address service``.
        key: the setting that names the port, for the error when it cannot be had.
        exchange_seconds: from the connection to the last byte of the answer.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        noun: str,
        key: str,
        connections_max: int = 256,
        exchange_seconds: float = 10.0,
    ) -> None:
        self.answer = answer
        self.noun = noun
        self._key = key
        self.connections_max = connections_max
        self.exchange_seconds = exchange_seconds
        self.connections: set[_Exchange] = set()
        self.port = 0
        """The bound one."""
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the bound port. Raises RemotingError: the address cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(lambda: _Exchange(self), host or None, port)
        except OSError as error:
            raise RemotingError(
                f"cannot listen on {join_address(host or '*', port)} ({self._key}): {error.strerror or error}"
            ) from error
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Close everything, whatever is being answered."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        tasks = [exchange.task for exchange in self.connections if exchange.task is not None]
        for exchange in list(self.connections):
            exchange.abort()
        if tasks:
            await asyncio.wait(tasks)
        await server.wait_closed()

    def __repr__(self) -> str:
        return f"<HttpPort {self.noun} port={self.port} connections={len(self.connections)}>"


class _Exchange(asyncio.Protocol):
    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._transport = cast(asyncio.Transport, None)
        self._head = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._is_answered = False
        self.task: asyncio.Task[None] | None = None
        """Makes the answer, if that takes more than a moment."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        port = self._port
        if len(port.connections) >= port.connections_max:
            logger.warning("%s full connections=%d", port.noun, port.connections_max)
            self._transport.abort()
            return
        port.connections.add(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(port.exchange_seconds, self.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._head += data
        if is_whole(self._head):
            self._is_answered = True
            self._ask()
        elif len(self._head) > REQUEST_BYTES_MAX:
            self._is_answered = True
            self._send(fault(431))

    def eof_received(self) -> bool:
        # A client that has said all may still listen.
        return self._is_answered

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self.task is not None:
            self.task.cancel()

    def abort(self) -> None:
        if self.task is not None:
            self.task.cancel()
        self._transport.abort()

    def _ask(self) -> None:
        own_ip = str(self._transport.get_extra_info("sockname")[0])
        request = read_head(bytes(self._head), own_ip)
        if isinstance(request, HttpAnswer):
            self._send(request)
        elif request.method not in _METHODS:
            self._send(fault(405))
        else:
            self.task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: HttpRequest) -> None:
        try:
            answer = self._port.answer(request)
            if not isinstance(answer, HttpAnswer):
                answer = await answer
        except Exception:
            logger.exception("%s failed path=%r", self._port.noun, request.path[:100])
            answer = fault(500)
        self._send(answer, with_body=request.method != "HEAD")

    def _send(self, answer: HttpAnswer, *, with_body: bool = True) -> None:
        self._transport.write(render(answer, with_body=with_body))
        self._transport.close()
