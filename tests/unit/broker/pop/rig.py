"""POP consumption around a real store on a disk in memory, and timers that fire when the clock is moved."""

from __future__ import annotations

from cometmq.broker.config import load_broker_config
from cometmq.broker.filters import ALL_MESSAGES, MessageFilter
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.pop.checkpoint import Ack, Key
from cometmq.broker.pop.names import retry_topic_v1
from cometmq.broker.pop.pops import PopRequest, PopResult
from cometmq.broker.pop.service import PopService
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.model.record import Record, decode_record, decode_records
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.new_messages import NewMessage, Stored
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_timers import FakeTimers
from cometmq.testing.faulty_files import FaultyFiles, Outage

SETTINGS = {
    "brokerName": "b",
    "brokerClusterName": "C",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "maxMessageSize": "8192",
}
GROUP, TOPIC = "g", "T"
RETRY = retry_topic_v1(GROUP, TOPIC)
REVIVE = "rmq_sys_REVIVE_LOG_C"
INVISIBLE = 10_000
QUEUES = 2

Out = tuple[Key, int]
"""A message that is out: its check-point and its offset."""


class PopRig:
    """``open`` starts a life of the broker; ``stop`` ends it, ``crash`` does so without a word."""

    def __init__(self, seed: int = 0, **settings: str) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock, seed=seed)
        self.settings = {**SETTINGS, **settings}
        self.open()

    def open(self) -> None:
        config, _ = load_broker_config(self.settings)
        self.timers = FakeTimers(self.clock)
        host = pack_host("127.0.0.1", 10911)
        self.store = MessageStore(config.store, store_host=host, files=self.files, clock=self.clock)
        self.store.load()
        directory = "/store/config"
        self.live = LiveConfig(config, clock=self.clock, files=self.files)
        self.topics = TopicTable(directory, self.files, self.clock)
        self.groups = GroupTable(directory, self.files, self.clock)
        self.offsets = OffsetTable(directory, self.files, self.clock)
        for table in (self.topics, self.groups, self.offsets):
            table.load()
        self.creation = TopicCreation(
            self.topics,
            self.groups,
            config.topics,
            clock=self.clock,
            on_created=lambda _: None,
            on_auto_created=lambda _: None,
        )
        self.service = PopService(
            live=self.live,
            store=self.store,
            offsets=self.offsets,
            groups=self.groups,
            creation=self.creation,
            clock=self.clock,
            timers=self.timers,
        )
        self.service.start()
        self.pops = self.service.pops

    def put(self, body: bytes = b"x", queue_id: int = 0, tag: str = "") -> Stored:
        return self.store.put(
            NewMessage(
                topic=TOPIC,
                queue_id=queue_id,
                body=body,
                properties=f"TAGS\x01{tag}\x02".encode() if tag else b"",
                tags_code=java_hash(tag) if tag else 0,
            )
        )

    def request(
        self,
        count: int = 32,
        *,
        invisible_ms: int = INVISIBLE,
        is_from_end: bool = False,
        wanted: MessageFilter = ALL_MESSAGES,
        retry: str = RETRY,
    ) -> PopRequest:
        return PopRequest(
            group=GROUP,
            topic=TOPIC,
            places=[*((TOPIC, queue_id) for queue_id in range(QUEUES)), (retry, 0)],
            count_max=count,
            invisible_ms=invisible_ms,
            is_from_end=is_from_end,
            wanted=wanted,
        )

    def pop(self, count: int = 32, *, invisible_ms: int = INVISIBLE) -> list[tuple[bytes, Out]]:
        """Bodies, and what to acknowledge them by."""
        return self.outs(self.pops.pop(self.request(count, invisible_ms=invisible_ms)))

    def outs(self, result: PopResult) -> list[tuple[bytes, Out]]:
        names = [
            (Key(GROUP, one.topic, one.queue_id, one.offsets[0], result.pop_time), offset)
            for one in result.popped
            for offset in one.offsets
        ]
        records = self.given(result)
        return [(record.body, out) for record, out in zip(records, names, strict=True)]

    def given(self, result: PopResult) -> list[Record]:
        return [record for part in result.parts for record in decode_records(part)]

    def bodies(self, count: int = 32) -> list[bytes]:
        return [body for body, _ in self.pop(count)]

    def ack(self, out: Out) -> int:
        key, offset = out
        return self.pops.ack(Ack(key, (offset,)))

    def advance(self, seconds: float) -> None:
        self.timers.advance(seconds)

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        found = []
        for offset in range(self.store.max_offset(topic, queue_id)):
            ((place, _, _),) = self.store.entries(topic, queue_id, offset, 1)
            view = self.store.record_at(place)
            assert view is not None
            found.append(decode_record(view))
        return found

    def save(self) -> None:
        """What the broker does every few seconds."""
        self.offsets.save_if_changed()

    def stop(self) -> None:
        self.service.stop()
        self.save()
        self.store.close()

    def restart(self) -> None:
        self.stop()
        self.open()

    def crash(self, outage: Outage = Outage.PROCESS_KILL) -> None:
        self.files.crash_now()
        self.files.restart(outage)
        self.open()
