from __future__ import annotations

import asyncio

import pytest
from tests.eventually import eventually

from cometmq.base.errors import DiskFull
from cometmq.broker.table_saver import TableSaver
from cometmq.model.topic import TopicConfig
from cometmq.store.meta.topics import TopicTable
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles


def _loaded(files: FaultyFiles, clock: FakeClock) -> TopicTable:
    table = TopicTable("/config", files, clock)
    table.load()
    return table


async def test_one_write_covers_many_changes_and_all_who_wait() -> None:
    clock = FakeClock()
    files = FaultyFiles(clock)
    table = _loaded(files, clock)
    saver = TableSaver([table])
    saver.start()
    await saver.saved()
    calls = files.call_count

    async def create(number: int) -> None:
        table.put(TopicConfig(topic_name=f"T{number}"))
        await saver.saved()
        assert f"T{number}" in _loaded(files, clock)

    table.put(TopicConfig(topic_name="first"))
    await asyncio.gather(*map(create, range(100)))
    # Each table file that is read back is one call or two; a write per change would be hundreds more.
    assert files.call_count - calls < 500
    await saver.stop()


async def test_a_change_that_nobody_waits_for_is_saved_too() -> None:
    clock = FakeClock()
    files = FaultyFiles(clock)
    table = _loaded(files, clock)
    saver = TableSaver([table])
    saver.start()
    table.put(TopicConfig(topic_name="A"))
    await eventually(lambda: "A" in _loaded(files, clock))
    table.put(TopicConfig(topic_name="B"))
    await saver.stop()
    assert "B" in _loaded(files, clock)


async def test_a_full_disk_is_told_to_who_waits_and_made_up_for_later() -> None:
    clock = FakeClock()
    files = FaultyFiles(clock)
    table = _loaded(files, clock)
    saver = TableSaver([table])
    saver.start()
    files.set_free(0)
    table.put(TopicConfig(topic_name="A"))
    with pytest.raises(DiskFull):
        await saver.saved()
    assert "A" in table
    files.set_free(1 << 20)
    await saver.stop()
    assert "A" in _loaded(files, clock)
