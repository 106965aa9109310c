"""A connection without a socket: a transport that records, and the far end's view of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from cometmq.protocol.command import Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes
from cometmq.remoting import turn as turn_module
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.endpoint import Endpoint
from cometmq.remoting.remoting_config import ConnectionLimits


class RecordingTransport(asyncio.Transport):
    def __init__(self, peername: tuple[Any, ...] | None) -> None:
        super().__init__({"peername": peername})
        self.writes: list[bytes] = []
        self.unsent_bytes = 0
        self.is_reading_now = True
        self.is_closed = False
        self.is_aborted = False
        self.has_sent_eof = False
        self.water_marks: tuple[int | None, int | None] = (None, None)
        self.protocol: asyncio.BaseProtocol = asyncio.Protocol()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert not self.is_closed
        assert not self.has_sent_eof
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.water_marks = (high, low)

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def pause_reading(self) -> None:
        assert self.is_reading_now
        self.is_reading_now = False

    def resume_reading(self) -> None:
        assert not self.is_reading_now
        self.is_reading_now = True

    def is_closing(self) -> bool:
        return self.is_closed or self.is_aborted

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.has_sent_eof = True

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True


class Peer:
    """The other end of one connection. Make it inside a running loop."""

    def __init__(
        self,
        *,
        is_accepted: bool = True,
        limits: ConnectionLimits | None = None,
        peername: tuple[Any, ...] | None = ("10.0.0.7", 4711),
        beside: Peer | None = None,
    ) -> None:
        """``beside``: another peer of the same endpoint."""
        self.closed: list[Connection] = []
        if beside is None:
            self.dispatcher = Dispatcher()
            self.endpoint = Endpoint(
                self.dispatcher, limits or ConnectionLimits(), self.closed.append
            )
        else:
            self.dispatcher, self.endpoint = beside.dispatcher, beside.endpoint
        self.connection = Connection(self.endpoint, is_accepted=is_accepted)
        self.transport = RecordingTransport(peername)
        self.transport.set_protocol(self.connection)
        self.connection.connection_made(self.transport)

    def queues(self, *commands: Command) -> None:
        """Commands that wait for the next turn."""
        self.connection.data_received(b"".join(map(encode_bytes, commands)))

    def sends(self, *commands: Command) -> None:
        """All in one chunk."""
        self.gives(b"".join(map(encode_bytes, commands)))

    def gives(self, data: bytes) -> None:
        """Bytes, and the end of the loop's turn."""
        self.connection.data_received(data)
        self.endpoint.turn.run()

    @property
    def received(self) -> list[Command]:
        return list(FrameDecoder().feed(b"".join(self.transport.writes)))


@pytest.fixture(autouse=True)
def _turns_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a turn may be over at any time; ``test_turns`` says when."""
    monkeypatch.setattr(turn_module, "TURN_SECONDS", math.inf)


@pytest.fixture
def make_peer() -> Callable[..., Peer]:
    return Peer
