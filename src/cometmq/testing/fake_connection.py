"""A connection without a network: remembers what is sent to the client, and answers calls as told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from cometmq.model.address import pack_host
from cometmq.protocol.command import FLAG_ONEWAY, Body, Command
from cometmq.protocol.frame import decode_bytes


class FakeConnection:
    """Stands for a ``remoting.Connection`` where processors and a turn of the loop take one."""

    is_accepted = True
    held = 0
    is_handling = False
    subject = ""

    def __init__(self, port: int = 40000, host: str = "127.0.0.1") -> None:
        self.peer = f"{host}:{port}"
        self.peer_host = pack_host(host, port)
        self.commands: deque[Command] = deque()
        self.sent: list[Command] = []
        self.is_closed = False
        self.answer: Callable[[Command], Command] | None = None
        """What the client answers when the broker calls it; may raise."""

    def send(self, command: Command) -> None:
        self.sent.append(command)

    def send_frame(self, frame: bytes) -> None:
        self.sent.append(decode_bytes(frame))

    add_frame = send_frame

    def oneway(self, command: Command) -> None:
        command.flag |= FLAG_ONEWAY
        self.sent.append(command)

    def send_parts(self, parts: list[Body]) -> None:
        self.sent.append(decode_bytes(b"".join(parts)))

    async def call(self, command: Command, timeout: float) -> Command:
        self.sent.append(command)
        assert self.answer is not None, "a call that the test did not expect"
        return self.answer(command)

    def run_handler(self, handler: Coroutine[Any, Any, None], body_bytes: int = 0) -> None:
        """Run it to its end, on a loop of its own: for tests that are no coroutines."""
        asyncio.run(handler)

    def close(self, reason: str) -> None:
        self.is_closed = True

    def read_on(self) -> None:
        """All commands of the turn were handled."""

    def flush(self) -> None:
        """What is sent is there at once."""

    def take(self) -> list[Command]:
        """What was sent since the last call."""
        sent, self.sent = self.sent, []
        return sent

    def __repr__(self) -> str:
        return f"<FakeConnection {self.peer}>"
