from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cometmq.client.aio.instance.heartbeat import RETRY_SECONDS, Heartbeats
from cometmq.client.aio.instance.roles import RoleTable
from cometmq.client.core.route_table import RouteTable
from cometmq.protocol.bodies.heartbeat import decode_heartbeat
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

HEART_BEAT, UNREGISTER = RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT


class Setting:
    """One broker with a slave, another one without."""

    def __init__(self, remoting: Any, make_route: Any) -> None:
        self.remoting = remoting
        self.roles = RoleTable()
        self.table = RouteTable()
        self.table.learn("T", make_route({"a": {0: "m:1", 1: "s:1"}, "b": {0: "m:2"}}), 0.0)
        for address in ("m:1", "s:1", "m:2"):
            remoting.servers[address] = _answer
        self.heartbeats = Heartbeats("me@1", self.roles, self.table, remoting.call, timeout=3.0)

    def targets(self, code: int = HEART_BEAT) -> list[str]:
        return [address for address, command in self.remoting.calls if command.code == code]


def _answer(request: Command) -> Command:
    reply = request.reply()
    reply.version = 401
    return reply


@pytest.fixture
def setting(remoting: Any, make_route: Any) -> Setting:
    return Setting(remoting, make_route)


async def test_nobody_is_greeted_when_there_is_nobody_to_tell_of(setting: Setting) -> None:
    assert await setting.heartbeats.beat_all() is None
    assert setting.remoting.calls == []


async def test_producers_alone_matter_to_masters_only(setting: Setting, make_producer: Any) -> None:
    setting.roles.add_producer(make_producer("p"))
    await setting.heartbeats.beat_all()
    assert setting.targets() == ["m:1", "m:2"]
    body = decode_heartbeat(setting.remoting.calls[0][1].body)
    assert body.client_id == "me@1"
    assert [each.group_name for each in body.producer_data_set] == ["p"]
    assert body.consumer_data_set == []


async def test_with_a_consumer_slaves_are_told_too_and_what_it_wants(
    setting: Setting, make_producer: Any, make_consumer: Any
) -> None:
    setting.roles.add_producer(make_producer("p"))
    setting.roles.add_consumer(make_consumer("g", "T"))
    await setting.heartbeats.beat_all()
    assert setting.targets() == ["m:1", "s:1", "m:2"]
    [consumer] = decode_heartbeat(setting.remoting.calls[0][1].body).consumer_data_set
    assert consumer.group_name == "g"
    assert consumer.consume_type == "CONSUME_PASSIVELY"
    assert consumer.message_model == "CLUSTERING"
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert [each.topic for each in consumer.subscription_data_set] == ["T"]
    assert consumer.subscription_data_set[0].sub_version == 7


async def test_versions_are_remembered(setting: Setting, make_producer: Any) -> None:
    assert setting.heartbeats.version("a") == 0
    setting.roles.add_producer(make_producer("p"))
    await setting.heartbeats.beat_all()
    assert setting.heartbeats.version("a") == 401
    assert setting.heartbeats.version("unknown") == 0


async def test_after_a_failure_the_next_one_comes_sooner_but_not_ever_so_often(
    setting: Setting, make_producer: Any
) -> None:
    setting.roles.add_producer(make_producer("p"))
    del setting.remoting.servers["m:2"]
    delays = [await setting.heartbeats.beat_all() for _ in range(3)]
    assert delays == [RETRY_SECONDS, RETRY_SECONDS * 2, RETRY_SECONDS * 4]
    assert setting.heartbeats.has_strangers()
    setting.remoting.servers["m:2"] = _answer
    assert await setting.heartbeats.beat_all() is None
    del setting.remoting.servers["m:2"]
    assert await setting.heartbeats.beat_all() == RETRY_SECONDS


async def test_a_refusal_is_a_failure_too(setting: Setting, make_producer: Any) -> None:
    setting.roles.add_producer(make_producer("p"))
    setting.remoting.servers["m:1"] = lambda request: request.reply(
        ResponseCode.NO_PERMISSION, "no"
    )
    assert await setting.heartbeats.beat_all() == RETRY_SECONDS


async def test_those_who_know_us_are_told_when_a_group_leaves(
    setting: Setting, make_producer: Any
) -> None:
    setting.roles.add_producer(make_producer("p"))
    del setting.remoting.servers["m:2"]

    await setting.heartbeats.unregister(producer_group="p")
    assert setting.targets(UNREGISTER) == []
    await setting.heartbeats.beat_all()
    await setting.heartbeats.unregister(producer_group="p")
    await setting.heartbeats.unregister(consumer_group="g")
    assert setting.targets(UNREGISTER) == ["m:1", "m:1"]
    requests = setting.remoting.sent(UNREGISTER)
    assert [request.ext for request in requests] == [
        {"clientID": "me@1", "producerGroup": "p"},
        {"clientID": "me@1", "consumerGroup": "g"},
    ]


async def test_a_lost_connection_makes_a_stranger(setting: Setting, make_producer: Any) -> None:
    setting.roles.add_producer(make_producer("p"))
    await setting.heartbeats.beat_all()
    assert not setting.heartbeats.has_strangers()
    setting.heartbeats.lost("elsewhere:1")
    assert not setting.heartbeats.has_strangers()
    setting.heartbeats.lost("m:1")
    assert setting.heartbeats.has_strangers()


async def test_a_broker_that_does_not_know_us_is_greeted_on_a_new_connection(
    setting: Setting, make_producer: Any
) -> None:
    setting.heartbeats.greet("m:1")
    await asyncio.sleep(0)
    assert setting.targets() == [], "there is nobody to tell of"
    setting.roles.add_producer(make_producer("p"))
    for address in ("m:1", "m:1", "s:1", "name-server:1"):
        setting.heartbeats.greet(address)
    await asyncio.sleep(0)
    assert setting.targets() == ["m:1"]
    while setting.heartbeats.version("a") == 0:
        await asyncio.sleep(0)
    setting.heartbeats.greet("m:1")
    await asyncio.sleep(0)
    assert setting.targets() == ["m:1"], "it knows us"
    setting.heartbeats.lost("m:1")
    setting.heartbeats.greet("m:1")
    await asyncio.sleep(0)
    assert setting.targets() == ["m:1", "m:1"]


async def test_a_greeting_on_its_way_is_not_doubled_by_the_connection_it_opens(
    setting: Setting, make_producer: Any
) -> None:
    setting.roles.add_producer(make_producer("p"))

    def answer(request: Command) -> Command:
        setting.heartbeats.greet("m:1")
        return _answer(request)

    setting.remoting.servers["m:1"] = answer
    await setting.heartbeats.beat_all()
    assert setting.targets() == ["m:1", "m:2"]
