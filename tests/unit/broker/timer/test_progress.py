"""Over restarts: every timed message is delivered once, as far as the log remembers."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from tests.eventually import eventually
from tests.unit.broker.lives import live_and_die

from cometmq.broker.timer.rocketmq_timercheck import PeerProgress
from cometmq.model.names import TIMER_TOPIC
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.timer.timer_checkpoint import CheckpointFile, TimerCheckpoint
from cometmq.testing.faulty_files import Outage

MakeRig = Callable[..., Any]
CHECKPOINT = "/store/timer/checkpoint"
PEER = "/store/config/timercheck"
RECALL = "TIMER_DEL_UNIQKEY"


async def test_a_clean_restart(rig: Any) -> None:
    for seconds in (1, 5, 700):
        rig.put(b"%d" % seconds, seconds)
    rig.advance(2)
    await rig.restart()
    assert rig.timed.waiting_count == 2 + 1, "the one that was done is in the file still"
    rig.advance(1)
    assert rig.timed.waiting_count == 2
    await rig.restart()
    rig.advance(700)
    assert rig.delivered() == [b"1", b"5", b"700"]


async def test_the_timer_topic_has_an_entry_from_its_first_use_on(rig: Any) -> None:
    assert rig.topics.get(TIMER_TOPIC) is None
    rig.put(b"x", 5)
    assert rig.topics.get(TIMER_TOPIC) is not None
    await rig.stop()
    rig.files.remove("/store/config/topics.json")
    rig.files.remove("/store/config/topics.json.bak")
    rig.open()
    assert rig.topics.get(TIMER_TOPIC) is not None


async def test_messages_come_due_while_the_broker_is_down(rig: Any) -> None:
    rig.put(b"b", 20)
    rig.put(b"a", 10)
    rig.put(b"c", 4000)
    await rig.stop()
    rig.clock.advance(3600)
    rig.open()
    rig.advance(0.1)
    assert rig.delivered() == [b"a", b"b"]


def test_a_kill_before_the_first_save_loses_and_repeats_nothing(rig: Any) -> None:
    for number in range(5):
        rig.put(b"%d" % number, 1)
    rig.advance(2)
    rig.put(b"last", 1)
    rig.crash()
    assert not rig.files.exists(CHECKPOINT)
    rig.advance(2)
    assert rig.delivered() == [b"0", b"1", b"2", b"3", b"4", b"last"]


async def test_a_kill_after_a_save_repeats_nothing(rig: Any) -> None:
    for number in range(10):
        rig.put(b"%d" % number, number + 1)
    rig.advance(3)
    await rig.save()
    rig.put(b"new", 1)
    rig.advance(3)
    rig.crash()
    rig.advance(0.1)
    await rig.save()
    rig.crash()
    rig.advance(10)
    assert sorted(rig.delivered()) == sorted([b"new", *(b"%d" % number for number in range(10))])


async def test_kill_upon_kill_before_the_index_has_caught_up(rig: Any) -> None:
    """The second life ends before it passed over what the first one delivered."""
    for number in range(200):
        rig.put(b"%d" % number, 1)
    await rig.save()
    rig.advance(2)
    rig.crash()
    await rig.save()
    rig.crash()
    rig.advance(2)
    await rig.save()
    rig.crash()
    rig.advance(2)
    assert len(rig.delivered()) == 200


async def test_a_save_waits_for_the_disk(rig: Any) -> None:
    """Otherwise a power loss could take the copies and leave the word that they were made."""
    rig.put(b"x", 1)
    rig.store.flush()
    rig.advance(2)
    saving = asyncio.create_task(rig.timed.save())
    while not rig.store.watermarks.flushed.waiting:
        await asyncio.sleep(0)
    assert not saving.done()
    assert not rig.files.exists(CHECKPOINT)
    rig.store.watermarks.flushed.abandon()
    await saving
    assert not rig.files.exists(CHECKPOINT)
    rig.crash(Outage.POWER_LOSS)
    rig.advance(2)
    assert rig.delivered() == [b"x"]


async def test_what_is_put_while_a_stop_waits_for_a_save_is_neither_lost_nor_delivered_yet(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_saving, may_save = threading.Event(), threading.Event()
    save = CheckpointFile.save

    def slow_save(file: CheckpointFile, checkpoint: TimerCheckpoint) -> None:
        is_saving.set()
        assert may_save.wait(10)
        save(file, checkpoint)

    monkeypatch.setattr(CheckpointFile, "save", slow_save)
    rig.put(b"before", 1)
    saving = asyncio.create_task(rig.save())
    await eventually(is_saving.is_set)
    stopping = asyncio.create_task(rig.timed.stop())
    await asyncio.sleep(0)
    rig.put(b"time", 1)
    rig.put_delay(b"delay", 1)
    rig.advance(2)
    assert rig.delivered() == []
    may_save.set()
    await asyncio.gather(saving, stopping)
    rig.put(b"after", 1)
    rig.advance(5)
    assert rig.delivered() == []
    rig.timed.resume()
    rig.advance(5)
    assert sorted(rig.delivered()) == [b"after", b"before", b"delay", b"time"]


@pytest.mark.parametrize("loss", ["all", "checkpoint", "unreadable"])
async def test_a_lost_index_is_made_anew_from_the_log(rig: Any, loss: str) -> None:
    for number in range(50):
        rig.put(b"%d" % number, number * 100 + 1)
    rig.advance(1000)
    await rig.stop()
    if loss == "all":
        rig.files.remove_tree("/store/timer")
    elif loss == "checkpoint":
        rig.files.remove(CHECKPOINT)
    else:
        rig.files.replace(CHECKPOINT, b'{"done":7}')
    rig.files.remove(PEER)
    rig.open()
    assert rig.timed.waiting_count == 50
    rig.advance(5000)
    assert rig.delivered() == [b"%d" % number for number in range(50)]


async def test_a_full_disk_delays_a_save(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    await rig.save()
    free = rig.files.space("/store")[1]
    for number in range(20):
        rig.put(b"%d" % number, 5000 + number)
    rig.store.flush()
    rig.files.set_free(0)
    await rig.timed.save()
    assert "timers not saved" in caplog.text
    rig.files.set_free(free)
    await rig.timed.save()
    rig.crash()
    rig.advance(6000)
    assert rig.delivered() == [b"%d" % number for number in range(20)]


async def test_a_quiet_broker_writes_nothing(rig: Any) -> None:
    await rig.save()
    await rig.stop()
    assert rig.files.names("/store/timer") == []
    assert not rig.files.exists(PEER)


async def test_the_same_is_saved_again_while_messages_wait_and_the_log_grows(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.timer.timer_progress.GROWTH_BYTES_MAX", 1000)
    rig.put(b"x", 5000)
    rig.advance(0)
    await rig.save()
    first = rig.files.read(CHECKPOINT)
    await rig.save()
    assert rig.files.read(CHECKPOINT) == first
    for _ in range(10):
        rig.store.put(_plain())
    await rig.save()
    assert rig.files.read(CHECKPOINT) != first


@pytest.mark.parametrize("outage", list(Outage))
@pytest.mark.parametrize("seed", range(25))
async def test_every_surviving_message_has_one_copy(
    make_rig: MakeRig, seed: int, outage: Outage
) -> None:
    chance = Random(seed)
    rig = make_rig(fileReservedTime="1")
    await live_and_die(rig, chance, outage, live, calls_max=120)
    rig.advance(20_000)
    waited = [r for r in rig.waiting() if RECALL not in r.properties]
    taken_back = {
        r.properties[RECALL].removeprefix("K").encode()
        for r in rig.waiting()
        if RECALL in r.properties
    }
    copies = Counter(rig.delivered())
    assert len(waited) > 50, "the test does too little"
    assert any("TIMER_ROLL_TIMES" in r.properties for r in waited), "none was stored anew"
    assert set(copies.values()) == {1}, "delivered twice"
    assert {r.body for r in waited} - taken_back <= set(copies), "not delivered"
    assert not copies.keys() & taken_back, "delivered although taken back"
    assert rig.timed.waiting_count == 0
    for record in rig.records():
        due = int(record.properties["TIMER_OUT_MS"]) + 1
        assert record.store_timestamp >= due, "too early"


async def live(rig: Any, chance: Random, numbers: Iterator[int]) -> None:
    for _ in range(chance.randrange(40)):
        body = b"%d" % next(numbers)
        seconds = chance.choice([0.001, 0.5, 3, 60, 700, 4000, 6000])
        due = rig.now + round(seconds * 1000)
        rig.put(body, seconds)
        if chance.random() < 0.2:
            rig.recall(body, due)
        rig.advance(chance.choice([0, 0, 0.1, 1, 7, 300]))
        if chance.random() < 0.1:
            rig.store.flush()
        if chance.random() < 0.1:
            await rig.save()


class TestBesideRocketmq:
    async def test_a_stop_tells_where_to_go_on(self, rig: Any) -> None:
        for seconds in (1, 5000, 2, 3):
            rig.put(b"%d" % seconds, seconds)
        rig.advance(2.5)
        await rig.stop()
        content = rig.files.read(PEER)
        assert len(content) == 4096
        found = PeerProgress.decode(content)
        assert (found.read_ms, found.queue_offset) == (1_700_000_002_000, 1)

    async def test_what_a_rocketmq_broker_did_meanwhile_counts(self, rig: Any) -> None:
        rig.put(b"theirs", 5)
        rig.put(b"ours", 50)
        await rig.stop()
        progress = PeerProgress(counter=7)
        read_ms = rig.now + 20_000
        rig.files.replace(PEER, progress.moved(read_ms=read_ms, queue_offset=2, now_ms=read_ms))
        rig.clock.advance(21)
        rig.open()
        rig.advance(100)
        assert rig.delivered() == [b"ours"]

    async def test_what_it_has_not_seen_does_not_count(self, rig: Any) -> None:
        rig.put(b"seen", 5)
        rig.put(b"unseen", 6)
        await rig.stop()
        read_ms = rig.now + 20_000
        content = PeerProgress().moved(read_ms=read_ms, queue_offset=1, now_ms=read_ms)
        rig.files.replace(PEER, content)
        rig.clock.advance(21)
        rig.open()
        rig.advance(100)
        assert rig.delivered() == [b"unseen"]

    async def test_what_it_stored_anew_comes_once(self, rig: Any) -> None:
        due = rig.now + 50_000
        for text in ("", "TIMER_ROLL_TIMES\x011\x02"):
            properties = f"UNIQ_KEY\x01K\x02REAL_TOPIC\x01T\x02REAL_QID\x012\x02{text}TIMER_OUT_MS\x01{due}\x02"
            rig.store.put(
                NewMessage(topic=TIMER_TOPIC, queue_id=0, body=b"x", properties=properties.encode())
            )
        await rig.stop()
        content = PeerProgress().moved(read_ms=rig.now, queue_offset=2, now_ms=rig.now)
        rig.files.replace(PEER, content)
        rig.open()
        rig.advance(100)
        assert rig.delivered() == [b"x"]

    @pytest.mark.parametrize(
        ("asked", "late_ms"),
        [
            ("TIMER_DELAY_SEC\x0150", 500),
            ("TIMER_DELAY_MS\x0150400", 900),
            ("TIMER_DELIVER_MS\x011700000050777", 777),
            ("", 1),
        ],
    )
    def test_its_rounded_times_are_read_with_what_was_asked_for(
        self, rig: Any, asked: str, late_ms: int
    ) -> None:
        rig.clock.advance(0.5)
        properties = (
            f"UNIQ_KEY\x01K\x02REAL_TOPIC\x01T\x02REAL_QID\x012\x02{asked}\x02"
            "TIMER_OUT_MS\x011700000050000"
        )
        rig.store.put(
            NewMessage(topic=TIMER_TOPIC, queue_id=0, body=b"x", properties=properties.encode())
        )
        rig.crash()
        rig.advance(100)
        (record,) = rig.records()
        assert record.store_timestamp - 1_700_000_050_000 == late_ms


def _plain(body_bytes: int = 100) -> NewMessage:
    return NewMessage(topic="P", queue_id=0, body=b"p" * body_bytes, properties=b"")
