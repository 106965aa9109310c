"""A store on which a RocketMQ 5 broker delivered timed messages: we go on with the one that still waits."""

from __future__ import annotations

import asyncio
import struct
import tarfile
from pathlib import Path

from tests.archives import unpack

from cometmq.base.system import SystemFiles
from cometmq.broker.config import load_broker_config
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.stats import BrokerStats
from cometmq.broker.timer.timed_messages import TimedMessages
from cometmq.model.address import pack_host
from cometmq.model.record import decode_record
from cometmq.store.message_store import MessageStore
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_timers import FakeTimers

ARCHIVE = Path(__file__).parent.parent / "golden" / "store-5.5.0" / "store.tar.xz"
STOPPED_MS = 1_794_780_513_248
DUE_MS = 1_794_866_691_131
"""What the sender of the last one asked for; RocketMQ notes the whole second before."""
DELIVERED = [3, 2]
"""Messages in the queues of the topic when that broker stopped."""


def test_the_one_that_waits_comes_once_and_at_its_time(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if not member.name.endswith("timerwheel")]
        unpack(archive, tmp_path, members)
    settings = {
        "brokerName": "golden",
        "storePathRootDir": str(tmp_path / "store"),
        "mappedFileSizeCommitLog": "65536",
        "mappedFileSizeConsumeQueue": "500",
        "maxHashSlotNum": "100",
        "maxIndexNum": "400",
    }
    config, _ = load_broker_config(settings)
    clock = FakeClock(STOPPED_MS)
    files = SystemFiles()
    timers = FakeTimers(clock)
    store = MessageStore(
        config.store, store_host=pack_host("127.0.0.1", 10911), files=files, clock=clock
    )
    store.load()
    timed = TimedMessages(
        live=LiveConfig(config, clock=clock, files=files),
        store=store,
        stats=BrokerStats(clock),
        files=files,
        clock=clock,
        timers=timers,
        restore_topic=lambda *_: None,
        system_topic=lambda _: None,
    )
    timed.resume()
    assert timed.waiting_count == 1
    assert [store.max_offset("TopicTimer", queue_id) for queue_id in (0, 1)] == DELIVERED
    timers.advance((DUE_MS - STOPPED_MS - 1) / 1000)
    assert [store.max_offset("TopicTimer", queue_id) for queue_id in (0, 1)] == DELIVERED
    timers.advance(0.001)
    ((place, _, _),) = store.entries("TopicTimer", 1, DELIVERED[1], 1)
    view = store.record_at(place)
    assert view is not None
    record = decode_record(view)
    assert (record.properties["KEYS"], record.store_timestamp) == ("T3", DUE_MS)
    asyncio.run(timed.stop())
    store.close()
    # And what we leave for RocketMQ: everything is read, nothing waits.
    content = (tmp_path / "store" / "config" / "timercheck").read_bytes()
    read_ms, log_end, queue_offset, master_offset, *_ = struct.unpack_from(">7q", content)
    assert (read_ms, log_end) == (DUE_MS // 1000 * 1000, 260)
    assert (queue_offset, master_offset) == (5, 5)
