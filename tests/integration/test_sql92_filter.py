"""SQL92 subscriptions on real sockets: heartbeats, pulls that wait, a broker that restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.integration.servers import running_broker

from cometmq.broker.server import Broker
from cometmq.model.messages.record import decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher


class Client:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        dispatcher = Dispatcher()
        dispatcher.add(40, _ignore)
        self.remoting = RemotingClient(dispatcher)

    async def ask(
        self, code: int, ext: dict[str, str] | None = None, body: object = b""
    ) -> Command:
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        return await self.remoting.call(
            self.broker.address, Command(code=code, ext=ext, body=content), 25.0
        )

    async def send(self, body: str, **properties: str) -> None:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        ext = {"a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "0", "g": "1", "i": text}
        assert (await self.ask(310, ext, body.encode())).code == 0

    async def beat(self, group: str, expression: str, version: int) -> None:
        wish = {
            "topic": "T",
            "subString": expression,
            "subVersion": version,
            "expressionType": "SQL92",
        }
        consumer = {"groupName": group, "subscriptionDataSet": [wish]}
        reply = await self.ask(34, None, {"clientID": "c", "consumerDataSet": [consumer]})
        assert reply.code == 0

    async def pull(self, group: str, offset: int, version: int, *, wait_ms: int = 0) -> Command:
        ext = {
            "consumerGroup": group,
            "topic": "T",
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "2" if wait_ms else "0",
            "suspendTimeoutMillis": str(wait_ms),
            "subVersion": str(version),
        }
        return await self.ask(11, ext)

    async def bodies(self, group: str, offset: int, version: int) -> list[str]:
        return bodies(await self.pull(group, offset, version))


def _ignore(connection: Connection, command: Command) -> None:
    return None


def bodies(reply: Command) -> list[str]:
    assert reply.code == 0, reply
    return [record.body.decode() for record in decode_records(bytes(reply.body))]


@asynccontextmanager
async def served(directory: Path, **settings: str) -> AsyncIterator[Client]:
    async with running_broker(directory, **settings) as broker:
        client = Client(broker)
        try:
            yield client
        finally:
            await client.remoting.close()


async def test_two_groups_get_what_each_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        await client.beat("cheap", "price < 10", 1)
        await client.beat("dear", "price >= 10 AND name IS NOT NULL", 1)
        for price in range(20):
            names = {"name": "x"} if price % 2 else {}
            await client.send(str(price), price=str(price), **names)
        assert await client.bodies("cheap", 0, 1) == [str(price) for price in range(10)]
        assert await client.bodies("dear", 0, 1) == ["11", "13", "15", "17", "19"]


async def test_a_pull_waits_until_a_message_fits(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        await client.send("0", price="1")
        await client.beat("dear", "price >= 10", 1)
        pull = asyncio.create_task(client.pull("dear", 1, 1, wait_ms=20_000))
        async with asyncio.timeout(10):
            while not len(client.broker.rooms.pull.long_polling):
                await asyncio.sleep(0.001)
        for number, price in enumerate(("2", "x", "9", ""), start=1):
            await client.send(str(number), price=price)
            assert not pull.done()
        await client.send("fits", price="10")
        assert bodies(await pull) == ["fits"]


async def test_filters_outlive_the_broker(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        await client.send("no", a="1")
        await client.send("yes", a="2")
        await client.beat("g", "a = 2", 7)
    saved = fastjson.loads((tmp_path / "config" / "consumerFilter.json").read_bytes())
    entry = saved["filterDataByTopic"]["T"]["groupFilterData"]["g"]
    assert (entry["expression"], entry["clientVersion"], entry["dead"]) == ("a = 2", 7, True)
    async with served(tmp_path) as client:
        assert (await client.pull("g", 0, 7)).code == 24
        await client.beat("g", "a = 2", 7)
        assert await client.bodies("g", 0, 7) == ["yes"]


async def test_a_wrong_expression_hurts_its_own_group_only(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        await client.send("x", a="5")
        await client.beat("right", "a = 5", 1)
        await client.beat("wrong", "a = = 5", 1)
        reply = await client.pull("wrong", 0, 1)
        assert reply.code == 27
        assert await client.bodies("right", 0, 1) == ["x"]


async def test_a_huge_expression_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        for number in range(200):
            await client.send(str(number), a=str(number))
        await client.beat("huge", " OR ".join(f"a = -{n}" for n in range(1, 1300)), 1)
        offset, pulls = 0, 0
        while (reply := await client.pull("huge", offset, 1)).code == 20:
            assert reply.ext is not None
            offset, pulls = int(reply.ext["nextBeginOffset"]), pulls + 1
        assert (reply.code, offset) == (19, 200)
        # Each of them looked at a few messages and let others in.
        assert pulls >= 10
