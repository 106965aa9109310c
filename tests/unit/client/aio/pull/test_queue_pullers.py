"""Pulling in the background, against brokers that are functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from tests.eventually import eventually, turns

from cometmq.base.errors import CometError, ConnectFailed
from cometmq.client.aio.pull.pull_call import PullCalls, PullResult, PullStatus
from cometmq.client.aio.pull.queue_pullers import QueuePullers
from cometmq.client.core.consume.assigned_queues import AssignedQueues
from cometmq.client.lite_pull_config import LitePullConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

QUEUE = MessageQueue(broker_name="b", queue_id=0, topic="T")
CONFIG = LitePullConfig(pull_batch_size=2, pull_threshold_for_queue=3, pull_error_delay_ms=10)

Answer = Callable[[int], Awaitable[PullResult]]


def found(*offsets: int) -> PullResult:
    return PullResult(
        status=PullStatus.FOUND,
        messages=[ReceivedMessage(topic="T", body=b"x", queue_offset=offset) for offset in offsets],
        next_offset=offsets[-1] + 1,
        min_offset=0,
        max_offset=100,
    )


class FakeCalls:
    """Every pull asks ``answer`` with its offset."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.offsets: list[int] = []

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        subscription: SubscriptionData,
        *,
        count_max: int,
        wait_seconds: float,
        timeout: float,
        is_lite: bool,
    ) -> PullResult:
        assert (queue, subscription.topic, count_max, is_lite) == (QUEUE, "T", 2, True)
        assert (wait_seconds, timeout) == (20.0, 30.0)
        self.offsets.append(offset)
        return await self.answer(offset)


class World:
    def __init__(self, answer: Answer, config: LitePullConfig = CONFIG) -> None:
        self.assigned = AssignedQueues(config.limits)
        self.calls = FakeCalls(answer)
        self.failures: list[CometError] = []
        self.begin_errors: list[CometError] = []
        self.pullers = QueuePullers(
            self.assigned,
            cast(PullCalls, self.calls),
            config,
            begin=self._begin,
            subscription=lambda topic: build_subscription(topic, "*"),
            failed=lambda queue, error: self.failures.append(error),
        )
        self.assigned.add(QUEUE)

    async def _begin(self, queue: MessageQueue) -> None:
        if self.begin_errors:
            raise self.begin_errors.pop()
        self.assigned.begin(queue, 0)


async def two_more(offset: int) -> PullResult:
    return found(offset, offset + 1)


async def never(offset: int) -> PullResult:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("only a cancellation ends this")


async def test_pulls_go_on_until_the_cache_is_full_and_again_when_it_is_not() -> None:
    world = World(two_more)
    world.pullers.start(QUEUE)
    await eventually(lambda: world.pullers.has_sleepers)
    assert world.calls.offsets == [0, 2]
    assert await world.pullers.arrival(0.0) is False
    assert len(world.assigned.take(10)) == 2
    waiting = asyncio.create_task(world.pullers.arrival(5.0))
    await asyncio.sleep(0)
    world.pullers.wake()
    assert await waiting is True
    await eventually(lambda: world.pullers.has_sleepers)
    assert world.calls.offsets == [0, 2, 4]
    world.pullers.wake()
    await turns()
    assert world.calls.offsets == [0, 2, 4]
    await world.pullers.close()


async def test_a_failed_pull_is_told_and_made_again() -> None:
    async def fail_twice(offset: int) -> PullResult:
        if len(world.calls.offsets) <= 2:
            raise ConnectFailed("nobody there")
        return await never(offset)

    world = World(fail_twice)
    world.begin_errors.append(ConnectFailed("nobody there yet"))
    world.pullers.start(QUEUE)
    await eventually(lambda: len(world.calls.offsets) == 3)
    assert world.calls.offsets == [0, 0, 0]
    assert len(world.failures) == 3
    await world.pullers.close()


async def test_a_busy_broker_is_asked_again_soon() -> None:
    busy = error_for(Command(0).reply(ResponseCode.FLOW_CONTROL, "busy"), "b:1")

    async def fail(offset: int) -> PullResult:
        raise busy

    # After any other error it would be asked again in a minute.
    world = World(fail, LitePullConfig(pull_batch_size=2, pull_error_delay_ms=60_000))
    world.pullers.start(QUEUE)
    await eventually(lambda: len(world.calls.offsets) >= 3)
    assert set(world.failures) == {busy}
    await world.pullers.close()


async def test_a_bug_is_logged_and_does_not_end_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(offset: int) -> PullResult:
        raise KeyError("a bug")

    world = World(fail)
    world.pullers.start(QUEUE)
    await eventually(lambda: len(world.calls.offsets) >= 2)
    await world.pullers.close()
    assert "a bug" in caplog.text


async def test_a_pull_that_is_held_for_the_old_place_does_not_delay_a_seek() -> None:
    world = World(never)
    world.pullers.start(QUEUE)
    await eventually(lambda: world.calls.offsets == [0])
    world.calls.answer = two_more
    world.assigned.seek(QUEUE, 50)
    world.pullers.start(QUEUE)
    await eventually(lambda: len(world.calls.offsets) >= 2)
    assert world.calls.offsets[1] == 50
    await world.pullers.close()


async def test_an_answer_that_came_in_the_moment_of_a_seek_is_dropped() -> None:
    reply: asyncio.Future[PullResult] = asyncio.get_running_loop().create_future()

    async def when_it_comes(offset: int) -> PullResult:
        return await reply

    world = World(when_it_comes)
    world.pullers.start(QUEUE)
    await eventually(lambda: world.calls.offsets == [0])
    world.calls.answer = never
    # The reply is there, but the task that waits for it has not had its turn.
    reply.set_result(found(0, 1))
    world.assigned.seek(QUEUE, 50)
    world.pullers.start(QUEUE)
    await eventually(lambda: 50 in world.calls.offsets)
    assert world.assigned.take(10) == []
    assert world.assigned.positions() == {QUEUE: 50}
    await world.pullers.close()


async def test_closing_ends_every_task_and_wakes_who_waits() -> None:
    world = World(never)
    world.pullers.start(QUEUE)
    await eventually(lambda: world.calls.offsets == [0])
    waiting = asyncio.create_task(world.pullers.arrival(60.0))
    await asyncio.sleep(0)
    await world.pullers.close()
    assert await waiting is True
    assert asyncio.all_tasks() == {asyncio.current_task()}
