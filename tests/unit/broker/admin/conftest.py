"""A broker's parts around the admin processors, with a store made of plain lists and connections that remember."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from cometmq.base.system import SystemFiles
from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.config import load_broker_config
from cometmq.broker.consumer_filters import ConsumerFilters
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.processors.admin.all import register_admin
from cometmq.broker.request_modes import RequestModes
from cometmq.broker.stats import BrokerStats
from cometmq.model.bloom import bloom_filter
from cometmq.model.message_queue import MessageQueue
from cometmq.model.subscription import build_subscription
from cometmq.model.topic import TopicConfig
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.extended_queue import Unit
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.watermarks import Watermarks

NOW_MS = 1_794_780_000_000


class HandClock:
    """Moves when told."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


class ListStore:
    """What the admin processors use of a store. A message is its store time, size and tags code."""

    def __init__(self) -> None:
        self.queues: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        self.first_offsets: dict[tuple[str, int], int] = {}
        self.units_by_offset: dict[int, Unit] = {}
        self.records: dict[int, bytes] = {}
        self.calls: list[str] = []
        self.watermarks = Watermarks()
        self.min_physical = 0
        self.max_physical = 5000
        self.log_disk_ratio = self.queue_disk_ratio = 0.25
        self.dispatch_behind_bytes = 0
        self.flush_behind_bytes = 406

    def add(self, topic: str, queue_id: int, *times: int) -> None:
        self.queues.setdefault((topic, queue_id), []).extend((at, 100, 7) for at in times)

    def min_offset(self, topic: str, queue_id: int) -> int:
        return self.first_offsets.get((topic, queue_id), 0)

    def max_offset(self, topic: str, queue_id: int) -> int:
        return self.min_offset(topic, queue_id) + len(self.queues.get((topic, queue_id), ()))

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        low, high = self.min_offset(topic, queue_id), self.max_offset(topic, queue_id)
        if not low <= queue_offset < high:
            return -1
        return self.queues[topic, queue_id][queue_offset - low][0]

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        low = self.min_offset(topic, queue_id)
        messages = self.queues.get((topic, queue_id), [])
        return low + sum(at < timestamp_ms for at, _, _ in messages)

    def entries(
        self, topic: str, queue_id: int, offset: int, count: int
    ) -> list[tuple[int, int, int]]:
        low = self.min_offset(topic, queue_id)
        messages = list(enumerate(self.queues[topic, queue_id], low))
        return [(at * 100, size, tags) for at, (_, size, tags) in messages[offset - low :][:count]]

    def units(self, topic: str, queue_id: int, offset: int, count: int) -> list[Unit | None]:
        return [
            self.units_by_offset.get(offset + at)
            for at in range(len(self.entries(topic, queue_id, offset, count)))
        ]

    def queue_ids(self, topic: str) -> list[int]:
        return [queue_id for name, queue_id in self.queues if name == topic]

    def topics(self) -> list[str]:
        return sorted({name for name, _ in self.queues})

    def record_at(self, physical_offset: int) -> memoryview | None:
        record = self.records.get(physical_offset)
        return None if record is None else memoryview(record)

    def delete_topic(self, topic: str) -> None:
        self.queues = {key: value for key, value in self.queues.items() if key[0] != topic}

    def clean_unused(self, keep: set[str]) -> int:
        gone = [topic for topic in self.topics() if topic not in keep]
        for topic in gone:
            self.delete_topic(topic)
        return len(gone)

    def clean_expired_queues(self) -> None:
        self.calls.append("clean_expired_queues")

    def delete_expired_files(self) -> None:
        self.calls.append("delete_expired_files")

    def earliest_store_time(self) -> int:
        return -1


class Peer:
    """A connection that keeps what is sent, and answers calls with ``answer``."""

    def __init__(self, peer: str = "127.0.0.1:40000") -> None:
        self.peer = peer
        self.sent: list[Command] = []
        self.answer: Callable[[Command], Command] | None = None
        self.is_closed = False

    def send(self, command: Command) -> None:
        self.sent.append(command)

    def oneway(self, command: Command) -> None:
        command.flag |= 2
        self.sent.append(command)

    async def call(self, command: Command, timeout: float) -> Command:
        self.sent.append(command)
        assert self.answer is not None
        return self.answer(command)

    def run_handler(self, handler: Coroutine[Any, Any, None], body_bytes: int = 0) -> None:
        asyncio.run(handler)


class FakeDelays:
    def encode(self) -> bytes:
        return b'{"offsetTable":{1:11,3:2}}'

    def positions(self) -> dict[int, tuple[int, int]]:
        return {1: (11, 12), 3: (2, 2)}


class Rig:
    def __init__(self, directory: Path, values: dict[str, str] | None = None) -> None:
        self.clock = HandClock()
        files = SystemFiles()
        meta = str(directory / "config")
        conf = directory / "broker.conf"
        conf.write_text("# settings\n")
        defaults = {
            "brokerName": "b49",
            "brokerClusterName": "C49",
            "storePathRootDir": str(directory),
        }
        config, _ = load_broker_config(defaults | (values or {}))
        (directory / "commitlog").mkdir()
        self.conf = conf
        self.live = LiveConfig(config, clock=self.clock, files=files, path=str(conf))
        self.store = ListStore()
        self.topics = TopicTable(meta, files, self.clock)
        self.groups = GroupTable(meta, files, self.clock)
        self.offsets = OffsetTable(meta, files, self.clock)
        for table in (self.topics, self.groups, self.offsets):
            table.load()
        self.modes = RequestModes(meta, files)
        self.clients = ClientRegistry(self.clock)
        self.filters = ConsumerFilters(meta, files, self.clock, bloom_filter(32, 20))
        self.stats = BrokerStats(self.clock, cluster="C49")
        self.flow = FlowControl(config.flow)
        self.announced: list[str] = []
        self.remote_queues: list[MessageQueue] = []
        self.dispatcher = Dispatcher()
        self.woken: list[tuple[str, int, str]] = []
        register_admin(
            self.dispatcher,
            address="127.0.0.1:32010",
            live=self.live,
            store=cast(MessageStore, self.store),
            topics=self.topics,
            groups=self.groups,
            offsets=self.offsets,
            delays=FakeDelays(),
            modes=self.modes,
            clients=self.clients,
            filters=self.filters,
            stats=self.stats,
            flow=self.flow,
            clock=self.clock,
            files=files,
            announce=self._announce,
            saved=self._saved,
            queues_of=self._queues_of,
            wake=lambda *pull: self.woken.append(pull),
        )

    def ask(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: object = b"",
        *,
        language: str = "JAVA",
    ) -> Command:
        """What a request is answered with. A body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        return self.dispatch(Command(code=code, ext=ext, body=content, opaque=7, language=language))

    def dispatch(self, command: Command) -> Command:
        peer = Peer("127.0.0.1:39999")
        self.dispatcher.dispatch(cast(Connection, peer), command)
        assert len(peer.sent) == 1
        return peer.sent[0]

    def json(self, code: int, ext: dict[str, str] | None = None, body: object = b"") -> Any:
        """The JSON body of a successful answer."""
        reply = self.ask(code, ext, body)
        assert (reply.code, reply.opaque) == (0, 7), reply.remark
        return fastjson.loads(bytes(reply.body))

    def topic(self, name: str, queues: int = 4, **fields: Any) -> None:
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
        peer: str = "127.0.0.1:40001",
    ) -> Peer:
        connection = Peer(peer)
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

    def producer(self, group: str, client_id: str) -> Peer:
        connection = Peer("127.0.0.1:40002")
        self.clients.register_producer(
            group, cast(Connection, connection), client_id=client_id, language="JAVA", version=409
        )
        return connection

    async def _saved(self) -> None:
        self.topics.save_if_changed()
        self.groups.save_if_changed()
        if (write := self.modes.unsaved()) is not None:
            write()

    async def _announce(self, configs: list[TopicConfig]) -> None:
        self.announced.extend(config.topic_name for config in configs)

    async def _queues_of(self, topic: str) -> Sequence[MessageQueue]:
        return [queue for queue in self.remote_queues if queue.topic == topic]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def make_rig(tmp_path: Path) -> Callable[..., Rig]:
    """A rig with settings of its own: ``make_rig(brokerRole="SLAVE")``."""

    def make(**values: str) -> Rig:
        return Rig(tmp_path, values)

    return make
