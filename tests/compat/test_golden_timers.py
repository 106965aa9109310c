"""A store on which a RocketMQ 5 broker delivered timed messages: we go on with the one that still waits."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from cometmq.broker.master_duties import Duty
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles
from cometmq.testing.memory_broker import MemoryBroker

ARCHIVE = Path(__file__).parent.parent / "golden" / "store-5.5.0" / "store.tar.xz"
STOPPED_MS = 1_794_780_513_248
DUE_MS = 1_794_866_691_131
"""What the sender of the last one asked for; RocketMQ notes the whole second before."""
DELIVERED = [3, 2]
"""Messages in the queues of the topic when that broker stopped."""
SETTINGS = {
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "500",
    "maxHashSlotNum": "100",
    "maxIndexNum": "400",
}


class Timers(MemoryBroker):
    def master_duties(self) -> Sequence[Duty]:
        return (self.rooms.timer.timed,)

    def counts(self) -> list[int]:
        return [self.core.store.max_offset("TopicTimer", queue_id) for queue_id in (0, 1)]


async def test_the_one_that_waits_comes_once_and_at_its_time() -> None:
    clock = FakeClock(STOPPED_MS)
    broker = Timers(SETTINGS, clock=clock, files=golden_files(clock))
    assert broker.rooms.timer.timed.waiting_count == 1
    assert broker.counts() == DELIVERED
    broker.advance((DUE_MS - STOPPED_MS - 1) / 1000)
    assert broker.counts() == DELIVERED
    broker.advance(0.001)
    record = broker.records("TopicTimer", 1)[DELIVERED[1]]
    assert (record.properties["KEYS"], record.store_timestamp) == ("T3", DUE_MS)
    await broker.stop()
    # And what we leave for RocketMQ: everything is read, nothing waits.
    content = broker.files.read("/store/config/timercheck")
    read_ms, log_end, queue_offset, master_offset, *_ = struct.unpack_from(">7q", content)
    assert (read_ms, log_end) == (DUE_MS // 1000 * 1000, 260)
    assert (queue_offset, master_offset) == (5, 5)


def golden_files(clock: FakeClock) -> FaultyFiles:
    files = FaultyFiles(clock)
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            if member.isfile() and not member.name.endswith("timerwheel"):
                path = PurePosixPath("/") / member.name
                files.make_directory(str(path.parent))
                content = archive.extractfile(member)
                assert content is not None
                files.replace(str(path), content.read())
    return files
