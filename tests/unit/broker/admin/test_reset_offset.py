"""Offsets reset as RocketMQ 5 does it: by the broker, without a client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.broker.rig import pull_ext

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.testing.fake_connection import FakeConnection


def queue(queue_id: int) -> str:
    return json.dumps(
        {"brokerName": "b49", "queueId": queue_id, "topic": "t"}, separators=(",", ":")
    )


def reset(rig: Any, **fields: str) -> Command:
    ext = {"topic": "t", "group": "g", "timestamp": "-1", "isForce": "true", **fields}
    reply: Command = rig.ask(222, ext)
    return reply


@pytest.fixture
def consumed(rig: Any) -> Any:
    """Two queues of five messages at times 10 to 50; a group that has a position in one of them."""
    rig.topic("t", 2)
    rig.groups.put(SubscriptionGroupConfig(group_name="g"))
    rig.add("t", range(2), 10, 20, 30, 40, 50)
    rig.offsets.commit("g", "t", 0, 3)
    return rig


def parked(rig: Any, queue_id: int) -> FakeConnection:
    """A pull of the group that waits at the end of a queue."""
    peer = FakeConnection(50000 + queue_id)
    ext = pull_ext("t", 5, consumerGroup="g", queueId=str(queue_id), sysFlag="6")
    assert rig.dispatch(Command(code=11, ext=ext), peer) == []
    return peer


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
    waiting = [parked(consumed, queue_id) for queue_id in (0, 1)]
    assert offsets_of(reset(consumed, **fields)) == {queue(0): first, queue(1): second}
    assert peer.sent == []
    assert [consumed.offsets.query("g", "t", queue_id) for queue_id in (0, 1)] == [first, second]
    consumed.loop.turn()
    for pull, offset in zip(waiting, (first, second), strict=True):
        (reply,) = pull.take()
        assert (reply.code, (reply.ext or {})["nextBeginOffset"]) == (21, str(offset))
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
