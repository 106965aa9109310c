"""Filter functions in processes of their own: those that work, and those that fail, loop, eat memory or end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.servers import running_broker

from cometmq.base.clock import SystemClock
from cometmq.broker.filters.filter_config import FiltersConfig
from cometmq.broker.filters.functions.pool import FilterFunctions, FunctionUnusable
from cometmq.broker.filters.functions.protocol import FunctionMessage
from cometmq.broker.server import Broker
from cometmq.model.messages.record import decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

FUNCTIONS = {
    "even": "def wants(m): return int(m.body) % 2 == 0",
    "all": "def wants(m): return True",
    "none": "def wants(m): return False",
    "noisy": "def wants(m):\n    print('x' * 100000)\n    return input() if False else True",
    "raises": "def wants(m): return 1 / (int(m.body) - 2)",
    "loops": "def wants(m):\n    while m.body == b'2': pass\n    return True",
    "slow": "import time\ndef wants(m):\n    time.sleep(0.1)\n    return True",
    "eats": "def wants(m):\n    return len('x' * (10 ** 10 if m.body == b'2' else 1))",
    "dies": "import os\ndef wants(m):\n    if m.body == b'2': os._exit(9)\n    return True",
    "broken": "def wants(m:",
    "stuck": "while True: pass",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    functions = tmp_path / "functions"
    functions.mkdir()
    for name, source in FUNCTIONS.items():
        (functions / f"{name}.py").write_text(source)
    return functions


def messages(*numbers: int) -> list[FunctionMessage]:
    return [FunctionMessage("T", number, "", 0, str(number).encode()) for number in numbers]


@asynccontextmanager
async def pool(directory: Path) -> AsyncIterator[FilterFunctions]:
    config = FiltersConfig(
        function_directory=str(directory), function_batch_ms=400, function_workers=2
    )
    functions = FilterFunctions(config, SystemClock())
    try:
        yield functions
    finally:
        await functions.stop()


class TestPool:
    async def test_messages_are_judged(self, directory: Path) -> None:
        async with pool(directory) as functions:
            for _ in range(2):
                assert await functions.judge("even", messages(1, 2, 3, 4)) == [
                    *(False, True, False, True)
                ]
            assert await functions.judge("noisy", messages(1)) == [True]
            assert (functions.restarts, sum(functions.faults.values())) == (0, 0)

    async def test_a_message_that_a_function_fails_for_is_not_wanted(self, directory: Path) -> None:
        async with pool(directory) as functions:
            assert await functions.judge("raises", messages(1, 2, 3)) == [True, False, True]
            assert (functions.restarts, functions.faults["raises"]) == (0, 1)

    @pytest.mark.parametrize("name", ["eats", "dies"])
    async def test_a_message_that_ends_the_worker_is_not_wanted(
        self, directory: Path, name: str
    ) -> None:
        async with pool(directory) as functions:
            assert await functions.judge(name, messages(1, 2, 3)) == [True, False]
            assert (functions.restarts, functions.faults[name]) == (1, 1)
            assert await functions.judge(name, messages(3)) == [True]

    async def test_a_message_that_never_ends_is_not_wanted(self, directory: Path) -> None:
        async with pool(directory) as functions:
            # The time may have gone to the first message, so the second gets another chance.
            assert await functions.judge("loops", messages(1, 2, 3)) == [True]
            assert functions.faults["loops"] == 0
            assert await functions.judge("loops", messages(2, 3)) == [False]
            assert (functions.restarts, functions.faults["loops"]) == (2, 1)
            assert await functions.judge("loops", messages(3)) == [True]

    async def test_a_slow_function_makes_progress_without_blame(self, directory: Path) -> None:
        async with pool(directory) as functions:
            judged = await functions.judge("slow", messages(*range(20)))
            assert judged == [True] * len(judged)
            assert 1 <= len(judged) <= 4
            assert functions.faults["slow"] == 0

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("broken", "SyntaxError"), ("stuck", "took too long"), ("absent", "FileNotFoundError")],
    )
    async def test_a_function_that_cannot_be_loaded_judges_nothing(
        self, directory: Path, name: str, reason: str
    ) -> None:
        async with pool(directory) as functions:
            with pytest.raises(FunctionUnusable, match=reason):
                await functions.judge(name, messages(1))
            assert await functions.judge("all", messages(1)) == [True]

    async def test_a_function_that_loops_does_not_hold_up_another(self, directory: Path) -> None:
        async with pool(directory) as functions:
            await functions.judge("all", messages(1))
            looping = [asyncio.create_task(functions.judge("loops", messages(2))) for _ in range(3)]
            assert await functions.judge("all", messages(1, 2)) == [True, True]
            # All three take 1.2 s at least, one behind the other.
            assert not looping[-1].done()
            assert await asyncio.gather(*looping) == [[False]] * 3

    async def test_a_worker_that_was_killed_while_idle_is_replaced(self, directory: Path) -> None:
        async with pool(directory) as functions:
            await functions.judge("all", messages(1))
            (worker,) = functions._workers
            os.kill(worker.process.pid, signal.SIGKILL)
            await worker.process.wait()
            assert await functions.judge("all", messages(1)) == [True]
            assert functions.faults["all"] == 0

    async def test_a_judge_that_is_cancelled_leaves_no_answers_behind(
        self, directory: Path
    ) -> None:
        async with pool(directory) as functions:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.25):
                    await functions.judge("slow", messages(1, 2, 3))
            assert await functions.judge("none", messages(1)) == [False]

    @pytest.mark.parametrize("name", ["", "../all", "a/b", "all.py", "é", "x" * 200, "absent"])
    async def test_only_a_file_of_the_directory_can_be_named(
        self, directory: Path, name: str
    ) -> None:
        async with pool(directory) as functions:
            assert functions.fault_of(name) is not None
            assert functions.fault_of("all") is None


class Client:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        dispatcher = Dispatcher()
        dispatcher.add(40, _ignore)
        self.remoting = RemotingClient(dispatcher)

    async def ask(self, code: int, ext: dict[str, str] | None, body: object = b"") -> Command:
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        request = Command(code=code, ext=ext, body=content)
        return await self.remoting.call(self.broker.address, request, 25.0)

    async def send(self, *numbers: int) -> None:
        ext = {"a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "0", "g": "1"}
        for number in numbers:
            assert (await self.ask(310, ext, str(number).encode())).code == 0

    async def pull(self, function: str, offset: int = 0, **fields: str) -> Command:
        ext = {
            "consumerGroup": "CG",
            "topic": "T",
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": "6",
            "suspendTimeoutMillis": "20000",
            "subscription": function,
            "expressionType": "PYTHON",
        }
        return await self.ask(11, ext | fields)

    async def read(self, function: str, end: int) -> list[int]:
        """All that a consumer gets between the start and an offset."""
        numbers: list[int] = []
        offset = 0
        while offset < end:
            reply = await self.pull(function, offset)
            assert reply.code in (0, 20), reply
            assert reply.ext is not None
            assert int(reply.ext["nextBeginOffset"]) > offset
            offset = int(reply.ext["nextBeginOffset"])
            numbers += [int(record.body) for record in decode_records(bytes(reply.body))]
        return numbers


def _ignore(connection: Connection, command: Command) -> None:
    return None


@asynccontextmanager
async def served(tmp_path: Path, **settings: str) -> AsyncIterator[Client]:
    functions = {
        "filterFunctionDirectory": str(tmp_path / "functions"),
        "filterFunctionBatchMillis": "400",
        **settings,
    }
    async with running_broker(tmp_path / "store", **functions) as broker:
        client = Client(broker)
        try:
            yield client
        finally:
            await client.remoting.close()


async def test_every_consumer_gets_to_the_end_of_its_queue(tmp_path: Path, directory: Path) -> None:
    async with served(tmp_path) as client:
        await client.send(*range(100))
        assert await client.read("even", 100) == list(range(0, 100, 2))
        assert await client.read("all", 100) == list(range(100))
        assert await client.read("none", 100) == []
        others = [number for number in range(100) if number != 2]
        for name in ("raises", "dies", "eats", "loops"):
            assert await client.read(name, 100) == others, name


async def test_a_heartbeat_may_name_the_function(tmp_path: Path, directory: Path) -> None:
    async with served(tmp_path) as client:
        await client.send(1, 2, 3, 4)
        wish = {"topic": "T", "subString": "even", "expressionType": "PYTHON", "subVersion": 3}
        consumer = {"groupName": "CG", "subscriptionDataSet": [wish]}
        await client.ask(34, None, {"clientID": "c", "consumerDataSet": [consumer]})
        reply = await client.pull("", sysFlag="0", subVersion="3")
        assert [record.body for record in decode_records(bytes(reply.body))] == [b"2", b"4"]
        assert (await client.pull("", sysFlag="0", subVersion="4")).code == 25


async def test_a_pull_waits_for_what_comes(tmp_path: Path, directory: Path) -> None:
    async with served(tmp_path) as client:
        await client.send(1)
        pull = asyncio.create_task(client.pull("even", 1))
        async with asyncio.timeout(10):
            while not len(client.broker.rooms.pull.long_polling):
                await asyncio.sleep(0.001)
        await client.send(4)
        assert [record.body for record in decode_records(bytes((await pull).body))] == [b"4"]


async def test_a_function_that_cannot_be_had_is_refused(tmp_path: Path, directory: Path) -> None:
    async with served(tmp_path) as client:
        await client.send(1)
        for name in ("absent", "../all", "broken"):
            assert (await client.pull(name)).code == 23, name

        async def check(name: str) -> int:
            wish = {"topic": "T", "subString": name, "expressionType": "PYTHON"}
            return (await client.ask(46, None, {"group": "CG", "subscriptionData": wish})).code

        assert (await check("all"), await check("absent")) == (0, 23)


async def test_without_a_directory_there_are_none(tmp_path: Path) -> None:
    async with served(tmp_path, filterFunctionDirectory="") as client:
        await client.send(1)
        reply = await client.pull("all")
        assert (reply.code, reply.remark) == (
            1,
            "The broker does not support consumer to filter message by PYTHON",
        )


async def test_others_are_served_while_a_function_loops(tmp_path: Path, directory: Path) -> None:
    async with served(tmp_path) as client:
        await client.send(2, 3)
        looping = asyncio.create_task(client.pull("loops"))
        count = 0
        while not looping.done():
            reply = await client.pull("*", expressionType="TAG")
            assert reply.code == 0
            count += 1
        # A broker that waited for the function would have answered one of them, at its end.
        assert count > 5
        assert (await looping).code in (0, 20)
