"""Crashes at every disk call of a backup and of a restore: what was acknowledged before is in the next one."""

from __future__ import annotations

import dataclasses
from contextlib import closing, suppress

import pytest
from tests.unit.store.conftest import HOST, HandClock

from cometmq.base.errors import CorruptFile
from cometmq.broker.core import refuse_unfinished
from cometmq.store.backup.backups import Backups
from cometmq.store.backup.create import create
from cometmq.store.backup.restore import restore
from cometmq.store.backup.source import Source
from cometmq.store.backup.verify import verify
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.store_config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    StoreConfig,
)
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

MOMENTS = list(Moment)
CONFIG = StoreConfig(
    root="/store",
    log=CommitLogConfig(file_bytes=4096, message_bytes_max=2000),
    queues=ConsumeQueueConfig(file_bytes=200),
    index=IndexConfig(slot_count=50, entry_count=100),
)
TARGET = dataclasses.replace(CONFIG, root="/restored")


class World:
    """A store whose broker is open, one backup of it, and messages since."""

    def __init__(self, seed: int) -> None:
        self.clock = HandClock()
        self.files = FaultyFiles(self.clock, seed=seed)
        self.backups = Backups("/backups", self.files)
        store = self.open(CONFIG)
        put(store, 0, 20)
        self.files.make_directory("/store/config")
        offsets = OffsetTable("/store/config", self.files, self.clock)
        offsets.load()
        offsets.commit("readers", "T", 0, 17)
        offsets.save_if_changed()
        self.take()
        self.clock.ms += 10
        put(store, 20, 28)
        self.time = self.clock.wall_ms()
        """Of the 28 messages so far; later ones are stored later."""
        self.clock.ms += 10
        put(store, 28, 35)
        store.flush()
        self.end = store.max_physical
        self.clock.ms += 1000

    def open(self, config: StoreConfig) -> MessageStore:
        store = MessageStore(config, store_host=HOST, files=self.files, clock=self.clock)
        store.load()
        return store

    def take(self) -> None:
        with closing(Source(CONFIG.root, CONFIG.log_path, self.files)) as source:
            create(source, self.backups, self.clock, pause=lambda: None, tell=no_tell)

    def restore(self, at_ms: int | None = None) -> None:
        restore(
            self.backups,
            TARGET,
            self.clock,
            name=None,
            at_ms=at_ms,
            accept_damage=False,
            tell=no_tell,
        )

    def check_backups(self, count: int) -> None:
        known = self.backups.all()
        assert len(known) == count
        for manifest in known:
            assert not verify(self.backups, manifest, no_tell).faults

    def check_restored(self, count: int = 35) -> None:
        refuse_unfinished(TARGET, self.files)
        store = self.open(TARGET)
        found = []
        for physical, _, _ in store.entries("T", 0, 0, 100):
            record = store.decoded_at(physical)
            assert record is not None
            found.append(record.body)
        assert found == [body(number) for number in range(count)]
        assert (store.max_physical == self.end) == (count == 35)
        offsets = OffsetTable("/restored/config", self.files, self.clock)
        offsets.load()
        assert offsets.query("readers", "T", 0) == 17
        store.close()


def no_tell(what: str, done: int, total: int) -> None:
    pass


def body(number: int) -> bytes:
    return b"%d-" % number + b"x" * 300


def put(store: MessageStore, first: int, end: int) -> None:
    for number in range(first, end):
        store.put(NewMessage(topic="T", queue_id=0, body=body(number), properties=b""))


@pytest.mark.parametrize("outage", list(Outage))
def test_every_disk_call_of_a_backup(outage: Outage) -> None:
    whole = World(0)
    before = whole.files.call_count
    whole.take()
    total = whole.files.call_count - before
    assert total > 20
    for calls in range(1, total + 1):
        world = World(calls)
        world.files.crash_in(calls, MOMENTS[calls % 3])
        with pytest.raises(Crashed):
            world.take()
        world.files.restart(outage)
        # Those before are whole, whether the new one counts already or not.
        done = len(world.backups.all())
        assert done in (1, 2)
        world.check_backups(done)
        world.take()
        world.check_backups(done + 1)
        world.restore()
        world.check_restored()


@pytest.mark.parametrize("outage", list(Outage))
@pytest.mark.parametrize("is_to_a_time", [False, True], ids=["whole", "to a time"])
def test_every_disk_call_of_a_restore(outage: Outage, is_to_a_time: bool) -> None:
    whole = World(0)
    whole.take()
    at_ms, count = (whole.time, 28) if is_to_a_time else (None, 35)
    before = whole.files.call_count
    whole.restore(at_ms)
    total = whole.files.call_count - before
    assert total > 40
    refused = 0
    for calls in range(1, total + 1):
        world = World(calls)
        world.take()
        world.files.crash_in(calls, MOMENTS[calls % 3])
        # A call that fails by itself, as in a directory that is still to be made, does not crash.
        with suppress(Crashed):
            world.restore(at_ms)
        world.files.crash_now()
        world.files.restart(outage)
        try:
            refuse_unfinished(TARGET, world.files)
        except CorruptFile:
            refused += 1
            world.restore(at_ms)
        else:
            if not world.files.exists("/restored/commitlog"):
                world.restore(at_ms)
        world.check_restored(count)
    assert refused > 20
