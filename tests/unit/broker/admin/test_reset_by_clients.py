"""Offsets reset as RocketMQ 4.9 does it: clients are told, and are asked for theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.admin.test_reset_offset import queue, reset

from cometmq.base.errors import ConnectionLost
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command


@pytest.fixture
def consumed(make_rig: Callable[..., Any]) -> Any:
    """Two queues of five messages at times 10 to 50, consumed up to 3 and 5; clients are told of resets."""
    rig = make_rig(useServerSideResetOffset="false")
    rig.topic("t", 2)
    rig.add("t", range(2), 10, 20, 30, 40, 50)
    for queue_id, offset in ((0, 3), (1, 5)):
        rig.offsets.commit("g", "t", queue_id, offset)
    return rig


def test_a_reset_is_pushed_to_every_client_of_the_group(consumed: Any) -> None:
    peers = [consumed.consumer("g", f"c{n}", "t", port=n) for n in (1, 2)]
    reply = reset(consumed, timestamp="20")
    assert (reply.code, reply.remark) == (0, "not set any response code")
    assert fastjson.loads(bytes(reply.body)) == {"offsetTable": {queue(0): 1, queue(1): 1}}
    for peer in peers:
        (push,) = peer.sent
        assert (push.code, push.is_oneway) == (220, True)
        assert push.ext == {"topic": "t", "group": "g", "timestamp": "20", "isForce": "false"}
        assert bytes(push.body) == bytes(reply.body)
    # For a queue that nobody holds at the moment.
    assert consumed.offsets.query("g", "t", 0) == 1


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({"timestamp": "-1"}, 5, 5),
        ({"timestamp": "45", "isForce": "false"}, 3, 4),
        ({"timestamp": "0"}, 0, 0),
    ],
)
def test_where_a_reset_leads(
    consumed: Any, fields: dict[str, str], first: int, second: int
) -> None:
    consumed.consumer("g", "c1", "t")
    table = fastjson.loads(bytes(reset(consumed, **fields).body))["offsetTable"]
    assert table == {queue(0): first, queue(1): second}


def test_one_queue_can_be_reset_to_an_offset(consumed: Any) -> None:
    consumed.consumer("g", "c1", "t")
    table = fastjson.loads(bytes(reset(consumed, queueId="1", offset="2").body))["offsetTable"]
    assert table == {queue(1): 2}
    assert reset(consumed, queueId="1", offset="99").code == 1
    assert reset(consumed, queueId="7", offset="0").code == 1


def test_a_client_in_c_gets_a_list(consumed: Any) -> None:
    peer = consumed.consumer("g", "c1", "t")
    ext = {"topic": "t", "group": "g", "timestamp": "20", "isForce": "true"}
    assert consumed.ask(222, ext, language="CPP").code == 0
    table = fastjson.loads(bytes(peer.sent[0].body))["offsetTable"]
    assert table[0] == {"brokerName": "b49", "queueId": 0, "topic": "t", "offset": 1}


def test_what_cannot_be_reset(consumed: Any) -> None:
    assert reset(consumed, timestamp="20").code == 206
    assert consumed.offsets.query("g", "t", 0) == 3
    reply = reset(consumed, group="x")
    assert (reply.code, reply.remark) == (1, "THe consumer group <x> not exist")
    assert reset(consumed, topic="x").code == 1
    assert reset(consumed, timestamp="soon").code == 1


def test_clients_are_asked_for_their_own_offsets(consumed: Any) -> None:
    def own_offsets(request: Command) -> Command:
        assert request.code == 221
        body = fastjson.dumps({"messageQueueTable": {MessageQueue("b49", 0, "t"): 4}})
        return request.reply(body=body)

    def lost(request: Command) -> Command:
        raise ConnectionLost("gone")

    consumed.consumer("g", "c1", "t", port=1).answer = own_offsets
    consumed.consumer("g", "c2", "t", port=2).answer = lost
    consumed.consumer("g", "c3", "t", port=3).answer = lambda r: r.reply(body=b"{")
    consumed.consumer("g", "c4", "t", port=4).answer = lambda r: r.reply(1, "no")
    answer = consumed.json(223, {"topic": "t", "group": "g"})
    assert answer == {"consumerTable": {"c1": {queue(0): 4}}, "messageQueueTable": {}}
    answer = consumed.json(223, {"topic": "t", "group": "g", "clientAddr": "c2"})
    assert answer["consumerTable"] == {}
    assert consumed.ask(223, {"topic": "t", "group": "x"}).code == 206
