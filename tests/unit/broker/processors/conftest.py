"""The broker's processors around a real store on a disk in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.config import load_broker_config
from cometmq.broker.consumer_filters import ConsumerFilters
from cometmq.broker.consumer_notifier import ConsumerNotifier
from cometmq.broker.filter_functions.pool import FilterFunctions
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.processors.clients import ClientProcessor
from cometmq.broker.processors.locks import LockProcessor
from cometmq.broker.processors.offsets import OffsetProcessor
from cometmq.broker.processors.pull import PullProcessor
from cometmq.broker.processors.query import QueryProcessor
from cometmq.broker.processors.recall import RecallProcessor
from cometmq.broker.processors.reply import ReplyProcessor
from cometmq.broker.processors.send import SendProcessor
from cometmq.broker.processors.send_back import SendBackProcessor
from cometmq.broker.processors.transaction import TransactionProcessor
from cometmq.broker.queue_locks import QueueLocks
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.sink_record import SinkRecord
from cometmq.broker.stats import BrokerStats
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.broker.topic_creation import TopicCreation
from cometmq.broker.transaction.questions import ProducerQuestions
from cometmq.broker.transaction.transactions import Transactions
from cometmq.model.address import pack_host
from cometmq.model.batch import BatchElement, encode_batch
from cometmq.model.bloom import bloom_filter
from cometmq.model.record import Record, decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

DEFAULTS = {
    "brokerName": "b49",
    "brokerClusterName": "C49",
    "storePathRootDir": "/store",
    "listenPort": "32010",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
    "maxMessageSize": "8192",
}


class Rig:
    def __init__(self, loop: Any, make_peer: Callable[..., Any], settings: dict[str, str]) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self.loop = loop
        self.make_peer = make_peer
        self.peer = make_peer(40000)
        config, _ = load_broker_config({**DEFAULTS, **settings})
        host = pack_host("127.0.0.1", 32010)
        self.live = LiveConfig(config, clock=self.clock, files=self.files)
        self.store = MessageStore(config.store, store_host=host, files=self.files, clock=self.clock)
        self.store.load()
        self.topics = TopicTable("/store/config", self.files, self.clock)
        self.groups = GroupTable("/store/config", self.files, self.clock)
        self.offsets = OffsetTable("/store/config", self.files, self.clock)
        self.stats = BrokerStats(self.clock, cluster="C49")
        self.clients = ClientRegistry(self.clock)
        self.filters = ConsumerFilters(
            "/store/config", self.files, self.clock, bloom_filter(32, 20)
        )
        self.flow = FlowControl(config.flow)
        self.sinks = SinkRecord()
        self.created: list[str] = []
        self.auto_created: list[str] = []
        self.creation = TopicCreation(
            self.topics,
            self.groups,
            config.topics,
            clock=self.clock,
            on_created=lambda topic: self.created.append(topic.topic_name),
            on_auto_created=lambda topic: self.auto_created.append(topic.topic_name),
        )
        for table in (self.topics, self.groups, self.offsets):
            table.load()
        self.creation.create_system_entries(config.identity)
        self.live.on_change(lambda changed: self.creation.apply(changed.topics))
        functions = FilterFunctions(config.filters, self.clock)
        self.pulls = PullProcessor(
            live=self.live,
            store=self.store,
            topics=self.topics,
            offsets=self.offsets,
            creation=self.creation,
            clients=self.clients,
            filters=self.filters,
            functions=functions,
            stats=self.stats,
            clock=self.clock,
            scheduler=loop,
        )
        self.store.arrivals.append(self.pulls.long_polling)
        self.client_processor = ClientProcessor(
            live=self.live,
            clients=self.clients,
            filters=self.filters,
            functions=functions,
            notifier=ConsumerNotifier(self.clients, self.groups.get),
            creation=self.creation,
        )
        self.schedule = Schedule(
            live=self.live,
            store=self.store,
            table=DelayOffsetTable("/store/config", self.files, self.clock),
            stats=self.stats,
            clock=self.clock,
            timers=loop,
            restore_topic=self.creation.restore,
        )
        self.transactions = Transactions(
            live=self.live,
            store=self.store,
            offsets=self.offsets,
            topics=self.creation,
            questions=ProducerQuestions(self.clients, "b49"),
            stats=self.stats,
            clock=self.clock,
        )
        self.transactions.resume()
        self.timed = TimedMessages(
            live=self.live,
            store=self.store,
            stats=self.stats,
            files=self.files,
            clock=self.clock,
            timers=loop,
            restore_topic=self.creation.restore,
            system_topic=self.creation.system_topic,
        )
        self.timed.resume()
        self.dispatcher = Dispatcher()
        sends = SendProcessor(
            live=self.live,
            store=self.store,
            schedule=self.schedule,
            transactions=self.transactions,
            timed=self.timed,
            store_host=host,
            topics=self.topics,
            creation=self.creation,
            stats=self.stats,
            flow=self.flow,
            clock=self.clock,
            sinks=self.sinks,
            sink_used=lambda: None,
        )
        self.replies = ReplyProcessor(
            live=self.live,
            sends=sends,
            store=self.store,
            store_host=host,
            clients=self.clients,
            clock=self.clock,
        )
        for processor in (
            self.pulls,
            sends,
            self.replies,
            SendBackProcessor(
                live=self.live,
                store=self.store,
                schedule=self.schedule,
                clients=self.clients,
                creation=self.creation,
                stats=self.stats,
                clock=self.clock,
            ),
            OffsetProcessor(
                offsets=self.offsets, topics=self.topics, creation=self.creation, store=self.store
            ),
            self.client_processor,
            TransactionProcessor(
                live=self.live,
                transactions=self.transactions,
                store=self.store,
                clock=self.clock,
            ),
            RecallProcessor(
                live=self.live,
                store=self.store,
                topics=self.topics,
                timed=self.timed,
                clock=self.clock,
            ),
            LockProcessor(QueueLocks(self.clock)),
            QueryProcessor(self.store, self.live),
        ):
            processor.register(self.dispatcher)

    def dispatch(self, command: Command, peer: Any = None) -> list[Command]:
        """What a request makes the broker send to the client at once."""
        peer = peer or self.peer
        self.dispatcher.dispatch(cast(Connection, peer), command)
        self.dispatcher.finish()
        return cast("list[Command]", peer.take())

    def ask(
        self, code: int, ext: dict[str, str] | None = None, body: object = b"", peer: Any = None
    ) -> Command:
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        replies = self.dispatch(Command(code=code, ext=ext, body=content, opaque=7), peer)
        assert replies, "no answer"
        reply = replies[-1]
        assert (reply.opaque, reply.flag) == (7, 1)
        return reply

    def send(
        self, topic: str = "T", body: bytes = b"x", *, oneway: bool = False, **fields: str
    ) -> Command | None:
        command = Command(
            code=310,
            ext=send_ext(topic, **fields),
            body=body,
            opaque=7,
            flag=FLAG_ONEWAY if oneway else 0,
        )
        replies = self.dispatch(command)
        return replies[0] if replies else None

    def batch(self, topic: str, *elements: tuple[bytes, str], **fields: str) -> Command:
        body = encode_batch(BatchElement(0, body, text.encode()) for body, text in elements)
        return self.ask(320, send_ext(topic, m="true", **fields), body)

    def pull(
        self, topic: str = "T", offset: int = 0, *, peer: Any = None, **fields: str
    ) -> Command:
        return self.ask(11, pull_ext(topic, offset, **fields), peer=peer)

    def records(self, topic: str = "T", queue_id: int = 0) -> list[Record]:
        reply = self.pull(topic, queueId=str(queue_id))
        return decode_records(b"".join(bytes(part) for part in reply.body_parts or ()))

    def beat(self, peer: Any, client_id: str, group: str, **subscriptions: str) -> Command:
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


@pytest.fixture
def make_rig(fake_loop: Any, make_peer: Callable[..., Any]) -> Callable[..., Rig]:
    """A rig with settings of its own: ``make_rig(flushDiskType="SYNC_FLUSH")``."""

    def make(**settings: str) -> Rig:
        return Rig(fake_loop, make_peer, settings)

    return make


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()
