"""The HTTP address service: clients and brokers without a configured name server ask it for the list.

    GET /rocketmq/nsaddr            -> 10.0.0.1:9876;10.0.0.2:9876
    GET /rocketmq/nsaddr-UNIT?nofix=1  -> the same

One request per connection, one reply, then it is closed. Bytes, time and connections are bounded.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

from cometmq.model.address import join_address, split_addresses
from cometmq.namesrv.namesrv_config import AddressServiceConfig

PATH: Final = "/rocketmq/nsaddr"
REQUEST_BYTES_MAX: Final = 8 * 1024
REQUEST_SECONDS_MAX: Final = 10.0
CONNECTIONS_MAX: Final = 256

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    505: "HTTP Version Not Supported",
}

_log = logging.getLogger("cometmq.namesrv")


class AddressService:
    def __init__(self, config: AddressServiceConfig, namesrv_port: int) -> None:
        self._config = config
        self._namesrv_port = namesrv_port
        self._server: asyncio.Server | None = None
        self.connections: set[_HttpConnection] = set()
        self.port = 0

    async def start(self, host: str) -> int:
        """Listen; returns the bound port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _HttpConnection(self), host or None, self._config.port
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.abort()
            await self._server.wait_closed()
            self._server = None

    def answer(self, request: bytes, own_ip: str) -> bytes:
        """The complete response to a request head. ``own_ip`` is where the client reached this server."""
        method, status = _judge(request)
        body = ""
        if status == 200:
            body = ";".join(split_addresses(self._config.addresses)) or join_address(
                own_ip, self._namesrv_port
            )
        return _response(status, body, with_body=method != "HEAD")


class _HttpConnection(asyncio.Protocol):
    def __init__(self, service: AddressService) -> None:
        self._service = service
        self._transport = cast(asyncio.Transport, None)
        self._request = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._service.connections) >= CONNECTIONS_MAX:
            _log.warning("address service full connections=%d", CONNECTIONS_MAX)
            self._transport.abort()
            return
        self._service.connections.add(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(REQUEST_SECONDS_MAX, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._is_answered:
            return
        self._request += data
        # Some scripts end lines with a bare line feed.
        if b"\r\n\r\n" in self._request or b"\n\n" in self._request:
            self._answer(self._service.answer(bytes(self._request), self._own_ip()))
        elif len(self._request) > REQUEST_BYTES_MAX:
            self._answer(_response(431, "", with_body=True))

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        self._transport.abort()

    def _answer(self, response: bytes) -> None:
        self._is_answered = True
        self._transport.write(response)
        self._transport.close()

    def _own_ip(self) -> str:
        return str(self._transport.get_extra_info("sockname")[0])


def _judge(request: bytes) -> tuple[str, int]:
    """Method and status for a request head."""
    line = request.split(b"\n", 1)[0].strip().decode("latin-1")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/"):
        return "", 400
    method, target, version = parts
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        return method, 505 if version.startswith("HTTP/") else 400
    if not _is_ours(target.split("?", 1)[0]):
        return method, 404
    return method, 200 if method in ("GET", "HEAD") else 405


def _is_ours(path: str) -> bool:
    """The path itself, the path with ``-UNIT`` appended (RocketMQ's unit name), and whatever is below it."""
    return path == PATH or path.startswith((PATH + "-", PATH + "/"))


def _response(status: int, body: str, *, with_body: bool) -> bytes:
    # No line feed after the list: some clients use the body unchanged.
    content = (body or _REASONS[status]).encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\n"
        + ("Allow: GET, HEAD\r\n" if status == 405 else "")
        + "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (content if with_body else b"")
