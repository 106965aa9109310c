from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cometmq.broker.broker_stats import DELAY
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import parse_properties
from cometmq.model.names import SCHEDULE_TOPIC
from cometmq.store.log.new_messages import NewMessage

MakeRig = Callable[..., Any]


def test_a_waiting_message_lies_in_the_queue_of_its_level(rig: Any) -> None:
    stored = rig.put(b"x", level=2)
    (record,) = rig.waiting(2)
    assert parse_properties(record.properties_text) == {
        "UNIQ_KEY": "Kx",
        "TAGS": "A",
        "KEYS": "k1 k2",
        "DELAY": "2",
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
    }
    ((_, _, due_ms),) = rig.store.entries(SCHEDULE_TOPIC, 1, 0, 1)
    assert due_ms == stored.store_timestamp + 5000
    assert rig.records() == []


def test_a_delivered_message_is_the_one_that_was_put(rig: Any) -> None:
    rig.put(b"x", level=1)
    (waited,) = rig.waiting(1)
    rig.advance(1)
    (record,) = rig.records("T", 2)
    for name in (
        "body",
        "flag",
        "sys_flag",
        "born_timestamp",
        "born_host",
        "reconsume_times",
        "properties_text",
    ):
        assert getattr(record, name) == getattr(waited, name), name
    assert rig.store.entries("T", 2, 0, 1)[0][2] == java_hash("A")
    for key in ("Kx", "k1", "k2"):
        assert len(rig.store.query("T", key, 10, 0, 1 << 62).parts) == 1
    assert rig.stats.topic_put("T", DELAY).count == 1
    assert rig.created == ["T"]


def test_each_level_delivers_at_its_time_to_the_millisecond(rig: Any) -> None:
    for level in (3, 1, 2):
        rig.put(b"%d" % level, level)
    seen: list[tuple[int, bytes]] = []
    start_ms = rig.clock.wall_ms()
    for _ in range(61_000):
        rig.advance(0.001)
        now_ms = rig.clock.wall_ms() - start_ms
        seen += [(now_ms, body) for body in rig.delivered()[len(seen) :]]
        if len(seen) == 3:
            break
    assert seen == [(1000, b"1"), (5000, b"2"), (60_000, b"3")]


def test_a_level_delivers_in_order(rig: Any) -> None:
    bodies = [b"%d" % number for number in range(500)]
    for number, body in enumerate(bodies):
        if number % 100 == 0:
            rig.advance(0.5)
        rig.put(body)
    rig.advance(1)
    assert rig.delivered() == bodies


def test_a_level_above_the_highest_is_the_highest(rig: Any) -> None:
    rig.put(b"x", level=99)
    (record,) = rig.waiting(3)
    assert record.properties["DELAY"] == "3"
    rig.advance(59.9)
    assert rig.delivered() == []
    rig.advance(0.1)
    assert rig.delivered() == [b"x"]


def test_waiting_messages_cost_nothing(rig: Any) -> None:
    for number in range(2000):
        rig.put(b"%d" % number, level=3)
    rig.advance(0.001)
    fired = rig.loop.fired
    assert rig.loop.waiting == 1
    rig.advance(59)
    assert rig.loop.fired == fired
    rig.advance(2)
    assert len(rig.delivered()) == 2000
    assert rig.loop.waiting == 0, "a level without messages has a timer"


def test_a_turn_of_the_loop_delivers_a_bounded_number(rig: Any) -> None:
    for number in range(200):
        rig.put(b"%d" % number)
    counts: list[int] = []
    told = SimpleNamespace(
        is_waiting_for=lambda *_: True, arrived=lambda *_: counts.append(rig.loop.fired)
    )
    rig.store.arrivals.append(told)
    rig.advance(2)
    assert len(rig.delivered()) == 200
    assert max(Counter(counts).values()) == 64


def test_a_full_disk_delays_and_loses_nothing(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    rig.put(b"x" * 7000)
    free = rig.files.space("/store")[1]
    rig.files.set_free(0)
    while rig.store.max_physical < 65536 - 8000:
        rig.store.put(
            NewMessage(topic="Fill", queue_id=0, body=b"f" * 6000, properties=b""),
        )
    rig.advance(5)
    assert rig.delivered() == []
    complaints = [
        record
        for record in caplog.records
        if record.levelno >= logging.ERROR and record.name == "cometmq.broker"
    ]
    assert len(complaints) == 1, "it says so once"
    assert "delayed messages wait level=1" in complaints[0].getMessage()
    rig.files.set_free(free)
    rig.advance(3)
    assert rig.delivered() == [b"x" * 7000]


def test_what_names_no_destination_is_skipped(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    for text in (
        b"DELAY\x011",
        b"DELAY\x011\x02REAL_TOPIC\x01../x\x02REAL_QID\x010",
        b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01-1",
        b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x0199999999999",
        b"DELAY\x011\x02REAL_TOPIC\x01RMQ_SYS_TRANS_HALF_TOPIC\x02REAL_QID\x010",
        b"DELAY\x011\x02REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_QID\x010",
    ):
        rig.store.put(NewMessage(topic=SCHEDULE_TOPIC, queue_id=0, body=b"b", properties=text))
    rig.put(b"good")
    rig.schedule._delivery.stop()
    rig.schedule.resume()
    rig.advance(1)
    assert rig.delivered() == [b"good"]
    assert caplog.text.count("names no destination") == 6
    assert rig.store.topics() == [SCHEDULE_TOPIC, "T"]


def test_stopped_it_delivers_nothing(rig: Any) -> None:
    rig.put(b"x")
    rig.schedule._delivery.stop()
    rig.put(b"y")
    rig.advance(5)
    assert rig.delivered() == []
