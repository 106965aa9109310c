"""Waiting for the old owner of a queue, who is a table here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cometmq.client.aio import handover
from cometmq.client.aio.handover import Handover
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.running import ConsumerRunningInfo, ProcessQueueInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

QUEUES = [MessageQueue("b", number, "T") for number in range(3)]


class Instance:
    """Knows what other clients have, and answers for them as a broker does."""

    def __init__(self, **held: list[MessageQueue]) -> None:
        self.held = held
        self.questions = 0
        self.config = SimpleNamespace(call_seconds=3.0)

    async def find_broker(self, queue: MessageQueue) -> str:
        return "b:1"

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        assert command.code == RequestCode.GET_CONSUMER_RUNNING_INFO
        self.questions += 1
        await asyncio.sleep(0)
        queues = self.held.get((command.ext or {})["clientId"])
        if queues is None:
            return Command(ResponseCode.SYSTEM_ERROR, remark="not online")
        table = {queue: ProcessQueueInfo() for queue in queues}
        return Command(ResponseCode.SUCCESS, body=ConsumerRunningInfo(mq_table=table).encode())


def _handover(instance: Instance) -> Handover:
    made: Any = instance
    return Handover(made, "g")


def test_a_queue_that_nobody_has_is_free_at_once() -> None:
    async def scenario() -> None:
        instance = Instance(old=[QUEUES[1]], other=[])
        async with asyncio.timeout(1):
            await _handover(instance).wait(QUEUES[0], ["old", "other"], 10)
        assert instance.questions == 2

    asyncio.run(scenario())


def test_an_owner_is_waited_for_until_it_lets_go() -> None:
    async def scenario() -> None:
        instance = Instance(old=[QUEUES[0]])
        waiting = asyncio.create_task(_handover(instance).wait(QUEUES[0], ["old"], 10))
        await asyncio.sleep(0.12)
        assert not waiting.done()
        instance.held["old"].clear()
        await asyncio.wait_for(waiting, 2)

    asyncio.run(scenario())


def test_one_question_serves_all_queues_of_an_owner() -> None:
    async def scenario() -> None:
        instance = Instance(old=[])
        asking = _handover(instance)
        await asyncio.gather(*(asking.wait(queue, ["old"], 10) for queue in QUEUES))
        assert instance.questions == 1

    asyncio.run(scenario())


def test_an_owner_that_keeps_it_is_passed_over_after_its_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        instance = Instance(old=[QUEUES[0]])
        async with asyncio.timeout(2):
            await _handover(instance).wait(QUEUES[0], ["old"], 0.2)

    asyncio.run(scenario())
    assert "does not let go" in caplog.text


def test_an_owner_that_cannot_be_asked_gets_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "UNKNOWN_SECONDS", 0.05)

    async def scenario() -> None:
        instance = Instance()
        async with asyncio.timeout(2):
            await _handover(instance).wait(QUEUES[0], ["gone"], 10)
        assert instance.questions == 1

    asyncio.run(scenario())


def test_closing_ends_questions_on_their_way() -> None:
    async def scenario() -> None:
        instance = Instance(old=[QUEUES[0]])
        asking = _handover(instance)
        waiting = asyncio.create_task(asking.wait(QUEUES[0], ["old"], 10))
        await asyncio.sleep(0)
        waiting.cancel()
        await asking.close()
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    asyncio.run(scenario())
