"""A failed message goes back to its broker, or as a copy to another; what is sent, and when neither works."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from cometmq.client.aio.push.send_back import SendBack
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.route import BrokerData, QueueData, TopicRoute
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.testing.fake_clock import FakeClock

QUEUE = MessageQueue("b", 1, "T")


class Instance:
    """Brokers ``b`` and ``c``; each request gets the next code."""

    def __init__(self, *codes: int, has_master: bool = True) -> None:
        self.codes = list(codes)
        self.has_master = has_master
        self.sent: list[tuple[str, Command]] = []
        self.doubted: list[str] = []
        self.clock = FakeClock()
        self.config = SimpleNamespace(is_unit_mode=False)

    def wrap_topic(self, name: str) -> str:
        return f"ns%{name}"

    def broker_address(self, broker_name: str) -> str | None:
        return f"{broker_name}:1" if self.has_master else None

    async def find_master(self, queue: MessageQueue) -> str:
        return f"{queue.broker_name}:1"

    async def publish_route(self, topic: str) -> TopicRoute:
        return TopicRoute(
            queue_datas=[QueueData(broker_name="c", read_queue_nums=1, write_queue_nums=1)],
            broker_datas=[BrokerData(cluster="C", broker_name="c", broker_addrs={0: "c:1"})],
        )

    def forget_route(self, topic: str) -> None:
        self.doubted.append(topic)

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        self.sent.append((address, command))
        return Command(self.codes.pop(0))


def _send_back(instance: Instance, delay_level: int = 0, times_max: int = 16) -> bool:
    made: Any = instance
    message = ReceivedMessage(
        topic="T", body=b"x", physical_offset=77, queue_id=1, reconsume_times=2
    )
    return asyncio.run(SendBack(made, "g", times_max).send_back(message, QUEUE, delay_level))


def test_the_broker_of_the_message_is_asked_first() -> None:
    instance = Instance(ResponseCode.SUCCESS)
    assert _send_back(instance, delay_level=4, times_max=5)
    ((address, command),) = instance.sent
    assert (address, command.code) == ("b:1", RequestCode.CONSUMER_SEND_MSG_BACK)
    ext = command.ext or {}
    assert (ext["offset"], ext["group"], ext["delayLevel"]) == ("77", "g", "4")
    assert (ext["originTopic"], ext["maxReconsumeTimes"]) == ("ns%T", "5")


def test_a_copy_is_sent_where_the_broker_refuses_or_has_no_master() -> None:
    for instance in (
        Instance(ResponseCode.SYSTEM_ERROR, ResponseCode.SUCCESS),
        Instance(ResponseCode.FLUSH_DISK_TIMEOUT, has_master=False),
    ):
        assert _send_back(instance)
        address, command = instance.sent[-1]
        assert (address, command.code) == ("c:1", RequestCode.SEND_MESSAGE_V2)
        ext = command.ext or {}
        assert (ext["b"], ext["j"], ext["l"], ext["n"]) == ("%RETRY%g", "3", "16", "c")
        assert command.body == b"x"


def test_a_copy_that_is_to_be_a_dead_letter_has_used_up_its_retries() -> None:
    instance = Instance(ResponseCode.SYSTEM_ERROR, ResponseCode.SUCCESS)
    assert _send_back(instance, delay_level=-1)
    ext = instance.sent[-1][1].ext or {}
    assert int(ext["j"]) > int(ext["l"])


def test_when_nobody_takes_it_the_message_stays() -> None:
    instance = Instance(*[ResponseCode.SERVICE_NOT_AVAILABLE] * 4)
    assert not _send_back(instance)
    assert len(instance.sent) == 4
    assert instance.doubted == ["%RETRY%g"] * 3


async def test_an_orderly_dead_letter_keeps_its_count() -> None:
    instance = Instance(ResponseCode.SUCCESS)
    made: Any = instance
    message = ReceivedMessage(topic="T", body=b"x", reconsume_times=3)
    assert await SendBack(made, "g", 3).send_dead_letter(message)
    ext = instance.sent[0][1].ext or {}
    assert (ext["j"], ext["l"]) == ("3", "3")
