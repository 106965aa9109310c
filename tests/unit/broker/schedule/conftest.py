"""A schedule around a real store on a disk in memory, and timers that fire when the clock is moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cometmq.broker.config import load_broker_config
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.schedule.schedule import Schedule
from cometmq.broker.stats import BrokerStats
from cometmq.model.address import pack_host
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.model.record import Record, decode_record
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.delay_offsets import DelayOffsetTable
from cometmq.store.new_messages import NewMessage, Stored
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_timers import FakeTimers
from cometmq.testing.faulty_files import FaultyFiles

SETTINGS = {
    "brokerName": "b",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "maxMessageSize": "8192",
    "messageDelayLevel": "1s 5s 1m",
}


class Rig:
    """``open`` starts a life of the broker; ``close`` ends it, ``crash`` does so without a word."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self.settings = {**SETTINGS, **settings}
        self.restored: list[tuple[str, int]] = []
        self.open()

    def open(self, **settings: str) -> None:
        self.settings.update(settings)
        config, _ = load_broker_config(self.settings)
        self.timers = FakeTimers(self.clock)
        host = pack_host("127.0.0.1", 10911)
        self.store = MessageStore(config.store, store_host=host, files=self.files, clock=self.clock)
        self.store.load()
        self.stats = BrokerStats(self.clock)
        self.table = DelayOffsetTable("/store/config", self.files, self.clock)
        self.table.load()
        self.schedule = Schedule(
            live=LiveConfig(config, clock=self.clock, files=self.files),
            store=self.store,
            table=self.table,
            stats=self.stats,
            clock=self.clock,
            timers=self.timers,
            restore_topic=lambda topic, queues: self.restored.append((topic, queues)),
        )
        self.schedule.resume()

    def put(self, body: bytes = b"x", level: int = 1, **fields: object) -> Stored:
        message = NewMessage(
            topic=str(fields.get("topic", "T")),
            queue_id=2,
            body=body,
            properties=b"UNIQ_KEY\x01K" + body + b"\x02TAGS\x01A\x02KEYS\x01k1 k2",
            keys=["K", "k1", "k2"],
            flag=7,
            sys_flag=1,
            born_timestamp=1_699_999_999_000,
            born_host=pack_host("10.1.2.3", 4567),
            reconsume_times=3,
        )
        return self.schedule.put(message, level)

    def advance(self, seconds: float) -> None:
        self.timers.advance(seconds)

    def records(self, topic: str = "T", queue_id: int = 2) -> list[Record]:
        found = []
        for offset in range(self.store.max_offset(topic, queue_id)):
            ((place, _, _),) = self.store.entries(topic, queue_id, offset, 1)
            view = self.store.record_at(place)
            assert view is not None
            found.append(decode_record(view))
        return found

    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records()]

    def waiting(self, level: int) -> list[Record]:
        return self.records(SCHEDULE_TOPIC, level - 1)


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    def make(**settings: str) -> Rig:
        return Rig(settings)

    return make


@pytest.fixture
def rig() -> Rig:
    return Rig({})
