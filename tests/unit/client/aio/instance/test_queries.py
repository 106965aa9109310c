"""Queries over several brokers, some of which fail."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.base.errors import ConnectFailed
from cometmq.client.aio.instance import queries
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import MessageNotFound
from cometmq.model.address import pack_host
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.record import encode_record
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.headers.offsets import GetMaxOffsetHeader
from cometmq.protocol.reply_errors import NoPermission

NAMES = "n:9876"


def stored(topic: str, key: str, at: int, unique: str = "") -> bytes:
    properties = f"KEYS\x01{key}" + (f"\x02UNIQ_KEY\x01{unique}" if unique else "")
    return encode_record(
        topic=topic.encode(),
        queue_id=0,
        queue_offset=0,
        physical_offset=at,
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=pack_host("127.0.0.1", 1),
        store_timestamp=at,
        store_host=pack_host("127.0.0.1", 2),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=b"body",
        properties=properties.encode(),
    )


def instance(remoting: Any, names: Any, route: Any, **settings: Any) -> ClientInstance:
    remoting.servers[NAMES] = names
    wire_topic = f"{settings['namespace']}%T" if settings else "T"
    names.routes[wire_topic] = route({"b": {0: "b:1"}, "c": {1: "c:1"}}, queues=1)
    return ClientInstance(ClientConfig(name_servers=NAMES, **settings), remoting=remoting)


def answering(*records: bytes) -> Any:
    def answer(request: Command) -> Command:
        if not records:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, "none")
        return request.reply(body=b"".join(records))

    return answer


async def test_all_brokers_are_asked_and_what_only_shares_a_hash_is_left_out(
    remoting: Any, names: Any, make_route: Any
) -> None:
    remoting.servers["b:1"] = answering(
        stored("T", "k", 5000), stored("T", "j", 6000), stored("T", "k", 2999)
    )
    remoting.servers["c:1"] = answering(stored("T", "k", 7000))

    found = await queries.query(instance(remoting, names, make_route), "T", "k", 3000, 9000, 10)
    assert [message.store_timestamp for message in found] == [7000, 5000]
    assert [message.broker_name for message in found] == ["c", "b"]
    (asked, _) = remoting.sent(RequestCode.QUERY_MESSAGE)
    assert asked.ext["topic"] == "T"
    assert (asked.ext["beginTimestamp"], asked.ext["endTimestamp"]) == ("2000", "9000")
    assert asked.ext["_UNIQUE_KEY_QUERY"] == "false"


async def test_a_broker_that_cannot_be_asked_is_an_error_not_a_gap(
    remoting: Any, names: Any, make_route: Any
) -> None:
    remoting.servers["b:1"] = answering(stored("T", "k", 5000))

    with pytest.raises(ConnectFailed):
        await queries.query(instance(remoting, names, make_route), "T", "k", 0, 9000, 10)
    remoting.servers["c:1"] = lambda request: request.reply(ResponseCode.NO_PERMISSION, "no")
    with pytest.raises(NoPermission):
        await queries.query(instance(remoting, names, make_route), "T", "k", 0, 9000, 10)


async def test_a_unique_id_is_looked_up_as_such(remoting: Any, names: Any, make_route: Any) -> None:
    unique = "0A000001004D00000005000003E80000"
    remoting.servers["b:1"] = answering(stored("T", "k", 5000, unique))
    remoting.servers["c:1"] = answering()

    client = instance(remoting, names, make_route)
    assert (await queries.view(client, unique, "T")).store_timestamp == 5000
    assert remoting.sent(RequestCode.QUERY_MESSAGE)[0].ext["_UNIQUE_KEY_QUERY"] == "true"
    remoting.servers["b:1"] = answering()
    with pytest.raises(MessageNotFound, match="topic 'T'"):
        await queries.view(client, unique, "T")


async def test_an_offset_id_goes_to_the_broker_it_names(
    remoting: Any, names: Any, make_route: Any
) -> None:
    place = offset_id_text(pack_host("10.0.0.9", 10911), 77)
    remoting.servers["10.0.0.9:10911"] = answering(stored("T", "k", 77))

    client = instance(remoting, names, make_route)
    assert (await queries.view(client, place, None)).physical_offset == 77
    assert remoting.sent(RequestCode.VIEW_MESSAGE_BY_ID)[0].ext["offset"] == "77"
    remoting.servers["10.0.0.9:10911"] = lambda request: request.reply(
        ResponseCode.SYSTEM_ERROR, "can not find message by the offset, 77"
    )
    with pytest.raises(MessageNotFound, match="offset, 77"):
        await queries.view(client, place, None)
    remoting.servers["10.0.0.9:10911"] = Command.reply
    with pytest.raises(MessageNotFound, match="empty"):
        await queries.view(client, place, None)
    del remoting.servers["10.0.0.9:10911"]
    with pytest.raises(ConnectFailed):
        await queries.view(client, place, None)
    # It may be a unique id that looks like an offset id; with a topic that is tried, too.
    remoting.servers["b:1"] = answering(stored("T", "k", 5000, place))
    remoting.servers["c:1"] = answering()
    assert (await queries.view(client, place, "T")).store_timestamp == 5000


async def test_topics_travel_in_their_namespace(remoting: Any, names: Any, make_route: Any) -> None:
    remoting.servers["b:1"] = answering(stored("ns%T", "k", 5000))
    remoting.servers["c:1"] = answering()

    client = instance(remoting, names, make_route, namespace="ns")
    (message,) = await queries.query(client, "T", "k", 0, 9000, 10)
    assert message.topic == "T"
    assert {call.ext["topic"] for call in remoting.sent(RequestCode.QUERY_MESSAGE)} == {"ns%T"}
    queue = MessageQueue("b", 0, "T")
    assert queries.unwrap_queue(client, queries.wrap_queue(client, queue)) == queue


async def test_a_broker_that_is_gone_makes_the_route_doubtful(
    remoting: Any, names: Any, make_route: Any
) -> None:
    client = instance(remoting, names, make_route)
    queue = MessageQueue("b", 0, "T")
    header = GetMaxOffsetHeader(topic="", queue_id=0)
    for _ in range(2):
        with pytest.raises(ConnectFailed):
            await queries.call_queue(client, queue, RequestCode.GET_MAX_OFFSET, header)
        await client.route("T")
    assert len(remoting.sent(RequestCode.GET_ROUTEINFO_BY_TOPIC)) == 3
