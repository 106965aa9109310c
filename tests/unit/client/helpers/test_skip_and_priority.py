"""Old messages skipped; urgent ones first."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.helpers.priority import BlockingByPriority, ByPriority
from cometmq.client.helpers.skip_backlog import SkipOld
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.testing.fake_clock import FakeClock


def _stored(seconds_ago: float, clock: FakeClock) -> ReceivedMessage:
    return ReceivedMessage(
        topic="T", body=b"x", store_timestamp=clock.wall_ms() - round(seconds_ago * 1000)
    )


def test_old_messages_count_as_consumed() -> None:
    clock = FakeClock()
    told: list[ReceivedMessage] = []
    skip = SkipOld(seconds=60, clock=clock, on_skip=told.append)
    listener = skip.around(lambda message: "called")
    assert listener(_stored(60, clock)) == "called"
    assert listener(_stored(61, clock)) == Outcome.consumed
    assert (skip.skipped, len(told)) == (1, 1)


async def test_async_listeners_skip_too() -> None:
    clock = FakeClock()

    async def handle(message: ReceivedMessage) -> str:
        return "called"

    listener = SkipOld(seconds=1, clock=clock).around(handle)
    assert await listener(_stored(0, clock)) == "called"
    assert await listener(_stored(2, clock)) == Outcome.consumed


class FakeConsumer:
    def __init__(self, name: str, count: int, batch: int = 1) -> None:
        self.left = [
            ReceivedMessage(topic=name, body=f"{name}{number}".encode()) for number in range(count)
        ]
        self.batch = batch
        self.waits: list[float | None] = []

    async def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:
        self.waits.append(timeout)
        taken, self.left = self.left[: self.batch], self.left[self.batch :]
        return taken


def _next(by_priority: ByPriority, count: int) -> list[str]:
    async def main() -> list[str]:
        taken: list[str] = []
        async for message in by_priority:
            taken.append(message.body.decode())
            if len(taken) == count:
                break
        return taken

    return asyncio.run(main())


def test_less_urgent_messages_wait_for_all_urgent_ones() -> None:
    high, middle, low = FakeConsumer("h", 2), FakeConsumer("m", 1), FakeConsumer("l", 2)
    order = ByPriority([high, middle, low])
    assert _next(order, 4) == ["h0", "h1", "m0", "l0"]
    high.left.append(ReceivedMessage(topic="h", body=b"h2"))
    assert _next(order, 2) == ["h2", "l1"]


async def test_with_nothing_there_the_urgent_one_is_waited_for() -> None:
    high, low = FakeConsumer("h", 0), FakeConsumer("l", 0)
    assert await ByPriority([high, low], look_seconds=0.5).poll() == []
    assert (high.waits, low.waits) == ([0, 0.5], [0])


class BlockingFake(FakeConsumer):
    def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:  # type: ignore[override]
        return asyncio.run(super().poll(timeout))


def test_blocking_consumers_are_served_in_the_same_order() -> None:
    high, low = BlockingFake("h", 2), BlockingFake("l", 1)
    messages = iter(BlockingByPriority([high, low]))
    assert [next(messages).body for _ in range(3)] == [b"h0", b"h1", b"l0"]
    assert BlockingByPriority([high, low], look_seconds=0.5).poll() == []
    assert high.waits[-1] == 0.5


def test_somebody_must_be_there() -> None:
    with pytest.raises(UsageError, match="at least one"):
        ByPriority([])
    with pytest.raises(UsageError, match="at least one"):
        BlockingByPriority([])
