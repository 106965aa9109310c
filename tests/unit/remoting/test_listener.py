"""Accepting when the machine has nothing left to accept with."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.remoting import listener as module
from cometmq.remoting.listener import Listener


class ExhaustedSocket(socket.socket):
    """Fails to accept as often as told, as a process without free descriptors does."""

    failures = 0
    error = errno.EMFILE
    attempts = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts += 1
        if self.failures:
            self.failures -= 1
            raise OSError(self.error, "not now")
        return super().accept()


@pytest.mark.parametrize(
    ("error", "rests"), [(errno.EMFILE, True), (errno.ECONNABORTED, False)], ids=["full", "gone"]
)
async def test_listener_rests_when_exhausted_and_goes_on(
    error: int, rests: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_REST_SECONDS", 0.01)
    listening = ExhaustedSocket()
    listening.failures = 2
    listening.error = error
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    listening.setblocking(False)
    accepted: asyncio.Queue[socket.socket] = asyncio.Queue()
    listener = Listener([listening], lambda sock, host: accepted.put_nowait(sock))
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    async with asyncio.timeout(5):
        sock = await accepted.get()
    # Two failures, the connection, and the look that finds no other: it does not spin.
    assert listening.attempts == 4
    sock.close()
    writer.close()
    listener.close()
    lines = [line for line in caplog.messages if "accept failed reason=not now" in line]
    assert len(lines) == (2 if rests else 0)


async def test_closing_while_it_rests_leaves_no_timer() -> None:
    listening = ExhaustedSocket()
    listening.failures = 1
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    listening.setblocking(False)
    listener = Listener([listening], lambda sock, host: sock.close())
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    (rest,) = await eventually(lambda: list(listener._rests.values()))
    listener.close()
    assert (rest.cancelled(), listening.attempts) == (True, 1)
    writer.close()
