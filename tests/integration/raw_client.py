"""A client that speaks the protocol and decides nothing: what a test asks for is what goes over the wire."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

from tests.eventually import eventually

from cometmq.model.messages.properties import render_properties
from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

PUSH_REPLY, CHECK_TRANSACTION = 326, 39
PULL_SUSPEND, PULL_SUBSCRIPTION = 2, 4

T = TypeVar("T")


class RawClient:
    def __init__(self, address: str) -> None:
        self.address = address
        self.replies: asyncio.Queue[Command] = asyncio.Queue()
        self.questions: asyncio.Queue[Command] = asyncio.Queue()
        """About transactions."""
        dispatcher = Dispatcher()
        dispatcher.add(PUSH_REPLY, self._take_reply)
        dispatcher.add(CHECK_TRANSACTION, self._take_question)
        self.remoting = RemotingClient(dispatcher)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.remoting.close()

    async def ask(
        self, code: int, ext: dict[str, str] | None = None, body: object = b""
    ) -> Command:
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        request = Command(code=code, ext=ext, body=content, version=409)
        return await self.remoting.call(self.address, request, 10.0)

    async def send(
        self,
        topic: str,
        body: bytes,
        properties: Mapping[str, str] | None = None,
        *,
        code: int = 310,
        tries: tuple[int, int] = (0, 16),
    ) -> Command:
        """Args: tries: how often a message was tried, and how often it may be at most."""
        ext = {
            **{"a": "PG", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "0"},
            "g": str(time.time_ns() // 1_000_000),
            "i": render_properties(properties or {}),
            "j": str(tries[0]),
            "l": str(tries[1]),
        }
        return await self.ask(code, ext, body)

    async def send_back(self, record: Record, group: str, level: int = 0, **fields: str) -> Command:
        ext = {"offset": str(record.physical_offset), "group": group, "delayLevel": str(level)}
        return await self.ask(36, ext | fields)

    async def create_topic(self, topic: str, queues: int) -> None:
        ext = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": str(queues),
            "writeQueueNums": str(queues),
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "order": "false",
        }
        reply = await self.ask(17, ext)
        assert reply.code == 0, reply.remark

    async def pull(
        self, topic: str, offset: int, *, queue_id: int = 0, wait_ms: int = 0
    ) -> Command:
        ext = {
            "consumerGroup": "Reader",
            "topic": topic,
            "queueId": str(queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": str(PULL_SUBSCRIPTION | PULL_SUSPEND if wait_ms else PULL_SUBSCRIPTION),
            "suspendTimeoutMillis": str(wait_ms),
            "subscription": "*",
        }
        return await self.ask(11, ext)

    async def read(self, topic: str, queue_id: int = 0) -> list[Record]:
        """Every message of a queue."""
        records: list[Record] = []
        while True:
            reply = await self.pull(topic, len(records), queue_id=queue_id)
            if reply.code != 0:
                return records
            records += decode_records(reply.body)

    async def read_until(self, count: int, topic: str, seconds: float = 10.0) -> list[Record]:
        """The messages of a queue once there are so many."""

        async def enough() -> list[Record] | None:
            found = await self.read(topic)
            return found if len(found) >= count else None

        return await eventually(enough, f"{count} messages in {topic}", seconds)

    async def beat(self, client_id: str, group: str) -> None:
        producers = [{"groupName": group}]
        beat = {"clientID": client_id, "producerDataSet": producers, "consumerDataSet": []}
        reply = await self.ask(34, None, beat)
        assert reply.code == 0, reply.remark

    def _take_reply(self, connection: Connection, command: Command) -> Command:
        self.replies.put_nowait(command)
        return command.reply()

    def _take_question(self, connection: Connection, command: Command) -> None:
        self.questions.put_nowait(command)
