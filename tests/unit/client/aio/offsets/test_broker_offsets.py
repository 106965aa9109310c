"""Positions at the brokers: what is sent at the same time and what is not."""

from __future__ import annotations

import asyncio

from cometmq.client.aio.offsets.broker_offsets import BrokerOffsets
from cometmq.client.client_config import ClientConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command


class SlowBroker:
    """Answers when told to; stands in for an instance that knows where the queue's broker is."""

    def __init__(self) -> None:
        self.config = ClientConfig(name_servers="n:9876")
        self.waiting: list[tuple[Command, asyncio.Future[Command]]] = []

    async def find_broker(self, queue: MessageQueue) -> str:
        return f"{queue.broker_name}:1"

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.waiting.append((command, future))
        return await future

    def queues(self) -> list[str]:
        return sorted((command.ext or {})["queueId"] for command, _ in self.waiting)

    def answer(self, code: int = ResponseCode.SUCCESS) -> None:
        for command, future in self.waiting:
            future.set_result(command.reply(code))
        self.waiting.clear()

    def wrap_topic(self, name: str) -> str:
        return name


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_commit_of_a_topic_at_a_broker_goes_alone() -> None:
    """RocketMQ's broker can lose one of two that come at the same time while it knows nothing of group and topic."""

    broker = SlowBroker()
    offsets = BrokerOffsets(broker, "g")  # type: ignore[arg-type]
    queues = [MessageQueue("b", number, "T") for number in range(4)]
    commit = asyncio.create_task(offsets.commit(dict.fromkeys(queues, 5)))
    await _settle()
    assert broker.queues() == ["0"]
    broker.answer()
    await _settle()
    assert broker.queues() == ["1", "2", "3"]
    broker.answer()
    await commit
    commit = asyncio.create_task(offsets.commit(dict.fromkeys(queues, 6)))
    await _settle()
    assert len(broker.queues()) == 4
    broker.answer()
    await commit


async def test_a_first_commit_that_fails_holds_the_others_up_only_once() -> None:
    broker = SlowBroker()
    offsets = BrokerOffsets(broker, "g")  # type: ignore[arg-type]
    queues = [MessageQueue("b", number, "T") for number in range(3)]
    commit = asyncio.create_task(offsets.commit(dict.fromkeys(queues, 5)))
    await _settle()
    broker.answer(ResponseCode.SYSTEM_ERROR)
    await _settle()
    assert broker.queues() == ["1", "2"]
    broker.answer()
    await commit
