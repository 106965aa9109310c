"""The admin requests against a running broker, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.testing.cluster import Cluster, cluster

TOPIC = {
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "readQueueNums": "2",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": "0",
    "order": "false",
}


class Admin:
    """Asks the broker or the name server, and keeps what the broker pushes."""

    def __init__(self, servers: Cluster) -> None:
        self.servers = servers
        self.pushed: asyncio.Queue[Command] = asyncio.Queue()
        dispatcher = Dispatcher()
        for code in (40, 220, 221, 307):
            dispatcher.add(code, self._pushed)
        self.client = RemotingClient(dispatcher)

    async def ask(self, code: int, ext: dict[str, str] | None = None, body: bytes = b"") -> Command:
        return await self.client.call(
            self.servers.broker_address, Command(code=code, ext=ext, body=body)
        )

    async def json(self, code: int, ext: dict[str, str] | None = None, body: bytes = b"") -> Any:
        reply = await self.ask(code, ext, body)
        assert reply.code == 0, reply.remark
        return fastjson.loads(bytes(reply.body))

    async def route(self, topic: str) -> Command:
        request = Command(code=RequestCode.GET_ROUTEINFO_BY_TOPIC, ext={"topic": topic})
        return await self.client.call(self.servers.name_servers, request)

    async def send(self, topic: str, queue_id: int = 0) -> Command:
        ext = {
            "producerGroup": "p",
            "topic": topic,
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": str(queue_id),
            "sysFlag": "0",
            "bornTimestamp": "1",
            "flag": "0",
            "properties": "TAGS\x01a",
        }
        return await self.ask(RequestCode.SEND_MESSAGE, ext, b"hello")

    async def heartbeat(self, group: str, topic: str) -> None:
        subscription = {"topic": topic, "subString": "*", "subVersion": 1}
        consumer = {
            "groupName": group,
            "consumeType": "CONSUME_PASSIVELY",
            "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
            "subscriptionDataSet": [subscription],
            "unitMode": False,
        }
        body = {
            "clientID": "c1",
            "producerDataSet": [{"groupName": "p"}],
            "consumerDataSet": [consumer],
        }
        assert (await self.ask(RequestCode.HEART_BEAT, None, fastjson.dumps(body))).code == 0

    async def next_push(self, code: int) -> Command:
        async with asyncio.timeout(5):
            while (command := await self.pushed.get()).code != code:
                pass
        return command

    def _pushed(self, connection: Connection, command: Command) -> Command:
        self.pushed.put_nowait(command)
        return command.reply(0, "from the client", body=b'{"messageQueueTable":{},"jstack":"none"}')


@asynccontextmanager
async def admin_at_work() -> AsyncIterator[Admin]:
    async with cluster(settings={"brokerName": "b", "brokerClusterName": "C"}) as servers:
        admin = Admin(servers)
        try:
            yield admin
        finally:
            await admin.client.close()


async def test_what_was_pulled_and_not_committed_is_under_way() -> None:
    async with admin_at_work() as admin:
        for _ in range(3):
            assert (await admin.send("Orders")).code == 0
        queue = {"consumerGroup": "G", "topic": "Orders", "queueId": "0"}
        assert (await admin.ask(15, queue | {"commitOffset": "1"})).code == 0
        pull = {"queueOffset": "1", "maxMsgNums": "32", "sysFlag": "4", "subscription": "*"}
        assert (await admin.ask(11, queue | pull)).code == 0
        table = (await admin.json(208, {"consumerGroup": "G"}))["offsetTable"]
        (lag,) = (lag for name, lag in table.items() if '"queueId":0' in name)
        assert (lag["brokerOffset"], lag["pullOffset"], lag["consumerOffset"]) == (3, 3, 1)


async def test_a_topic_lives_from_creation_to_deletion() -> None:
    async with admin_at_work() as admin:
        assert (await admin.ask(17, TOPIC)).code == 0
        # The name server knew it before the answer came.
        assert (await admin.route("Orders")).code == 0
        for _ in range(3):
            assert (await admin.send("Orders", 1)).code == 0
        stats = (await admin.json(202, {"topic": "Orders"}))["offsetTable"]
        assert sorted(entry["maxOffset"] for entry in stats.values()) == [0, 3]
        entries = await admin.json(
            321, {"topic": "Orders", "queueId": "1", "index": "1", "count": "9"}
        )
        assert [entry["tagsCode"] for entry in entries["queueData"]] == [97, 97]
        table = (await admin.json(28))["table"]
        assert int(table["putMessageTimesTotal"]) >= 3
        assert int(table["commitLogMaxOffset"]) > 0
        figures = await admin.json(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "Orders"})
        assert figures["statsMinute"]["sum"] == 3
        assert (await admin.ask(215, {"topic": "Orders"})).code == 0
        assert (await admin.ask(202, {"topic": "Orders"})).code == 17
        assert (await admin.ask(306)).code == 0
        assert (await admin.ask(316)).code == 0
        assert (await admin.ask(329)).code == 0


async def test_a_group_is_seen_measured_and_reset() -> None:
    async with admin_at_work() as admin:
        await admin.ask(17, TOPIC)
        for number in (0, 1):
            await admin.send("Orders", number)
        await admin.heartbeat("g", "Orders")
        for queue_id in ("0", "1"):
            queue = {"topic": "Orders", "queueId": queue_id}
            await admin.ask(15, {"consumerGroup": "g", "commitOffset": "1", **queue})
        connections = await admin.json(203, {"consumerGroup": "g"})
        assert connections["connectionSet"][0]["clientId"] == "c1"
        assert list((await admin.json(328))["data"]) == ["p"]
        lag = await admin.json(208, {"consumerGroup": "g"})
        assert {entry["consumerOffset"] for entry in lag["offsetTable"].values()} == {1}
        assert all(entry["lastTimestamp"] > 0 for entry in lag["offsetTable"].values())
        assert await admin.json(300, {"topic": "Orders"}) == {"groupList": ["g"]}
        spans = (await admin.json(303, {"topic": "Orders", "group": "g"}))["consumeTimeSpanSet"]
        assert [span["delayTime"] for span in spans] == [0, 0]

        assert (await admin.ask(25, None, b"useServerSideResetOffset=false")).code == 0
        reset = {"topic": "Orders", "group": "g", "timestamp": "0", "isForce": "true"}
        table = (await admin.json(222, reset))["offsetTable"]
        assert set(table.values()) == {0}
        push = await admin.next_push(220)
        assert fastjson.loads(bytes(push.body))["offsetTable"] == table
        assert (await admin.json(223, reset))["consumerTable"] == {"c1": {}}
        running = await admin.ask(307, {"consumerGroup": "g", "clientId": "c1"})
        assert (running.code, running.remark) == (0, "from the client")

        body = {"topic": "Orders", "consumerGroup": "g", "clientId": "c1", "strategyName": "AVG"}
        assigned = await admin.json(400, None, fastjson.dumps(body))
        assert [entry["mode"] for entry in assigned["messageQueueAssignments"]] == ["PULL", "PULL"]

        assert (await admin.ask(207, {"groupName": "g", "cleanOffset": "true"})).code == 0
        assert (await admin.json(208, {"consumerGroup": "g"}))["offsetTable"] == {}


async def test_a_setting_takes_effect_at_once() -> None:
    async with admin_at_work() as admin:
        assert (await admin.ask(25, None, b"maxMessageSize=3\n")).code == 0
        assert b"maxMessageSize=3\n" in bytes((await admin.ask(26)).body)
        await admin.ask(17, TOPIC)
        assert (await admin.send("Orders")).code == 13
        assert (await admin.ask(25, None, b"maxMessageSize=4194304\n")).code == 0
        assert (await admin.send("Orders")).code == 0
        assert (await admin.ask(25, None, b"storePathRootDir=/tmp\n")).code == 16


@pytest.mark.parametrize("code", [50, 902, 3001])
async def test_what_does_not_exist_yet_is_not_supported(code: int) -> None:
    async with admin_at_work() as admin:
        reply = await admin.ask(code)
        assert (reply.code, reply.remark) == (3, f" request type {code} not supported")


async def test_malformed_requests_are_refused_and_the_connection_lives_on() -> None:
    header_codes = [17, 215, 351, 352, 207, 202, 203, 204, 208, 222, 223, 300, 343, 345, 303]
    header_codes += [308, 314, 315, 321, 353, 307, 309]
    body_codes = [18, 25, 200, 225, 400, 401]

    async with admin_at_work() as admin:
        connection = await admin.client.connection(admin.servers.broker_address)
        for code in header_codes:
            reply = await admin.ask(code, {"queueId": "x", "timestamp": "\x00", "topic": "../x"})
            # Nobody consumes a topic that cannot exist: an empty list, not an error.
            assert reply.code != 0 or code == 300, code
        for code in header_codes[:-2]:
            assert (await admin.ask(code)).code != 0, code
        for code in body_codes:
            for body in (b"{", b"[" * 100_000, b"\xff\xfe", b"[1]"):
                assert (await admin.ask(code, None, body)).code != 0, (code, body[:10])
        assert connection is await admin.client.connection(admin.servers.broker_address)
        assert (await admin.ask(28)).code == 0
