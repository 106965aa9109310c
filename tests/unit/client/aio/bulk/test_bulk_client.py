"""Questions about many queues: whom they go to, what becomes of brokers that do not answer, and what is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from cometmq.base.errors import CallTimedOut, CometError, ConnectFailed
from cometmq.client.aio.bulk.bulk_client import BulkClient
from cometmq.client.aio.bulk.queue_calls import CALLS_UNDER_WAY_MAX
from cometmq.client.aio.instance import client_instance
from cometmq.client.client_config import ClientConfig
from cometmq.client.core.broker_order import SHUN_SECONDS, Place
from cometmq.client.core.queue_answers import Bounds
from cometmq.client.errors import BrokerNotKnown, NoNameServer, NoRoute
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.bodies.heartbeat import HeartbeatData
from cometmq.protocol.bodies.topic import TopicList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import SystemFault
from cometmq.testing.fake_clock import FakeClock

NAMES = "names:9876"
MASTER, REPLICA, OTHER = "master:1", "replica:1", "other:1"
A0, A1 = MessageQueue("a", 0, "T"), MessageQueue("a", 1, "T")
B0 = MessageQueue("b", 0, "T")


class Broker:
    """Answers every question about a queue; the number is that of the queue and 100 for the end."""

    def __init__(self) -> None:
        self.requests: list[Command] = []
        self.failure: CometError | None = None
        self.refuses = False
        self.under_way = self.under_way_max = 0

    async def __call__(self, request: Command) -> Command:
        self.requests.append(request)
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        if self.refuses:
            return request.reply(ResponseCode.SYSTEM_ERROR, "broken")
        ext = request.ext or {}
        offset = int(ext.get("queueId", "0"))
        if request.code == RequestCode.GET_MAX_OFFSET:
            offset += 100
        if request.code == RequestCode.QUERY_CONSUMER_OFFSET and offset == 1:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, "none")
        return request.reply(ext={"offset": str(offset)})

    def codes(self) -> list[int]:
        return [request.code for request in self.requests]


class Rig:
    def __init__(
        self, remoting: Any, names: Any, route: Callable[..., Any], **settings: Any
    ) -> None:
        self.clock = FakeClock()
        self.remoting = remoting
        self.names = names
        self.master, self.replica, self.other = Broker(), Broker(), Broker()
        remoting.servers = {
            NAMES: names,
            MASTER: self.master,
            REPLICA: self.replica,
            OTHER: self.other,
        }
        names.routes["T"] = names.routes["ns%T"] = route({"a": {0: MASTER, 1: REPLICA}}, 2)
        names.routes["Both"] = route({"a": {0: MASTER, 1: REPLICA}, "b": {0: OTHER}}, 2)
        self.client = BulkClient(ClientConfig(name_servers=NAMES, **settings), clock=self.clock)


Running = Callable[..., AbstractAsyncContextManager[Rig]]


@pytest.fixture
def running(
    monkeypatch: pytest.MonkeyPatch, remoting: Any, names: Any, make_route: Callable[..., Any]
) -> Running:
    """A client whose servers exist only here, closed in the end."""
    monkeypatch.setattr(client_instance, "RemotingClient", lambda *_, **__: remoting)

    @asynccontextmanager
    async def running(**settings: Any) -> AsyncIterator[Rig]:
        rig = Rig(remoting, names, make_route, **settings)
        try:
            yield rig
        finally:
            await rig.client.close()

    return running


async def test_queues_are_those_of_now(running: Running) -> None:
    async with running() as rig:
        assert rig.client.places("a") == ()
        assert await rig.client.queues("T") == [A0, A1]
        assert rig.client.places("a") == (Place(MASTER, True), Place(REPLICA, False))
        del rig.names.routes["T"]
        with pytest.raises(NoRoute):
            await rig.client.queues("T")


async def test_topics_are_those_of_the_namespace(running: Running) -> None:
    async with running(namespace="ns") as rig:

        def answer(request: Command) -> Command:
            assert request.code == RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
            return request.reply(body=TopicList(topic_list=["ns%T", "U", "ns%S"]).encode())

        rig.remoting.servers[NAMES] = answer
        assert await rig.client.topics() == ["S", "T"]
        rig.remoting.servers[NAMES] = lambda request: request.reply(1, "broken")
        with pytest.raises(SystemFault):
            await rig.client.topics()


async def test_whether_there_are_brokers_is_no_matter_of_failing(running: Running) -> None:
    async with running() as rig:
        answers = [
            (b'{"brokerAddrTable":{"a":{"cluster":"c","brokerName":"a","brokerAddrs":{}}}}', True),
            (b"{}", False),
        ]
        for body, expected in answers:
            rig.remoting.servers[NAMES] = lambda request, body=body: request.reply(body=body)
            assert await rig.client.has_brokers() is expected
        rig.remoting.servers[NAMES] = lambda request: request.reply(1, "broken")
        assert not await rig.client.has_brokers()
        del rig.remoting.servers[NAMES]
        assert not await rig.client.has_brokers()
        with pytest.raises(NoNameServer):
            await rig.client.topics()


async def test_bounds_come_from_the_masters(running: Running) -> None:
    async with running() as rig:
        await rig.client.queues("Both")
        bounds, failures = await rig.client.bounds([A0, A1, B0])
        assert bounds == {A0: Bounds(0, 100), A1: Bounds(1, 101), B0: Bounds(0, 100)}
        assert failures == {}
        assert rig.replica.requests == []
        asked = rig.master.requests[0].ext
        assert asked == {"topic": "T", "queueId": "0", "bname": "a"}


async def test_a_replica_is_asked_when_the_master_is_silent_and_for_a_while_first(
    running: Running,
) -> None:
    async with running() as rig:
        await rig.client.queues("T")
        rig.master.failure = CallTimedOut("silent", sent=True)
        bounds, failures = await rig.client.bounds([A0, A1])
        assert bounds == {A0: Bounds(0, 100, False), A1: Bounds(1, 101, False)}
        assert failures == {}
        asked = len(rig.master.requests)
        rig.master.failure = None
        await rig.client.bounds([A0])
        assert len(rig.master.requests) == asked
        rig.clock.advance(SHUN_SECONDS + 1)
        bounds, _ = await rig.client.bounds([A0])
        assert bounds[A0].is_master


async def test_a_broker_that_is_away_takes_no_other_with_it(running: Running) -> None:
    async with running() as rig:
        await rig.client.queues("Both")
        rig.other.failure = ConnectFailed("nobody there")
        stranger = MessageQueue("stranger", 0, "T")
        bounds, failures = await rig.client.bounds([B0, A0, stranger])
        assert bounds == {A0: Bounds(0, 100)}
        assert isinstance(failures[B0], ConnectFailed)
        assert isinstance(failures[stranger], BrokerNotKnown)
        rig.master.refuses = True
        bounds, failures = await rig.client.bounds([A0])
        assert bounds == {}
        assert isinstance(failures[A0], SystemFault)


async def test_requests_to_one_broker_leave_together_but_not_without_bound(
    running: Running,
) -> None:
    async with running() as rig:
        await rig.client.queues("T")
        queues = [MessageQueue("a", number, "T") for number in range(3 * CALLS_UNDER_WAY_MAX)]
        bounds, _ = await rig.client.bounds(queues)
        assert [bounds[queue].first for queue in queues] == list(range(len(queues)))
        assert rig.master.under_way_max == CALLS_UNDER_WAY_MAX


async def test_a_silent_broker_is_not_asked_about_every_queue(running: Running) -> None:
    async with running() as rig:
        await rig.client.queues("T")
        rig.master.failure = rig.replica.failure = CallTimedOut("silent", sent=True)
        queues = [MessageQueue("a", number, "T") for number in range(10 * CALLS_UNDER_WAY_MAX)]
        _, failures = await rig.client.bounds(queues)
        assert len(failures) == len(queues)
        assert len(rig.master.requests) == CALLS_UNDER_WAY_MAX


async def test_offsets_of_times_and_of_a_group(running: Running) -> None:
    async with running(namespace="ns") as rig:
        await rig.client.queues("T")
        assert await rig.client.offsets_by_time({A0: 5, A1: 7}) == {A0: 0, A1: 1}
        last = rig.master.requests[-1].ext or {}
        assert (last["timestamp"], last["boundaryType"]) == ("7", "LOWER")
        assert await rig.client.committed("g", [A0, A1]) == {A0: 0, A1: None}
        last = rig.master.requests[-1].ext or {}
        assert last["consumerGroup"] == "ns%g"
        assert last["topic"] == "ns%T"
        assert last["setZeroIfNotFound"] == "false"
        rig.master.refuses = rig.replica.refuses = True
        with pytest.raises(SystemFault):
            await rig.client.offsets_by_time({A0: 5})


async def test_positions_are_committed_at_the_masters_and_failures_are_told(
    running: Running,
) -> None:
    async with running() as rig:
        await rig.client.queues("Both")
        rig.other.failure = ConnectFailed("nobody there")
        failures = await rig.client.commit("g", {A0: 7, A1: 8, B0: 9})
        assert list(failures) == [B0]
        told = [(request.ext or {}) for request in rig.master.requests]
        assert {(ext["queueId"], ext["commitOffset"]) for ext in told} == {("0", "7"), ("1", "8")}
        assert rig.replica.requests == []


async def test_a_group_is_announced_and_taken_back(running: Running) -> None:
    async with running(namespace="ns") as rig:
        await rig.client.queues("T")
        await rig.client.announce("g", ["T"], "a || b", "TAG")
        await rig.client.announce("g", ["T"], "a || b", "TAG")
        rig.clock.advance(5)
        await rig.client.announce("g", ["T"], "a", "TAG")
        beats = [
            HeartbeatData.decode(bytes(request.body))
            for request in rig.master.requests
            if request.code == RequestCode.HEART_BEAT
        ]
        consumers = [beat.consumer_data_set[0] for beat in beats]
        assert {consumer.group_name for consumer in consumers} == {"ns%g"}
        assert {consumer.consume_type for consumer in consumers} == {"CONSUME_ACTIVELY"}
        subscriptions = [consumer.subscription_data_set[0] for consumer in consumers]
        assert {data.topic for data in subscriptions} == {"ns%T"}
        assert [data.tags_set for data in subscriptions] == [["a", "b"], ["a", "b"], ["a"]]
        versions = [data.sub_version for data in subscriptions]
        assert versions[0] == versions[1] < versions[2]
        await rig.client.close()
        assert RequestCode.UNREGISTER_CLIENT in rig.master.codes()


async def test_queues_to_publish_to_are_those_of_the_topic_or_of_a_new_one(
    running: Running, make_route: Callable[..., Any]
) -> None:
    async with running() as rig:
        client = rig.client
        assert await client.publish_queues("T", queues_of_new=1) == [A0, A1]
        with pytest.raises(NoRoute):
            await client.publish_queues("New", queues_of_new=1)
        rig.names.routes["TBW102"] = make_route({"a": {0: MASTER}}, 8)
        assert await client.publish_queues("New", queues_of_new=1) == [MessageQueue("a", 0, "New")]
        rig.names.routes["T"] = make_route({"a": {0: "moved:1"}}, 2)
        await client.look_again("T")
        assert client.places("a") == (Place("moved:1", True),)
        rig.names.routes["TBW102"] = make_route({"a": {0: "moved:2"}}, 2)
        await client.look_again("New")
        assert client.places("a") == (Place("moved:2", True),)
