"""A master is replaced while clients send: planned, no send fails; clients that know the old one only go on, too."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from tests.eventually import eventually
from tests.integration.test_broker import Client
from tests.integration.test_controller_mode import (
    ControlledGroup,
    group_in,
    has_all,
    is_master,
    members,
)

from cometmq.broker.server import Broker
from cometmq.client import Message, SendStatus
from cometmq.client.aio import Producer
from cometmq.model.messages.record import decode_record
from cometmq.protocol.codes import RequestCode, ResponseCode

QUEUES = 4


async def elect(group: ControlledGroup, broker_id: int) -> int:
    tool = Client(f"127.0.0.1:{group.controller.port}")
    ext = {"clusterName": "DefaultCluster", "brokerName": "b", "brokerId": str(broker_id)}
    reply = await tool.ask(RequestCode.CONTROLLER_ELECT_MASTER, {**ext, "designateElect": "true"})
    await tool.remoting.close()
    return reply.code


def stored(broker: Broker, topic: str) -> list[bytes]:
    """All messages of a topic, queue by queue."""
    store, found = broker.core.store, []
    for queue_id in range(QUEUES):
        for offset in range(store.max_offset(topic, queue_id)):
            ((place, _, _),) = store.entries(topic, queue_id, offset, 1)
            view = store.record_at(place)
            assert view is not None
            found.append(decode_record(view).body)
    return found


def _is_beyond(sent: list[bytes], count: int) -> bool:
    return len(sent) > count


def _has_both(master: Broker) -> bool:
    return members(master) == {1, 2}


async def test_a_planned_change_fails_no_send_and_doubles_none(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        brokers = dict(enumerate(await group.pair(), 1))
        sent: list[bytes] = []
        is_over = asyncio.Event()
        async with Producer("p", name_servers=group.name_server) as producer:

            async def keep_sending(name: int) -> None:
                while not is_over.is_set():
                    body = b"%d-%d" % (name, len(sent))
                    result = await producer.send(Message(topic="T", body=body))
                    assert result.status is SendStatus.SEND_OK
                    sent.append(body)

            senders = [asyncio.create_task(keep_sending(name)) for name in range(8)]
            for leader, successor in ((1, 2), (2, 1), (1, 2)):
                await eventually(partial(_is_beyond, sent, len(sent) + 50))
                await eventually(partial(_has_both, brokers[leader]), seconds=20)
                assert await elect(group, successor) == 0
                await eventually(partial(is_master, brokers[successor]))
            is_over.set()
            await asyncio.gather(*senders)
        assert sorted(stored(brokers[2], "T")) == sorted(sent)


async def test_who_knows_the_old_master_only_is_passed_on(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        old, new = await group.pair()
        client = group.client(old)
        bodies = [b"%d" % number for number in range(200)]
        sends = [asyncio.create_task(client.send("T", body)) for body in bodies[:100]]
        assert await elect(group, 2) == 0
        sends += [asyncio.create_task(client.send("T", body)) for body in bodies[100:]]
        replies = await asyncio.gather(*sends)
        assert {reply.code for reply in replies} == {0}
        assert is_master(new)
        assert sorted(stored(new, "T")) == sorted(bodies)
        # Locks, too: an ordered consumer that does not know the new master yet keeps its queues.
        queue = {"topic": "T", "brokerName": "b", "queueId": 0}
        body = {"consumerGroup": "g", "clientId": "c", "mqSet": [queue]}
        reply = await client.ask(RequestCode.LOCK_BATCH_MQ, None, body)
        assert (reply.code, b'"queueId":0' in bytes(reply.body)) == (0, True)
        await eventually(lambda: has_all(old, new))


async def test_what_was_passed_on_once_is_not_passed_on_again(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, slave = await group.pair()
        reply = await group.client(slave).send("T", cometmqPassedOn="1")
        assert reply.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert master.core.store.max_offset("T", 0) == 0
        assert (await group.client(slave).send("T")).code == 0
        assert master.core.store.max_offset("T", 0) == 1


async def test_a_hand_over_that_nobody_follows_up_is_over_soon(tmp_path: Path) -> None:
    async with group_in(tmp_path) as group:
        master, _ = await group.pair()
        client = group.client(master)
        ext = {"masterEpoch": "1", "successorId": "2"}
        assert (await client.ask(RequestCode.HAND_OVER, ext)).code == 0
        # It waited; then the client is to try again, and is served.
        assert (await client.send("T")).code in (0, ResponseCode.SERVICE_NOT_AVAILABLE)
        assert (await client.send("T")).code == 0
        for wrong in ({**ext, "masterEpoch": "7"}, {**ext, "successorId": "9"}):
            assert (await client.ask(RequestCode.HAND_OVER, wrong)).code != 0
        assert (await client.send("T")).code == 0
