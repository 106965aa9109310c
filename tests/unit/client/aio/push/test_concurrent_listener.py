"""Runs of messages: one worker takes them in a row while its listener does not wait; otherwise others help."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest
from tests.eventually import eventually, turns

from cometmq.base.clock import SystemClock
from cometmq.client.aio.push.concurrent_listener import RUN_MESSAGES, ConcurrentListener
from cometmq.client.aio.push.listener_call import ListenerCall
from cometmq.client.aio.push.send_back import SendBack
from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import Instruction
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import Outcome
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

Listener = Callable[[ReceivedMessage], Awaitable[object]]


class Bench:
    """A concurrent listener with one queue. It broadcasts, so that what fails is passed over at once.

    Args:
        sends_back: it does not; all calls take too long, and what is sent back stays on its way until ``gate`` is open.
    """

    def __init__(self, listener: Listener, workers: int, *, sends_back: bool = False) -> None:
        self.gate = asyncio.Event()
        self.sent_back: list[int] = []
        self.told: list[Instruction] = []
        self.call = ListenerCall("g", listener=listener)
        self.held = HeldQueue(
            MessageQueue("b", 0, "T"), 0, rules=MemberRules(is_broadcast=not sends_back), now=0.0
        )
        self.listener = ConcurrentListener(
            self.call,
            group="g",
            worker_count=workers,
            batch_max=1,
            timeout=0.0 if sends_back else 60.0,
            send_back=cast(SendBack, self) if sends_back else None,
            do=self.told.extend,
            clock=SystemClock(),
        )

    def deliver(self, count: int) -> None:
        start = self.held.process.next_offset
        messages = [
            ReceivedMessage(topic="T", body=b"x", queue_offset=offset)
            for offset in range(start, start + count)
        ]
        self.listener.deliver(self.held, self.held.process.add(messages, start + count))

    async def send_back(self, message: ReceivedMessage, queue: MessageQueue, level: int) -> bool:
        self.sent_back.append(message.queue_offset)
        return await self.gate.wait()

    def is_idle(self) -> bool:
        return not self.held.jobs_open and not self.held.process.count


@asynccontextmanager
async def bench(
    listener: Listener, *, workers: int = 4, sends_back: bool = False
) -> AsyncIterator[Bench]:
    one = Bench(listener, workers, sends_back=sends_back)
    one.listener.start()
    try:
        yield one
    finally:
        await one.listener.close(1.0)


async def test_a_listener_that_never_waits_gets_all_in_order_from_one_task() -> None:
    seen: list[tuple[int, object]] = []

    async def listener(message: ReceivedMessage) -> None:
        seen.append((message.queue_offset, asyncio.current_task()))

    async with bench(listener) as one:
        one.deliver(RUN_MESSAGES)
        await eventually(one.is_idle)
    assert [offset for offset, _ in seen] == list(range(RUN_MESSAGES))
    assert len({task for _, task in seen}) == 1
    assert one.held.consumed_count == RUN_MESSAGES


@pytest.mark.parametrize("waiting_at", [0, 1, 30, RUN_MESSAGES - 1])
async def test_what_is_behind_a_waiting_call_does_not_wait_for_it(waiting_at: int) -> None:
    gate = asyncio.Event()
    seen: list[int] = []

    async def listener(message: ReceivedMessage) -> None:
        if message.queue_offset == waiting_at:
            await gate.wait()
        seen.append(message.queue_offset)

    async with bench(listener, workers=2) as one:
        one.deliver(RUN_MESSAGES)
        others = [offset for offset in range(RUN_MESSAGES) if offset != waiting_at]
        await eventually(lambda: seen == others)
        await turns()
        assert one.held.jobs_open == 1
        assert one.held.process.commit_offset == waiting_at
        gate.set()
        await eventually(one.is_idle)
    assert seen == [*others, waiting_at]
    assert one.held.consumed_count == RUN_MESSAGES


async def test_as_many_calls_wait_side_by_side_as_there_are_workers() -> None:
    gate = asyncio.Semaphore(0)
    waiting = most = 0

    async def listener(message: ReceivedMessage) -> None:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await gate.acquire()
        waiting -= 1

    async with bench(listener, workers=5) as one:
        one.deliver(3 * RUN_MESSAGES)
        await eventually(lambda: waiting == 5)
        for _ in range(3 * RUN_MESSAGES):
            gate.release()
            await turns()
        await eventually(one.is_idle)
    assert most == 5


async def test_only_what_fails_fails() -> None:
    async def listener(message: ReceivedMessage) -> object:
        match message.queue_offset % 5:
            case 1:
                raise ValueError("no")
            case 2:
                await asyncio.sleep(0)
                raise ValueError("no, after a while")
            case 3:
                return Outcome.later()
            case 4:
                raise asyncio.CancelledError
        return Outcome.consumed

    async with bench(listener) as one:
        one.deliver(25)
        await eventually(one.is_idle)
        assert (one.held.consumed_count, one.held.failed_count) == (5, 20)
        assert len(one.told) == 20


async def test_a_listener_that_cannot_even_be_called_fails() -> None:
    async def listener(message: ReceivedMessage, *, needed: int) -> None:
        raise AssertionError

    async with bench(functools.partial(listener)) as one:
        one.deliver(3)
        await eventually(one.is_idle)
        assert one.held.failed_count == 3


async def test_a_listener_may_be_an_object_that_gives_something_else_to_await() -> None:
    class Listener:
        def __init__(self) -> None:
            self.offsets: list[int] = []

        async def __call__(self, message: ReceivedMessage) -> None:
            self.offsets.append(message.queue_offset)

    plain = Listener()
    async with bench(plain) as one:
        one.deliver(3)
        await eventually(one.is_idle)
    assert plain.offsets == [0, 1, 2]

    taken: list[int] = []

    async def take(message: ReceivedMessage) -> None:
        taken.append(message.queue_offset)

    async with bench(take) as one:
        one.call._listener = lambda message: asyncio.ensure_future(take(message))
        one.deliver(3)
        await eventually(one.is_idle)
        assert sorted(taken) == [0, 1, 2]
        assert one.held.consumed_count == 3


async def test_a_listener_that_gives_nothing_to_await_fails() -> None:
    seen: list[int] = []

    async def listener(message: ReceivedMessage) -> None:
        raise AssertionError

    async with bench(listener) as one:
        one.call._listener = lambda message: seen.append(message.queue_offset)
        one.deliver(3)
        await eventually(one.is_idle)
        assert (one.held.consumed_count, one.held.failed_count) == (0, 3)
    assert sorted(seen) == [0, 1, 2]


async def test_a_message_that_cannot_be_read_fails_without_a_call() -> None:
    seen: list[int] = []

    async def listener(message: ReceivedMessage) -> None:
        seen.append(message.queue_offset)

    async with bench(listener) as one:
        messages = [ReceivedMessage(topic="T", body=b"x", queue_offset=n) for n in range(5)]
        messages[2].body_error = "damaged"
        one.listener.deliver(one.held, one.held.process.add(messages, 5))
        await eventually(one.is_idle)
    assert sorted(seen) == [0, 1, 3, 4]
    assert one.held.failed_count == 1


async def test_hooks_see_every_message_by_itself() -> None:
    class Hook:
        def __init__(self) -> None:
            self.offsets: list[int] = []

        def before(self, context: ConsumeContext) -> None:
            (message,) = context.messages
            self.offsets.append(message.queue_offset)

        def after(self, context: ConsumeContext) -> None:
            assert context.consumed_count == 1

    async def listener(message: ReceivedMessage) -> None:
        pass

    async with bench(listener) as one:
        # Delivered before anybody looks on: these come as a run.
        one.deliver(10)
        hook = Hook()
        one.call.hooks.append(hook)
        await eventually(one.is_idle)
    assert sorted(hook.offsets) == list(range(10))


async def test_a_cancelled_wait_goes_through_the_listener() -> None:
    ended: list[str] = []

    async def listener(message: ReceivedMessage) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    async with bench(listener, workers=1) as one:
        one.deliver(3)
        await eventually(lambda: one.listener._workers.running != [None])
    assert ended == ["cleaned up"]


async def test_a_listener_may_use_timeouts_and_context() -> None:
    results: list[str] = []

    async def listener(message: ReceivedMessage) -> None:
        try:
            async with asyncio.timeout(0.0):
                await asyncio.Event().wait()
        except TimeoutError:
            results.append("timed out")

    async with bench(listener) as one:
        one.deliver(4)
        await eventually(one.is_idle)
    assert results == ["timed out"] * 4
    assert one.held.consumed_count == 4


async def test_what_ends_while_another_late_message_is_sent_back_is_not_sent_back() -> None:
    go = asyncio.Event()
    begun: list[int] = []

    async def listener(message: ReceivedMessage) -> None:
        begun.append(message.queue_offset)
        await go.wait()

    async with bench(listener, sends_back=True) as one:
        one.deliver(2)
        await eventually(lambda: len(begun) == 2)
        sweep = asyncio.create_task(one.listener.sweep())
        await eventually(lambda: one.sent_back)
        go.set()
        await eventually(lambda: one.held.consumed_count == 1)
        one.gate.set()
        await sweep
        assert one.is_idle()
    assert len(one.sent_back) == 1


async def test_a_message_that_is_on_its_way_back_is_not_late() -> None:
    async def listener(message: ReceivedMessage) -> None:
        raise ValueError("no")

    async with bench(listener, sends_back=True) as one:
        one.deliver(1)
        await eventually(lambda: one.sent_back)
        sweep = asyncio.create_task(one.listener.sweep())
        await turns()
        one.gate.set()
        await sweep
        await eventually(one.is_idle)
    assert one.sent_back == [0]
