"""A broker in memory with the verbs of a client: what all unit tests of the broker stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from cometmq.model.messages.batch import BatchElement, encode_batch
from cometmq.model.messages.record import Record
from cometmq.model.subscription import build_subscription
from cometmq.model.topic import TopicConfig
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.testing.fake_connection import FakeConnection
from cometmq.testing.memory_broker import MemoryBroker

T = TypeVar("T")


class Rig(MemoryBroker):
    make_peer = FakeConnection

    def open(self, **settings: str) -> None:
        super().open(**settings)
        core, rooms = self.core, self.rooms
        self.store = core.store
        self.topics = core.topics
        self.groups = core.groups
        self.offsets = core.offsets
        self.modes = core.modes
        self.filters = core.filters
        self.clients = core.clients
        self.creation = core.creation
        self.stats = core.stats
        self.flow = rooms.send.flow
        self.schedule = rooms.schedule
        self.timed = rooms.timer.timed
        self.transactions = rooms.transaction.transactions
        self.long_polling = rooms.pull.long_polling

    def ask(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: object = b"",
        peer: FakeConnection | None = None,
        *,
        language: str = "JAVA",
    ) -> Command:
        """What a request is answered with. A body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        command = Command(code=code, ext=ext, body=content, opaque=7, language=language)
        replies = self.dispatch(command, peer)
        assert replies, "no answer"
        reply = replies[-1]
        assert (reply.opaque, reply.flag) == (7, 1)
        return reply

    def json(self, code: int, ext: dict[str, str] | None = None, body: object = b"") -> Any:
        """The JSON body of a successful answer."""
        reply = self.ask(code, ext, body)
        assert reply.code == 0, reply.remark
        return fastjson.loads(bytes(reply.body))

    def send(self, topic: str = "T", body: bytes = b"x", **fields: str) -> Command | None:
        """What a send is answered with at once; None when the answer waits for the disk."""
        replies = self.dispatch(send_command(topic, body, **fields))
        return replies[0] if replies else None

    def batch(self, topic: str, *elements: tuple[bytes, str], **fields: str) -> Command:
        body = encode_batch(BatchElement(0, body, text.encode()) for body, text in elements)
        return self.ask(320, send_ext(topic, m="true", **fields), body)

    def pull(
        self,
        topic: str = "T",
        offset: int = 0,
        *,
        peer: FakeConnection | None = None,
        **fields: str,
    ) -> Command:
        return self.ask(11, pull_ext(topic, offset, **fields), peer=peer)

    def beat(
        self, peer: FakeConnection, client_id: str, group: str, **subscriptions: str
    ) -> Command:
        wishes = [
            {"topic": topic, "subString": text, "subVersion": 5, "expressionType": "TAG"}
            | ({} if text == "*" else {"tagsSet": [text], "codeSet": [ord(text)]})
            for topic, text in subscriptions.items()
        ]
        return self.ask(
            34,
            None,
            {
                "clientID": client_id,
                "consumerDataSet": [{"groupName": group, "subscriptionDataSet": wishes}],
                "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
            },
            peer,
        )

    def records(self, topic: str = "T", queue_id: int = 0) -> list[Record]:
        return super().records(topic, queue_id)

    async def flush_during(self, work: Coroutine[Any, Any, None]) -> None:
        """Run what waits for the disk, and have the disk do its part."""
        task = asyncio.create_task(work)
        try:
            await asyncio.sleep(0)
            self.store.flush()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def topic(self, name: str, queues: int = 4, **fields: Any) -> None:
        """Have a topic."""
        self.topics.put(
            TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, **fields)
        )

    def consumer(
        self,
        group: str,
        client_id: str,
        *topics: str,
        version: int = 409,
        model: str = "CLUSTERING",
        port: int = 40001,
    ) -> FakeConnection:
        """Have a client online that consumes topics."""
        connection = FakeConnection(port)
        self.clients.register_consumer(
            group,
            cast(Connection, connection),
            client_id=client_id,
            language="JAVA",
            version=version,
            consume_type="CONSUME_PASSIVELY",
            message_model=model,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            subscriptions=[build_subscription(topic, "*", version=5) for topic in topics],
        )
        return connection

    def producer(self, group: str, client_id: str, port: int = 40002) -> FakeConnection:
        """Have a client online that produces."""
        connection = FakeConnection(port)
        self.clients.register_producer(
            group, cast(Connection, connection), client_id=client_id, language="JAVA", version=409
        )
        return connection


def send_command(topic: str, body: bytes = b"x", **fields: str) -> Command:
    return Command(code=310, ext=send_ext(topic, **fields), body=body, opaque=7)


def send_ext(topic: str, **fields: str) -> dict[str, str]:
    return {
        "a": "PG",
        "b": topic,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1700000000123",
        "h": "9",
        "i": "UNIQ_KEY\x01K1\x02WAIT\x01true\x02TAGS\x01A",
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "b49",
    } | fields


def pull_ext(topic: str, offset: int, **fields: str) -> dict[str, str]:
    return {
        "consumerGroup": "CG",
        "topic": topic,
        "queueId": "0",
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "15000",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    } | fields


def run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end that waits for nothing but its next turn; no event loop is needed for that."""
    while True:
        try:
            work.send(None)
        except StopIteration as end:
            return cast(T, end.value)
