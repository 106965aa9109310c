"""Timed messages around a real store on a disk in memory, and timers that fire when the clock is moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cometmq.broker.config import load_broker_config
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.stats import BrokerStats
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.model.address import pack_host
from cometmq.model.names import TIMER_TOPIC
from cometmq.model.properties import TIMER_DELAY_MS
from cometmq.model.recall_handle import RecallHandle
from cometmq.model.record import Record, decode_record
from cometmq.store.message_store import MessageStore
from cometmq.store.new_messages import NewMessage, Stored
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_timers import FakeTimers
from cometmq.testing.faulty_files import FaultyFiles, Outage

SETTINGS = {
    "brokerName": "b",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "maxMessageSize": "8192",
}


class Rig:
    """``open`` starts a life of the broker; ``stop`` ends it, ``crash`` does so without a word."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self.settings = {**SETTINGS, **settings}
        self.restored: list[tuple[str, int]] = []
        self.system_topics: list[str] = []
        self.open()

    def open(self, **settings: str) -> None:
        self.settings.update(settings)
        config, _ = load_broker_config(self.settings)
        self.timers = FakeTimers(self.clock)
        host = pack_host("127.0.0.1", 10911)
        self.store = MessageStore(config.store, store_host=host, files=self.files, clock=self.clock)
        self.store.load()
        self.files.make_directory("/store/config")
        self.stats = BrokerStats(self.clock)
        self.live = LiveConfig(config, clock=self.clock, files=self.files)
        self.timed = TimedMessages(
            live=self.live,
            store=self.store,
            stats=self.stats,
            files=self.files,
            clock=self.clock,
            timers=self.timers,
            restore_topic=lambda topic, queues: self.restored.append((topic, queues)),
            system_topic=self.system_topics.append,
        )
        self.timed.resume()

    @property
    def now(self) -> int:
        return self.clock.wall_ms()

    def put(self, body: bytes = b"x", seconds: float = 1, properties: str = "") -> Stored:
        return self.timed.put(self.message(body, properties), self.now + round(seconds * 1000))

    def put_delay(self, body: bytes = b"x", seconds: float = 1) -> Stored:
        """As a sender does who says for how long, not until when."""
        delay_ms = str(round(seconds * 1000))
        deliver_ms = self.timed.deliver_ms((TIMER_DELAY_MS, delay_ms))
        message = self.message(body, f"{TIMER_DELAY_MS}\x01{delay_ms}\x02")
        return self.timed.put(message, deliver_ms)

    def message(self, body: bytes = b"x", properties: str = "") -> NewMessage:
        text = f"UNIQ_KEY\x01K{body.decode()}\x02TAGS\x01A\x02KEYS\x01k1 k2\x02{properties}"
        return NewMessage(
            topic="T",
            queue_id=2,
            body=body,
            properties=text.encode(),
            keys=["K" + body.decode(), "k1", "k2"],
            flag=7,
            sys_flag=1,
            born_timestamp=1_699_999_999_000,
            born_host=pack_host("10.1.2.3", 4567),
            reconsume_times=3,
        )

    def recall(self, body: bytes, deliver_ms: int) -> Stored:
        handle = RecallHandle("T", "b", deliver_ms, "K" + body.decode())
        return self.timed.recall(handle, "PG", pack_host("10.1.2.3", 4567))

    def advance(self, seconds: float) -> None:
        self.timers.advance(seconds)

    def records(self, topic: str = "T", queue_id: int = 2) -> list[Record]:
        found = []
        first = self.store.min_offset(topic, queue_id)
        for offset in range(first, self.store.max_offset(topic, queue_id)):
            ((place, _, _),) = self.store.entries(topic, queue_id, offset, 1)
            view = self.store.record_at(place)
            assert view is not None
            found.append(decode_record(view))
        return found

    def delivered(self) -> list[bytes]:
        return [record.body for record in self.records()]

    def waiting(self) -> list[Record]:
        return self.records(TIMER_TOPIC, 0)

    def save(self) -> None:
        async def main() -> None:
            saving = asyncio.create_task(self.timed.save())
            await asyncio.sleep(0)
            self.store.flush()
            await saving

        asyncio.run(main())

    def stop(self) -> None:
        asyncio.run(self.timed.stop())
        self.store.close()

    def restart(self) -> None:
        self.stop()
        self.open()

    def crash(self, outage: Outage = Outage.PROCESS_KILL) -> None:
        self.files.crash_now()
        self.files.restart(outage)
        self.open()


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    def make(**settings: str) -> Rig:
        return Rig(settings)

    return make


@pytest.fixture
def rig() -> Rig:
    return Rig({})
