"""Transactions around a real store on a disk in memory, with producers that note what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.config import load_broker_config
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.stats import BrokerStats
from cometmq.broker.transaction.transactions import Decision, Transactions
from cometmq.model.address import pack_host
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.model.record import Record, decode_record
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.new_messages import NewMessage, Stored
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles, Outage

SETTINGS = {
    "brokerName": "b",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "maxMessageSize": "8192",
    "transactionTimeOut": "6000",
    "transactionCheckMax": "3",
}


class Topics:
    def __init__(self) -> None:
        self.restored: list[tuple[str, int]] = []
        self.made: set[str] = set()

    def restore(self, topic: str, queue_count: int) -> None:
        self.restored.append((topic, queue_count))

    def system_topic(self, topic: str) -> None:
        self.made.add(topic)


class Producers:
    def __init__(self) -> None:
        self.asked: list[Record] = []
        self.are_there = True

    def can_ask(self, group: str) -> bool:
        assert group == "PG"
        return self.are_there

    def ask(self, half: Record) -> None:
        assert self.are_there
        self.asked.append(half)


class Rig:
    """``open`` starts a life of the broker; ``close`` ends it, ``crash`` does so without a word."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self.settings = {**SETTINGS, **settings}
        self.topics = Topics()
        self.producers = Producers()
        self.open()

    def open(self, **settings: str) -> None:
        self.settings.update(settings)
        config, _ = load_broker_config(self.settings)
        host = pack_host("127.0.0.1", 10911)
        self.store = MessageStore(config.store, store_host=host, files=self.files, clock=self.clock)
        self.store.load()
        self.offsets = OffsetTable("/store/config", self.files, self.clock)
        self.offsets.load()
        self.transactions = Transactions(
            live=LiveConfig(config, clock=self.clock, files=self.files),
            store=self.store,
            offsets=self.offsets,
            topics=self.topics,
            questions=self.producers,
            stats=BrokerStats(self.clock),
            clock=self.clock,
        )
        if not config.identity.is_slave:
            self.transactions.resume()

    def close(self) -> None:
        self.store.flush()
        self.transactions.save()
        self.offsets.save_if_changed()
        self.store.close()

    def crash(self, outage: Outage = Outage.PROCESS_KILL) -> None:
        self.files.crash_now()
        self.files.restart(outage)
        self.open()

    def half(self, body: bytes = b"x", properties: bytes = b"", **fields: Any) -> Stored:
        message = NewMessage(
            topic=fields.pop("topic", "T"),
            queue_id=2,
            body=body,
            properties=b"UNIQ_KEY\x01K"
            + body
            + b"\x02TAGS\x01A\x02KEYS\x01k1\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
            + properties,
            keys=["K", "k1"],
            flag=7,
            sys_flag=5,
            born_timestamp=self.clock.wall_ms(),
            born_host=pack_host("10.1.2.3", 4567),
            **fields,
        )
        return self.transactions.put_half(message, is_wait=True)

    def end(self, place: Stored | Record, decision: Decision) -> Stored | None:
        half = self.transactions.half_at(place.physical_offset)
        assert half is not None
        return self.transactions.end(half, decision)

    def commit(self, place: Stored | Record) -> Stored | None:
        return self.end(place, Decision.COMMIT)

    def roll_back(self, place: Stored | Record) -> Stored | None:
        return self.end(place, Decision.ROLLBACK)

    def round(self, seconds: float = 60) -> list[Record]:
        """Time passes and the open transactions are looked at; what producers were asked."""
        self.clock.advance(seconds)
        asyncio.run(self.transactions.check_round())
        asked, self.producers.asked = self.producers.asked, []
        return asked

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        found = []
        for offset in range(self.store.max_offset(topic, queue_id)):
            ((place, _, _),) = self.store.entries(topic, queue_id, offset, 1)
            view = self.store.record_at(place)
            assert view is not None
            found.append(decode_record(view))
        return found

    @property
    def halves(self) -> list[Record]:
        return self.records(HALF_TOPIC)

    @property
    def marks(self) -> list[bytes]:
        return [record.body for record in self.records(HALF_OP_TOPIC)]

    @property
    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records("T", 2)]

    @property
    def discarded(self) -> list[bytes]:
        return [record.body for record in self.records(TRANSACTION_DISCARD_TOPIC)]


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    def make(**settings: str) -> Rig:
        return Rig(settings)

    return make


@pytest.fixture
def rig() -> Rig:
    return Rig({})
