"""Numbered 1 KB messages at a steady rate, and what became of each."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client import Message, SendResult, SendStatus
from cometmq.client.aio import Producer
from cometmq.model.messages.message_id import parse_offset_id

BODY_BYTES: Final = 1024
SENDERS: Final = 32
DIGITS: Final = 12
LATE_SECONDS_MAX: Final = 1.0
"""How much of what could not be sent in time is made up for."""


class Sends:
    """What was sent and how it was answered."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.acknowledged: dict[int, int] = {}
        """Where in the log each is, by number."""
        self.ok_in_a_row = 0
        self.last_error = ""
        self._next = 0

    def number(self) -> int:
        self._next += 1
        return self._next

    def answered(self, number: int, result: SendResult, due: float) -> None:
        """Args: due: when it should have been sent, by ``time.monotonic``."""
        self.statuses[result.status] += 1
        if result.status is SendStatus.SEND_OK:
            self.acknowledged[number] = parse_offset_id(result.offset_id).physical_offset
            self.ok_in_a_row += 1
        else:
            self.ok_in_a_row = 0

    def failed(self, error: CometError, due: float) -> None:
        self.statuses[type(error).__name__] += 1
        self.last_error = str(error)
        self.ok_in_a_row = 0


def number_of(body: bytes) -> int:
    return int(body[:DIGITS])


@contextlib.asynccontextmanager
async def sending(producer: Producer, topic: str, sends: Sends, rate: int) -> AsyncIterator[None]:
    """So many messages a second as long as the block runs."""
    senders = [
        asyncio.create_task(_send(producer, topic, sends, SENDERS / rate)) for _ in range(SENDERS)
    ]
    try:
        yield
    finally:
        for task in senders:
            task.cancel()
        await asyncio.gather(*senders, return_exceptions=True)


async def _send(producer: Producer, topic: str, sends: Sends, pause_seconds: float) -> None:
    fill = b"x" * (BODY_BYTES - DIGITS)
    due = time.monotonic()
    while True:
        due = max(due + pause_seconds, time.monotonic() - LATE_SECONDS_MAX)
        await asyncio.sleep(max(due - time.monotonic(), 0))
        number = sends.number()
        try:
            result = await producer.send(Message(topic=topic, body=b"%012d" % number + fill))
        except CometError as error:
            sends.failed(error, due)
            await asyncio.sleep(0.1)
        else:
            sends.answered(number, result, due)
