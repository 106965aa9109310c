"""Offsets reset as RocketMQ 5 does it: by the broker, without a client."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command

from .test_clients_and_settings import queue, reset


@pytest.fixture
def consumed(rig: Any) -> Any:
    """Two queues of five messages at times 10 to 50; a group that has a position in one of them."""
    rig.topic("t", 2)
    rig.groups.put(SubscriptionGroupConfig(group_name="g"))
    for queue_id in (0, 1):
        rig.store.add("t", queue_id, 10, 20, 30, 40, 50)
    rig.offsets.commit("g", "t", 0, 3)
    return rig


def offsets_of(reply: Command) -> Any:
    assert (reply.code, reply.remark) == (0, None)
    return fastjson.loads(bytes(reply.body))["offsetTable"]


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({"timestamp": "-1"}, 5, 5),
        ({"timestamp": "-7"}, 5, 5),
        ({"timestamp": "45", "isForce": "false"}, 4, 4),
        ({"timestamp": "0"}, 0, 0),
    ],
)
def test_nobody_need_be_online_and_nobody_is_told(
    consumed: Any, fields: dict[str, str], first: int, second: int
) -> None:
    peer = consumed.consumer("g", "c1", "t")
    assert offsets_of(reset(consumed, **fields)) == {queue(0): first, queue(1): second}
    assert peer.sent == []
    assert [consumed.offsets.query("g", "t", queue_id) for queue_id in (0, 1)] == [first, second]
    assert consumed.woken == [("t", 0, "g"), ("t", 1, "g")]
    assert (
        consumed.json(208, {"consumerGroup": "g"})["offsetTable"][queue(0)]["pullOffset"] == first
    )
    assert consumed.offsets.take_reset("g", "t", 1) == second
    assert consumed.offsets.take_reset("g", "t", 1) is None


def test_one_queue_to_an_offset(consumed: Any) -> None:
    assert offsets_of(reset(consumed, queueId="1", offset="2")) == {queue(1): 2}
    assert offsets_of(reset(consumed, queueId="1", offset="6")) == {queue(1): 6}
    assert not consumed.offsets.is_reset("g", "t", 0)
    reply = reset(consumed, queueId="1", offset="7")
    assert (reply.code, reply.remark) == (1, "Target offset 7 not in consume queue range [0-5]")


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"topic": "x"}, 17, "Topic x does not exist"),
        ({"group": "x"}, 26, "Group x does not exist"),
        ({"queueId": "7", "offset": "0"}, 1, "topic t has no queue 7"),
    ],
)
def test_what_cannot_be_reset(
    consumed: Any, fields: dict[str, str], code: int, remark: str
) -> None:
    reply = reset(consumed, **fields)
    assert (reply.code, reply.remark) == (code, remark)
    assert consumed.offsets.query("g", "t", 0) == 3


def test_a_slave_resets_nothing(make_rig: Any) -> None:
    rig = make_rig(brokerRole="SLAVE", brokerId="1")
    rig.topic("t", 2)
    reply = reset(rig)
    assert (reply.code, reply.remark) == (1, "Can not reset offset in slave broker")
