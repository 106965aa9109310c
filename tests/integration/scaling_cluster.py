"""A cluster that grows and shrinks under load: brokers by name, an operator's calls, and clients that keep books."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from cometmq.base.errors import CometError
from cometmq.broker.server import Broker
from cometmq.client import (
    ClientConfig,
    Message,
    Outcome,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
)
from cometmq.client.aio import Producer, PushConsumer
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer

from .raw_client import RawClient
from .servers import broker_config

TOPIC = "Scaled"
GROUP = "scaled-readers"
RETRY = f"%RETRY%{GROUP}"
LATER_EVERY = 40
"""Each so-manieth message is consumed at its second delivery only: retries must survive what brokers go through."""
ROUTE_SECONDS = 0.2

SETTINGS = {
    "messageDelayLevel": " ".join(["1s"] * 18),
    "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": str(20 * 1000),
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
}


class Growing:
    """One name server and as many brokers as are started."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._name_server: NameServer | None = None
        self._brokers: dict[str, Broker] = {}

    async def __aenter__(self) -> Self:
        config, _ = load_namesrv_config(
            {
                "listenPort": "0",
                "bindAddress": "127.0.0.1",
                "kvConfigPath": str(self._directory / "kvConfig.json"),
                "configStorePath": str(self._directory / "namesrv.properties"),
            }
        )
        self._name_server = NameServer(config)
        await self._name_server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._brokers):
            await self.stop(name)
        assert self._name_server is not None
        await self._name_server.stop()

    @property
    def name_servers(self) -> str:
        assert self._name_server is not None
        return f"127.0.0.1:{self._name_server.port}"

    async def start(self, name: str) -> None:
        """Again on what it left behind, if it ran before."""
        settings = {**SETTINGS, "brokerName": name, "namesrvAddr": self.name_servers}
        self._brokers[name] = Broker(broker_config(self._directory / name, **settings))
        await self._brokers[name].start()

    async def stop(self, name: str) -> None:
        await self._brokers.pop(name).stop()

    # What an operator does; mqadmin has a command for each.

    async def update_topic(self, name: str, *, read: int, write: int) -> None:
        fields = {
            "topic": TOPIC,
            "defaultTopic": "TBW102",
            "readQueueNums": str(read),
            "writeQueueNums": str(write),
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        await self._ask(self._brokers[name].address, 17, fields)

    async def wipe_write_perm(self, name: str) -> int:
        reply = await self._ask(self.name_servers, 205, {"brokerName": name})
        return int(reply["wipeTopicCount"])

    async def add_write_perm(self, name: str) -> int:
        reply = await self._ask(self.name_servers, 327, {"brokerName": name})
        return int(reply["addTopicCount"])

    async def update_config(self, name: str, text: str) -> None:
        async with RawClient(self._brokers[name].address) as client:
            reply = await client.ask(25, None, text.encode())
        assert reply.code == 0, reply.remark

    async def is_drained(self, name: str) -> bool:
        """Whether the group has everything of the broker, and nothing waits there for its delay."""
        async with RawClient(self._brokers[name].address) as client:
            info = msgspec.json.decode((await client.ask(28)).body)["table"]
        delays = [text.split(",") for key, text in info.items() if "scheduleMessageOffset" in key]
        assert delays
        if any(offset != end for offset, end in delays):
            return False
        return await self.is_read(name, range(16)) and await self.is_read(name, range(16), RETRY)

    async def is_read(self, name: str, queue_ids: range, topic: str = TOPIC) -> bool:
        """Whether the group's positions are at the ends of these queues."""
        async with RawClient(self._brokers[name].address) as client:
            for queue_id in queue_ids:
                place = {"topic": topic, "queueId": str(queue_id)}
                end = (await client.ask(30, place)).ext or {}
                position = await client.ask(14, {**place, "consumerGroup": GROUP})
                done = int((position.ext or {}).get("offset", "0")) if not position.code else 0
                if done < int(end["offset"]):
                    return False
        return True

    async def _ask(self, address: str, code: int, fields: dict[str, str]) -> dict[str, str]:
        async with RawClient(address) as client:
            reply = await client.ask(code, fields)
        assert reply.code == 0, reply.remark
        return reply.ext or {}


class Load:
    """Two senders and two members of a group, at work as long as the block lasts."""

    def __init__(self, name_servers: str) -> None:
        client = ClientConfig(
            name_servers=name_servers,
            poll_name_server_millis=int(ROUTE_SECONDS * 1000),
            persist_offsets_millis=100,
        )
        self._producer = Producer("scaled-writers", config=ProducerConfig(client=client))
        self.consumers = [
            PushConsumer(
                GROUP,
                listener=self._listen,
                config=PushConsumerConfig(client=client, rebalance_interval_ms=500),
            )
            for _ in range(2)
        ]
        self.sent: list[bytes] = []
        self.places: list[tuple[str, int]] = []
        """Broker and queue of each send, in order."""
        self.failures: list[CometError] = []
        self.taken: Counter[bytes] = Counter()
        self.taken_from: Counter[tuple[str, int]] = Counter()
        self._senders: list[asyncio.Task[None]] = []
        self._is_sending = True

    async def __aenter__(self) -> Self:
        for consumer in self.consumers:
            consumer.subscribe(TOPIC)
            await consumer.start()
        await self._producer.start()
        self._senders = [asyncio.create_task(self._send(number)) for number in range(2)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_sending()
        await self._producer.close()
        for consumer in self.consumers:
            await consumer.close()

    async def stop_sending(self) -> None:
        self._is_sending = False
        await asyncio.gather(*self._senders)

    def is_all_taken(self) -> bool:
        return not set(self.sent) - self.taken.keys()

    def recent(self, count: int = 40) -> set[tuple[str, int]]:
        """Where the last sends went; empty while there were too few since ``forget_places``."""
        return set(self.places[-count:]) if len(self.places) >= count else set()

    def forget_places(self) -> None:
        self.places.clear()
        self.taken_from.clear()

    def queues_of(self, broker_name: str) -> list[int]:
        """What the group has of a broker's queues, over all members."""
        return sorted(
            queue.queue_id
            for consumer in self.consumers
            for queue in consumer.queues
            if queue.topic == TOPIC and queue.broker_name == broker_name
        )

    async def _send(self, sender: int) -> None:
        number = 0
        while self._is_sending:
            body = b"%d-%d" % (sender, number)
            number += 1
            try:
                result = await self._producer.send(Message(topic=TOPIC, body=body))
            except CometError as error:
                self.failures.append(error)
            else:
                self.sent.append(body)
                self.places.append((result.queue.broker_name, result.queue.queue_id))
            await asyncio.sleep(0.004)

    async def _listen(self, message: ReceivedMessage) -> Any:
        number = int(message.body.partition(b"-")[2])
        if number % LATER_EVERY == 0 and message.reconsume_times == 0:
            return Outcome.later()
        self.taken[message.body] += 1
        if message.broker_name is not None:
            self.taken_from[message.broker_name, message.queue_id] += 1
        return None
