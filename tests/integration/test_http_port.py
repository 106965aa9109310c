"""The HTTP server of metrics, health and the address service: what it takes from strangers."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cometmq.base.errors import RemotingError
from cometmq.remoting.http.exchange import HttpAnswer, HttpRequest
from cometmq.remoting.http.http_port import HttpPort


async def hello(request: HttpRequest) -> HttpAnswer:
    await asyncio.sleep(0)
    if request.path == "/bug":
        raise ValueError("a bug")
    if request.path == "/never":
        await asyncio.Event().wait()
    return HttpAnswer(200, b"hello " + request.path.encode())


@asynccontextmanager
async def serving(**settings: float) -> AsyncIterator[HttpPort]:
    port = HttpPort(hello, noun="test", key="testPort", **settings)  # type: ignore[arg-type]
    await port.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await port.stop()
        assert not port.connections


async def ask(port: HttpPort, *chunks: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b"cut off"
    finally:
        writer.close()


def status(answer: bytes) -> bytes:
    return answer.split(b" ", 2)[1]


async def test_requests_are_answered_in_whatever_pieces_they_come() -> None:
    async with serving() as port:
        answer = await ask(port, b"GET /a", b" HTTP/1.1\r\nHost: x\r\n", b"\r\n")
        assert status(answer) == b"200"
        assert answer.endswith(b"\r\n\r\nhello /a")
        assert status(await ask(port, b"POST /a HTTP/1.1\r\n\r\n")) == b"405"
        assert status(await ask(port, b"nonsense\r\n\r\n")) == b"400"
        head = await ask(port, b"HEAD /a HTTP/1.1\r\n\r\n")
        assert status(head) == b"200"
        assert head.endswith(b"\r\n\r\n")
        # Only the first request counts.
        twice = await ask(port, b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
        assert twice.count(b"HTTP/1.1 200") == 1


async def test_a_bug_is_told_as_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as port:
        assert status(await ask(port, b"GET /bug HTTP/1.1\r\n\r\n")) == b"500"
    assert "test failed path='/bug'" in caplog.text


async def test_a_request_head_is_bounded() -> None:
    async with serving() as port:
        assert status(await ask(port, b"GET /" + b"x" * 9000)) == b"431"


async def test_who_is_slow_is_cut_off() -> None:
    async with serving(exchange_seconds=0.05) as port:
        assert await ask(port, b"GET") in (b"", b"cut off")
        assert await ask(port, b"GET /never HTTP/1.1\r\n\r\n") in (b"", b"cut off")


async def test_connections_beyond_the_bound_are_closed() -> None:
    async with serving(connections_max=1) as port:
        _, first = await asyncio.open_connection("127.0.0.1", port.port)
        while not port.connections:
            await asyncio.sleep(0.001)
        assert await ask(port, b"GET /a HTTP/1.1\r\n\r\n") in (b"", b"cut off")
        first.write(b"GET /a HTTP/1.1\r\n\r\n")
        first.close()
        while port.connections:
            await asyncio.sleep(0.001)
        assert status(await ask(port, b"GET /a HTTP/1.1\r\n\r\n")) == b"200"


async def test_who_leaves_takes_the_work_along() -> None:
    async with serving(exchange_seconds=600) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port.port)
        # Gone for good: a client that only has nothing more to say may still listen.
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.write(b"GET /never HTTP/1.1\r\n\r\n")
        while not any(one.task for one in port.connections):
            await asyncio.sleep(0.001)
        writer.transport.abort()
        while port.connections:
            await asyncio.sleep(0.001)


async def test_a_taken_port_is_named() -> None:
    async with serving() as port:
        with pytest.raises(RemotingError, match=rf"{port.port} \(testPort\)"):
            await HttpPort(hello, noun="test", key="testPort").start("127.0.0.1", port.port)
