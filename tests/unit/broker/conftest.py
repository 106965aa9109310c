"""A connection that remembers, and an event loop that runs when told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cometmq.model.address import pack_host
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import decode_bytes


class FakePeer:
    is_accepted = True

    def __init__(self, port: int = 40000) -> None:
        self.peer = f"127.0.0.1:{port}"
        self.peer_host = pack_host("127.0.0.1", port)
        self.sent: list[Command] = []
        self.is_closed = False

    def send(self, command: Command) -> None:
        self.sent.append(command)

    def send_frame(self, frame: bytes) -> None:
        self.sent.append(decode_bytes(frame))

    add_frame = send_frame

    def oneway(self, command: Command) -> None:
        command.flag |= FLAG_ONEWAY
        self.sent.append(command)

    def close(self, reason: str) -> None:
        self.is_closed = True

    def take(self) -> list[Command]:
        sent, self.sent = self.sent, []
        return sent


class FakeLoop:
    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self.later.append((delay, callback))

    def turn(self) -> None:
        """Run what is to run soon."""
        ready, self.soon = self.soon, []
        for callback in ready:
            callback()

    def timers(self) -> None:
        """Let every timer fire that is set now."""
        due, self.later = self.later, []
        for _, callback in due:
            callback()


@pytest.fixture
def make_peer() -> Callable[..., FakePeer]:
    return FakePeer


@pytest.fixture
def fake_loop() -> FakeLoop:
    return FakeLoop()
