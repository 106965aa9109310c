"""Servers that exist only as functions, and roles that remember what they were told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import pytest

from cometmq.base.errors import ConnectFailed
from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import ReceivedMessage
from cometmq.model.route import BrokerData, QueueData, TopicRoute
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.protocol.bodies.route import encode_route
from cometmq.protocol.bodies.running import (
    ConsumeDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection

Answer = Callable[[Command], Command | Awaitable[Command]]


class FakeRemoting:
    """Implements ``instance.Remoting``; ``servers`` answer by address, others cannot be reached."""

    def __init__(self) -> None:
        self.servers: dict[str, Answer] = {}
        self.calls: list[tuple[str, Command]] = []
        self.is_closed = False

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        assert timeout > 0
        self.calls.append((address, command))
        if address not in self.servers:
            raise ConnectFailed(f"cannot connect to {address}: nobody there")
        answer = self.servers[address](command)
        return answer if isinstance(answer, Command) else await answer

    async def oneway(self, address: str, command: Command) -> None:
        self.calls.append((address, command))

    async def connection(self, address: str) -> Connection:
        raise ConnectFailed(f"cannot connect to {address}: these servers have no connections")

    def ready(self, address: str) -> Connection | None:
        return None

    async def close(self) -> None:
        self.is_closed = True

    def sent(self, code: int, address: str | None = None) -> list[Command]:
        return [
            command
            for target, command in self.calls
            if command.code == code and address in (None, target)
        ]


class FakeNameServer:
    def __init__(self) -> None:
        self.routes: dict[str, TopicRoute] = {}

    def __call__(self, request: Command) -> Command:
        assert request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        assert request.ext is not None
        route = self.routes.get(request.ext["topic"])
        if route is None:
            return request.reply(ResponseCode.TOPIC_NOT_EXIST, "no route")
        return request.reply(body=encode_route(route, standard=True))


class FakeProducer:
    def __init__(self, group: str, *topics: str) -> None:
        self.group = group
        self._topics = topics
        self.checks: list[tuple[str, Command]] = []
        self.replies: list[Command] = []

    def topics(self) -> Collection[str]:
        return self._topics

    async def check_transaction(self, address: str, request: Command) -> None:
        self.checks.append((address, request))

    def reply_arrived(self, request: Command) -> None:
        self.replies.append(request)


class FakeConsumer:
    consume_type = ConsumeType.CONSUME_PASSIVELY
    message_model = MessageModel.CLUSTERING
    consume_from = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET

    def __init__(self, group: str, *topics: str) -> None:
        self.group = group
        self._topics = topics
        self.rebalances = 0
        self.resets: list[tuple[str, dict[MessageQueue, int]]] = []
        self.consumed: list[tuple[ReceivedMessage, str]] = []

    def topics(self) -> Collection[str]:
        return self._topics

    def subscriptions(self) -> list[SubscriptionData]:
        return [build_subscription(topic, "*", version=7) for topic in self._topics]

    @property
    def retries_max(self) -> int | None:
        return None

    def rebalance_soon(self) -> None:
        self.rebalances += 1

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        self.resets.append((topic, offsets))

    def positions(self, topic: str) -> dict[MessageQueue, int]:
        return {MessageQueue(broker_name="b", queue_id=1, topic=topic): 5}

    def running_info(self) -> ConsumerRunningInfo:
        return ConsumerRunningInfo(properties={"own": "text"})

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str
    ) -> ConsumeDirectlyResult:
        self.consumed.append((message, broker_name))
        return ConsumeDirectlyResult(consume_result=ConsumeResult.CR_SUCCESS)


def route_of(addresses: dict[str, dict[int, str]], queues: int = 4) -> TopicRoute:
    """Brokers by name and id, each with so many queues."""
    return TopicRoute(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=queues, write_queue_nums=queues)
            for name in addresses
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs=by_id)
            for name, by_id in addresses.items()
        ],
    )


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)


@pytest.fixture
def remoting() -> FakeRemoting:
    return FakeRemoting()


@pytest.fixture
def names() -> FakeNameServer:
    return FakeNameServer()


@pytest.fixture
def make_route() -> Callable[..., TopicRoute]:
    return route_of


@pytest.fixture
def make_producer() -> Callable[..., Any]:
    return FakeProducer


@pytest.fixture
def make_consumer() -> Callable[..., Any]:
    return FakeConsumer
