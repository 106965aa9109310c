"""Over restarts: every message that waits is delivered once, as far as the log remembers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.broker.lives import live_and_die

from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.protocol import fastjson
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.meta.delay_offsets import UNKNOWN, DelayOffsetTable
from cometmq.testing.faulty_files import Outage

MakeRig = Callable[..., Any]
PATH = "/store/config/delayOffset.json"
GOLDEN = Path(__file__).parents[3] / "golden"


async def test_a_clean_stop_says_how_far_it_came_in_rocketmqs_form(rig: Any) -> None:
    for number in range(3):
        rig.put(b"%d" % number)
    rig.put(b"later", level=3)
    rig.advance(2)
    await rig.stop()
    content = rig.files.read(PATH).decode()
    end = rig.table.log_offset
    assert content == ('{\n\t"offsetTable":{1:3,3:0\n\t},\n\t"logOffset":' + str(end) + "\n}")
    rig.open()
    rig.advance(60)
    assert rig.delivered() == [b"0", b"1", b"2", b"later"]


async def test_messages_come_due_while_the_broker_is_down(rig: Any) -> None:
    rig.put(b"x")
    await rig.stop()
    rig.clock.advance(3600)
    rig.open()
    rig.advance(0.01)
    assert rig.delivered() == [b"x"]


def test_a_kill_before_the_first_save_repeats_nothing(rig: Any) -> None:
    for number in range(5):
        rig.put(b"%d" % number)
    rig.advance(2)
    rig.put(b"last")
    rig.crash()
    assert not rig.files.exists(PATH)
    rig.advance(2)
    assert rig.delivered() == [b"0", b"1", b"2", b"3", b"4", b"last"]


async def test_a_kill_after_a_save_repeats_nothing(rig: Any) -> None:
    for level in (1, 2):
        for number in range(3):
            rig.put(b"%d-%d" % (level, number), level)
    rig.advance(2)
    await rig.save()
    assert rig.table.offsets == {1: 3, 2: 0}
    rig.put(b"1-3")
    rig.advance(10)
    rig.put(b"1-4")
    rig.crash()
    rig.advance(10)
    assert sorted(rig.delivered()) == [
        b"1-0",
        b"1-1",
        b"1-2",
        b"1-3",
        b"1-4",
        b"2-0",
        b"2-1",
        b"2-2",
    ]


async def test_a_save_waits_for_the_disk(rig: Any) -> None:
    """Otherwise a power loss could take the copies and leave the word that they were made."""
    rig.put(b"x")
    rig.store.flush()
    rig.advance(2)
    saving = asyncio.create_task(rig.schedule.save())
    while not rig.store.watermarks.flushed.waiting:
        await asyncio.sleep(0)
    assert not saving.done()
    assert not rig.files.exists(PATH)
    rig.store.watermarks.flushed.abandon()
    await saving
    assert not rig.files.exists(PATH)
    rig.crash(Outage.POWER_LOSS)
    rig.advance(2)
    assert rig.delivered() == [b"x"]


@pytest.mark.parametrize("outage", list(Outage))
@pytest.mark.parametrize("seed", range(12))
async def test_every_surviving_message_has_one_copy(
    make_rig: MakeRig, seed: int, outage: Outage
) -> None:
    chance = Random(seed)
    rig = make_rig()
    await live_and_die(rig, chance, outage, live, calls_max=80)
    rig.advance(100)
    waited = [r.body for level in (1, 2, 3) for r in rig.waiting(level)]
    copies = Counter(rig.delivered())
    assert len(waited) > 50, "the test does too little"
    assert set(copies.values()) == {1}, "delivered twice"
    assert set(waited) <= set(copies), "not delivered"


async def live(rig: Any, chance: Random, numbers: Iterator[int]) -> None:
    for _ in range(chance.randrange(40)):
        rig.put(b"%d" % next(numbers), chance.randrange(1, 4))
        rig.advance(chance.choice([0, 0, 0.1, 1, 7]))
        if chance.random() < 0.1:
            rig.store.flush()
        if chance.random() < 0.1:
            await rig.save()


async def test_a_quiet_schedule_writes_nothing(rig: Any) -> None:
    await rig.save()
    await rig.stop()
    assert not rig.files.exists(PATH)


async def test_the_same_offsets_are_saved_again_while_messages_wait_and_the_log_grows(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.schedule.delay_progress.GROWTH_BYTES_MAX", 1000)
    rig.put(b"x", level=3)
    rig.advance(0)
    await rig.save()
    first = rig.table.log_offset
    await rig.save()
    assert rig.table.log_offset == first
    for _ in range(10):
        rig.store.put(_plain())
    await rig.save()
    assert rig.table.log_offset > first
    rig.advance(60)
    await rig.save()
    last = rig.table.log_offset
    for _ in range(10):
        rig.store.put(_plain())
    await rig.save()
    assert rig.table.log_offset == last, "nothing waits, so nothing would have to be looked for"


async def test_levels_that_the_settings_lost_are_still_delivered(rig: Any) -> None:
    rig.put(b"x", level=3)
    await rig.stop()
    rig.open(messageDelayLevel="1s")
    rig.advance(59)
    assert rig.delivered() == []
    rig.advance(1)
    assert rig.delivered() == [b"x"]


async def test_offsets_beyond_the_queue_are_corrected(rig: Any) -> None:
    rig.put(b"x")
    rig.advance(2)
    await rig.stop()
    rig.files.replace(PATH, b'{"offsetTable":{1:77,2:5}}')
    rig.open()
    rig.put(b"y")
    rig.advance(3)
    assert rig.delivered() == [b"x", b"y"]


def test_expired_messages_are_passed_over(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    rig.put(b"gone", level=3)
    while rig.store.max_physical < 2 * 65536:
        rig.store.put(_plain(3000))
    rig.put(b"there", level=3)
    rig.store.flush()
    rig.store.delete_expired_files()
    rig.clock.advance(80 * 3600)
    rig.store.maintain()
    assert rig.store.min_physical > 0
    rig.advance(60)
    assert rig.delivered() == [b"there"]
    assert "delay offset corrected level=3 from=0 to=1" in caplog.text


class TestTheFile:
    @pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
    def test_java_files_are_read_and_what_is_theirs_is_kept(self, rig: Any, version: str) -> None:
        rig.files.replace(PATH, (GOLDEN / f"config-{version}" / "delayOffset.json").read_bytes())
        table = DelayOffsetTable("/store/config", rig.files, rig.clock)
        table.load()
        assert {level: table.offsets[level] for level in range(1, 5)} == {1: 3, 2: 3, 3: 5, 4: 2}
        assert table.log_offset == UNKNOWN
        table.saving({1: 9}, 1234)()
        content = fastjson.loads(rig.files.read(PATH))
        assert isinstance(content, dict)
        version_of = content.pop("dataVersion", None)
        assert content == {"offsetTable": {"1": 9}, "logOffset": 1234}
        if version == "5.5.0":
            assert (version_of["counter"], version_of["timestamp"]) == (13, rig.clock.wall_ms())
        again = DelayOffsetTable("/store/config", rig.files, rig.clock)
        again.load()
        assert (again.offsets, again.log_offset) == ({1: 9}, 1234)

    def test_a_replica_gets_the_offsets_alone(self, rig: Any) -> None:
        rig.put(b"x")
        rig.advance(1)
        assert rig.schedule.encode() == b'{"offsetTable":{1:1}}'
        assert rig.schedule.positions() == {1: (1, 1)}

    def test_what_a_java_broker_left_is_not_searched_for_copies(self, rig: Any) -> None:
        rig.put(b"x")
        rig.advance(2)
        rig.files.replace(PATH, b'{"offsetTable":{1:0}}')
        rig.crash()
        rig.advance(2)
        # As RocketMQ does: its own copies cannot be told from other messages.
        assert rig.delivered() == [b"x", b"x"]
        assert rig.store.max_offset(SCHEDULE_TOPIC, 0) == 1


def _plain(body_bytes: int = 100) -> NewMessage:
    return NewMessage(topic="P", queue_id=0, body=b"p" * body_bytes, properties=b"")
