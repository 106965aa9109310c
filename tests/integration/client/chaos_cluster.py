"""Two name servers, two brokers and four consumers, all processes, and a fate that kills them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests.integration.client.chaos_book import Delivery, ReadBook
from tests.integration.client.conftest import BROKER_SETTINGS, CREATE_TOPIC
from tests.interop.servers import ServerCommands, ask
from tests.interop.systems import Broker, NameServer

PROGRAM = Path(__file__).with_name("chaos_consumer.py")
QUEUES = 4
CLOSE_SECONDS_MAX = 40.0
POLL_SECONDS = 0.1
LOCK_MAX_LIVE = "rocketmq.broker.rebalance.lockMaxLiveTime"
LOCK_MILLIS = 5000
CONSUME_STATS = 208
OFFSETS = re.compile(rb'"brokerOffset":(\d+),"consumerOffset":(\d+)')


class ConsumerProcess:
    def __init__(self, name_servers: str, topic: str, kind: str, path: Path) -> None:
        self.topic = topic
        self.book = ReadBook(path)
        self._log = path.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, PROGRAM, name_servers, topic, f"group-{topic}", kind, path],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Its imports are those of this very environment.
                env={**os.environ, "PYTHONPATH": ""},
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """As a service manager does it. Raises when it does not end well."""
        self._process.terminate()
        code = self._process.wait(CLOSE_SECONDS_MAX)
        assert code == 0, f"code {code}: {self._log.read_text()[-2000:]}"


class ChaosCluster:
    """Args:
    kinds: a topic and the kind of its consumers, ``plain`` or ``orderly``, two of each.
    """

    def __init__(
        self, commands: ServerCommands, directory: Path, kinds: dict[str, str], seed: int
    ) -> None:
        self._commands = _with_lock_time(commands)
        self._directory = directory
        self._kinds = kinds
        self._random = random.Random(seed)
        self._books: list[tuple[str, ReadBook]] = []
        self._servers = [NameServer(self._commands, directory / f"n{number}") for number in (1, 2)]
        settings = {**BROKER_SETTINGS, "registerNameServerPeriod": 10_000}
        if commands.broker[0] != "java":
            settings[LOCK_MAX_LIVE] = LOCK_MILLIS
        self._brokers = [
            Broker(self._servers, directory / name, name, **settings) for name in ("b1", "b2")
        ]
        self.consumers: list[ConsumerProcess] = []
        self.kills: Counter[str] = Counter()

    @property
    def name_servers(self) -> str:
        return ";".join(server.address for server in self._servers)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ChaosCluster]:
        try:
            await asyncio.gather(*(asyncio.to_thread(each.start) for each in self._servers))
            starts = (asyncio.to_thread(each.start, self._commands) for each in self._brokers)
            await asyncio.gather(*starts)
            for broker in self._brokers:
                for topic in self._kinds:
                    _create_topic(broker.port, topic)
            for topic in self._kinds:
                for _ in range(2):
                    self.start_consumer(topic)
            yield self
        finally:
            for consumer in self.consumers:
                consumer.kill()
            for broker in self._brokers:
                broker.kill()
            for server in self._servers:
                server.kill()

    def start_consumer(self, topic: str) -> ConsumerProcess:
        path = self._directory / f"reader-{len(self._books)}.txt"
        consumer = ConsumerProcess(self.name_servers, topic, self._kinds[topic], path)
        self._books.append((topic, consumer.book))
        self.consumers.append(consumer)
        return consumer

    def deliveries(self, topic: str) -> list[Delivery]:
        """Of all processes, dead ones too."""
        books = (book for its_topic, book in self._books if its_topic == topic)
        return [delivery for book in books for delivery in book.deliveries()]

    async def chaos(self, seconds: float) -> None:
        """Kill and restart. At the end everything runs."""
        until = time.monotonic() + seconds
        await asyncio.gather(
            self._while(until, (0.5, 3.0), self._broker_dies),
            self._while(until, (2.0, 6.0), self._name_server_dies),
            self._while(until, (0.5, 2.5), self._consumer_dies),
        )

    async def settled(self, seconds_max: float) -> None:
        """Every name server knows every broker, and every queue has exactly one reader."""
        await until_true(lambda: all(each.is_known() for each in self._brokers), seconds_max)
        await until_true(self._is_shared, seconds_max)

    async def caught_up(self, seconds_max: float) -> None:
        """The brokers know that everything is consumed: whoever takes a queue from now on begins at its end.

        That everything was delivered is not enough. Who takes over from a killed consumer reads again what that one
        had not committed, and an orderly one waits for the dead one's lock first.
        """
        await until_true(self._is_all_committed, seconds_max)

    async def replace_consumer(self, consumer: ConsumerProcess) -> None:
        self.consumers.remove(consumer)
        await asyncio.to_thread(consumer.close)
        self.start_consumer(consumer.topic)

    async def _while(
        self, until: float, pause: tuple[float, float], act: Callable[[], Awaitable[None]]
    ) -> None:
        while (wait := self._random.uniform(*pause)) + time.monotonic() < until:
            await asyncio.sleep(wait)
            await act()

    async def _broker_dies(self) -> None:
        broker = self._random.choice(self._brokers)
        broker.kill()
        self.kills["broker"] += 1
        await asyncio.sleep(self._random.uniform(0.0, 2.0))
        await asyncio.to_thread(broker.start, self._commands, until_known=False)

    async def _name_server_dies(self) -> None:
        server = self._random.choice(self._servers)
        server.kill()
        self.kills["name server"] += 1
        await asyncio.sleep(self._random.uniform(0.0, 2.0))
        await asyncio.to_thread(server.start)

    async def _consumer_dies(self) -> None:
        consumer = self._random.choice(self.consumers)
        self.consumers.remove(consumer)
        consumer.kill()
        self.kills["consumer"] += 1
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        self.start_consumer(consumer.topic)

    def _is_shared(self) -> bool:
        for topic in self._kinds:
            shares = [each.book.queues() for each in self.consumers if each.topic == topic]
            held = [queue for share in shares for queue in share]
            if not all(shares) or len(held) != len(set(held)) or len(held) != QUEUES * 2:
                return False
        return True

    def _is_all_committed(self) -> bool:
        for topic in self._kinds:
            for broker in self._brokers:
                fields = {"consumerGroup": f"group-{topic}", "topic": topic}
                code, body = ask(broker.port, CONSUME_STATS, fields)
                assert code == 0, f"broker answered {code} to the stats of {topic}"
                queues = OFFSETS.findall(body)
                assert len(queues) == QUEUES, body
                if any(end != consumed for end, consumed in queues):
                    return False
        return True


async def until_true(condition: Callable[[], bool], seconds_max: float) -> None:
    async with asyncio.timeout(seconds_max):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(POLL_SECONDS)


def _with_lock_time(commands: ServerCommands) -> ServerCommands:
    """RocketMQ takes this one from its virtual machine."""
    flag = f"-D{LOCK_MAX_LIVE}={LOCK_MILLIS}"
    environment = {**commands.environment, "JAVA_TOOL_OPTIONS": flag}
    return ServerCommands(commands.name_server, commands.broker, environment)


def _create_topic(port: int, topic: str) -> None:
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(QUEUES),
        "writeQueueNums": str(QUEUES),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    code, _ = ask(port, CREATE_TOPIC, fields)
    assert code == 0, f"broker answered {code} to the creation of {topic}"
