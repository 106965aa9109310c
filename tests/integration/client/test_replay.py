"""An operator moves, copies and reads the positions of a group: while its consumers run, and while none does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.eventually import eventually
from tests.integration.client.conftest import BrokerControl, CreateTopic
from tests.integration.client.consuming import (
    Taken,
    committed,
    config,
    consuming,
    numbered,
    queues_of,
    send,
)
from tests.interop.servers import ask

from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.helpers.skip_backlog import jump
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode, ResponseCode

pytestmark = pytest.mark.timeout(180)

Unique = Callable[[str], str]

PAUSE_SECONDS = 0.5
"""Between two halves of a topic: RocketMQ 4.9 takes the message nearest to a time, so the other one must be far."""
DAY_MS = 24 * 3_600_000


class Operator:
    """Asks the broker as mqadmin does."""

    def __init__(self, control: BrokerControl, group: str, topic: str) -> None:
        self._port = int(control.address.rpartition(":")[2])
        self._names = {"group": group, "topic": topic}

    async def ask(self, code: int, **fields: str) -> tuple[int, bytes]:
        return await asyncio.to_thread(ask, self._port, code, self._names | fields)

    async def json(self, code: int, **fields: str) -> Any:
        found, body = await self.ask(code, **fields)
        assert found == ResponseCode.SUCCESS, (found, body)
        return fastjson.loads(body)

    async def reset(self, timestamp_ms: int) -> list[int]:
        """Where the queues go on, lowest first."""
        table = await self.json(
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, timestamp=str(timestamp_ms), isForce="true"
        )
        return sorted(table["offsetTable"].values())


async def two_halves(name_servers: str, topic: str, queues: int) -> int:
    """Ten messages in each queue, and the time between the first five and the rest."""
    for queue_id in range(queues):
        await send(name_servers, topic, numbered(5), queue_id)
    await asyncio.sleep(PAUSE_SECONDS)
    middle_ms = int(time.time() * 1000)
    for queue_id in range(queues):
        await send(name_servers, topic, numbered(5, 5), queue_id)
    return middle_ms


async def until_committed(name_servers: str, group: str, topic: str, total: int) -> None:
    async with asyncio.timeout(30):
        # A broker resets no position of a group that has none.
        while await committed(name_servers, group, topic) != total:
            await asyncio.sleep(0.05)


def quick() -> Any:
    return config(client={"persist_offsets_millis": 100})


@pytest.mark.parametrize("orderly", [False, True])
async def test_a_running_group_goes_back_to_a_time_and_on_from_there(
    name_servers: str,
    create_topic: CreateTopic,
    unique: Unique,
    broker_control: BrokerControl,
    orderly: bool,
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    middle_ms = await two_halves(name_servers, topic, 1)
    taken = Taken()
    async with consuming(
        group, topic, name_servers, listener=taken.listener, orderly=orderly, config=quick()
    ):
        await until_committed(name_servers, group, topic, 10)
        assert await Operator(broker_control, group, topic).reset(middle_ms) == [5]
        await eventually(lambda: len(taken.messages) == 15)
        assert sorted(taken.bodies[10:]) == numbered(5, 5)
        await send(name_servers, topic, [b"new"])
        await eventually(lambda: taken.bodies[15:] == [b"new"])
        await until_committed(name_servers, group, topic, 11)


async def test_every_member_is_told(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=2), unique("group")
    await two_halves(name_servers, topic, 2)
    one, other = Taken(), Taken()
    async with (
        consuming(group, topic, name_servers, listener=one.listener, config=quick()) as first,
        consuming(group, topic, name_servers, listener=other.listener, config=quick()) as second,
    ):
        await eventually(lambda: len(queues_of(first, topic)) == len(queues_of(second, topic)) == 1)
        await until_committed(name_servers, group, topic, 20)
        before = len(one.messages), len(other.messages)
        assert await Operator(broker_control, group, topic).reset(0) == [0, 0]
        await eventually(lambda: len(one.messages) == before[0] + 10)
        await eventually(lambda: len(other.messages) == before[1] + 10)
        await until_committed(name_servers, group, topic, 20)
    for taken, count in zip((one, other), before, strict=True):
        assert sorted(taken.bodies[count:]) == numbered(10)


async def test_a_backlog_is_skipped_while_a_listener_hangs_in_it(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await two_halves(name_servers, topic, 1)
    go_on = asyncio.Event()

    async def hang(message: ReceivedMessage) -> None:
        await go_on.wait()

    taken = Taken(hang)
    settings = config(client={"persist_offsets_millis": 100}, consume_thread_max=1)
    async with consuming(
        group, topic, name_servers, listener=taken.listener, config=settings
    ) as consumer:
        await eventually(lambda: taken.bodies == [b"0"])
        await until_committed(name_servers, group, topic, 0)
        assert await Operator(broker_control, group, topic).reset(-1) == [10]
        await eventually(lambda: not queues_of(consumer, topic))
        go_on.set()
        await until_committed(name_servers, group, topic, 10)
        await send(name_servers, topic, [b"new"])
        await eventually(lambda: b"new" in taken.bodies)
    assert taken.bodies == [b"0", b"new"]


async def test_times_beyond_both_ends(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    middle_ms = await two_halves(name_servers, topic, 1)
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener, config=quick()):
        await until_committed(name_servers, group, topic, 10)
        operator = Operator(broker_control, group, topic)
        # RocketMQ 4.9 answers with the last message, ours with what comes after it.
        (end,) = await operator.reset(middle_ms + DAY_MS)
        assert end in (9, 10)
        await until_committed(name_servers, group, topic, 10)
        count = len(taken.messages)
        assert await operator.reset(middle_ms - DAY_MS) == [0]
        await eventually(lambda: len(taken.messages) >= count + 10)
        assert sorted(taken.bodies[-10:]) == numbered(10)


async def test_a_reset_reaches_a_queue_that_changes_hands(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    """The old member still works on the queue, and the new one waits for it, when the group is reset."""

    topic, group = create_topic(queues=2), unique("group")
    for queue_id in range(2):
        await send(name_servers, topic, numbered(3), queue_id)
    old, new = Taken(), Taken()
    async with consuming(
        group, topic, name_servers, listener=old.listener, config=quick()
    ) as first:
        await until_committed(name_servers, group, topic, 6)
        go_on = asyncio.Event()

        async def hang(message: ReceivedMessage) -> None:
            await go_on.wait()

        old.act = hang
        for queue_id in range(2):
            await send(name_servers, topic, [b"slow"], queue_id)
        await eventually(lambda: old.bodies[6:] == [b"slow"] * 2)
        second = PushConsumer(
            group, listener=new.listener, name_servers=name_servers, config=quick()
        )
        second.subscribe(topic)
        async with second:
            parts = second._parts
            assert parts is not None
            await eventually(
                lambda: (
                    [q for q in parts.rebalancer.taking if q.topic == topic]
                    and len(queues_of(first, topic)) == 1
                )
            )
            (moving,) = (queue for queue in parts.rebalancer.taking if queue.topic == topic)
            assert await Operator(broker_control, group, topic).reset(0) == [0, 0]
            # Both hold their message until they have heard of it.
            await asyncio.sleep(0.3)
            go_on.set()
            await eventually(lambda: len(new.messages) >= 4)
            assert {message.queue_id for message in new.messages} == {moving.queue_id}
            assert sorted(new.bodies) == [*numbered(3), b"slow"]
            await until_committed(name_servers, group, topic, 8)


async def test_a_group_that_is_not_there_is_moved_by_its_operator(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=2), unique("group")
    middle_ms = await two_halves(name_servers, topic, 2)
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener, config=quick()):
        await until_committed(name_servers, group, topic, 20)
    operator = Operator(broker_control, group, topic)
    reset = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    fields = {"timestamp": str(middle_ms), "isForce": "true"}
    async with asyncio.timeout(30):
        while (await operator.ask(reset, **fields))[0] != ResponseCode.CONSUMER_NOT_ONLINE:
            await asyncio.sleep(0.05)
    assert await committed(name_servers, group, topic) == 20
    positions = await jump(group, topic, to_time_ms=middle_ms, name_servers=name_servers)
    assert set(positions.values()) == {5}
    again = Taken()
    async with consuming(group, topic, name_servers, listener=again.listener):
        await eventually(lambda: len(again.messages) == 10)
    assert again.counts() == dict.fromkeys(numbered(5, 5), 2)


async def test_what_cannot_be_reset(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    await two_halves(name_servers, topic, 1)
    operator = Operator(broker_control, group, topic)
    reset = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    fields = {"timestamp": "0", "isForce": "true"}
    code, _ = await operator.ask(reset, **fields, topic=unique("nowhere"))
    assert code == ResponseCode.SYSTEM_ERROR
    code, _ = await operator.ask(reset, **fields, group=unique("nobody"))
    assert code == ResponseCode.SYSTEM_ERROR


async def test_another_group_takes_over_the_positions(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group, clone = create_topic(queues=2), unique("group"), unique("clone")
    await two_halves(name_servers, topic, 2)
    taken, cloned = Taken(), Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener, config=quick()):
        await until_committed(name_servers, group, topic, 20)
        names = {"srcGroup": group, "destGroup": clone, "offline": "false"}
        operator = Operator(broker_control, group, topic)
        code, _ = await operator.ask(RequestCode.CLONE_GROUP_OFFSET, **names)
        assert code == ResponseCode.SUCCESS
        assert await committed(name_servers, clone, topic) == 20
        for queue_id in range(2):
            await send(name_servers, topic, [b"new"], queue_id)
        async with consuming(clone, topic, name_servers, listener=cloned.listener):
            await eventually(lambda: len(cloned.messages) == 2)
    assert cloned.bodies == [b"new"] * 2


async def test_how_far_a_group_is_and_how_late(
    name_servers: str, create_topic: CreateTopic, unique: Unique, broker_control: BrokerControl
) -> None:
    topic, group = create_topic(queues=2), unique("group")
    await two_halves(name_servers, topic, 2)
    taken = Taken()
    async with consuming(group, topic, name_servers, listener=taken.listener, config=quick()):
        await until_committed(name_servers, group, topic, 20)
    await send(name_servers, topic, [b"waiting"], 1)
    last_ms = max(message.store_timestamp for message in taken.messages)
    operator = Operator(broker_control, group, topic)
    stats = await operator.json(RequestCode.GET_CONSUME_STATS, consumerGroup=group)
    entries = [stats["offsetTable"][name] for name in sorted(stats["offsetTable"])]
    assert [each["brokerOffset"] - each["consumerOffset"] for each in entries] == [0, 1]
    assert max(each["lastTimestamp"] for each in entries) == last_ms
    spans = (await operator.json(RequestCode.QUERY_CONSUME_TIME_SPAN))["consumeTimeSpanSet"]
    spans.sort(key=lambda span: span["messageQueue"]["queueId"])
    assert [span["delayTime"] > 0 for span in spans] == [False, True]
    first_ms = min(message.store_timestamp for message in taken.messages)
    assert min(span["minTimeStamp"] for span in spans) == first_ms
    assert max(span["consumeTimeStamp"] for span in spans) == last_ms
    code, _ = await operator.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, topic=unique("nowhere"))
    assert code == ResponseCode.TOPIC_NOT_EXIST
    nobody = await operator.json(RequestCode.GET_CONSUME_STATS, consumerGroup=unique("nobody"))
    assert sum(each["consumerOffset"] for each in nobody["offsetTable"].values()) == 0
