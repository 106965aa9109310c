"""Asking another client for its queues; the clients are a table here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cometmq.client.aio.push.handover import Handover
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.running import ConsumerRunningInfo, ProcessQueueInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError

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


async def test_whoever_lists_a_queue_has_it() -> None:
    asking = _handover(Instance(old=[QUEUES[1]], other=[]))
    assert await asking.has_queue("old", QUEUES[1])
    assert not await asking.has_queue("old", QUEUES[0])
    assert not await asking.has_queue("other", QUEUES[1])


async def test_one_question_serves_all_queues_of_an_owner() -> None:
    instance = Instance(old=[QUEUES[2]])
    asking = _handover(instance)
    answers = await asyncio.gather(*(asking.has_queue("old", queue) for queue in QUEUES))
    assert answers == [False, False, True]
    assert instance.questions == 1
    await asking.has_queue("old", QUEUES[0])
    assert instance.questions == 2


async def test_an_owner_that_cannot_be_asked_is_an_error() -> None:
    with pytest.raises(BrokerReplyError, match="not online"):
        await _handover(Instance()).has_queue("gone", QUEUES[0])


async def test_closing_ends_questions_on_their_way() -> None:
    asking = _handover(Instance(old=[QUEUES[0]]))
    waiting = asyncio.create_task(asking.has_queue("old", QUEUES[0]))
    await asyncio.sleep(0)
    waiting.cancel()
    await asking.close()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
