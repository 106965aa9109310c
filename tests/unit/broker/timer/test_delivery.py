"""Timed messages come to their topic at their time, as they were sent; recalled ones do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.broker_stats import DELAY
from cometmq.model.messages.properties import parse_properties
from cometmq.model.names import TIMER_TOPIC
from cometmq.protocol.refusal import Refused
from cometmq.store.log.new_messages import NewMessage

MakeRig = Callable[..., Any]
DAY = 86_400


def test_a_message_comes_at_its_time_to_the_millisecond(rig: Any) -> None:
    due = rig.now + 1234
    rig.put(b"x", 1.234)
    rig.advance(1.233)
    assert rig.delivered() == []
    rig.advance(0.001)
    (record,) = rig.records()
    assert record.store_timestamp == due
    assert rig.created == [TIMER_TOPIC, "T"]


def test_what_waits_is_a_record_as_rocketmq_has_it(rig: Any) -> None:
    due = rig.now + 5000
    rig.put(b"x", 5)
    (record,) = rig.waiting()
    assert (record.topic, record.queue_id) == ("rmq_sys_wheel_timer", 0)
    assert record.properties == {
        "UNIQ_KEY": "Kx",
        "TAGS": "A",
        "KEYS": "k1 k2",
        "TIMER_OUT_MS": str(due - 1),
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
    }


def test_what_is_delivered_is_what_was_sent(rig: Any) -> None:
    stored = rig.put(b"x", 5)
    (waited,) = rig.waiting()
    rig.advance(5)
    (record,) = rig.records()
    assert record.properties == {
        **waited.properties,
        "TIMER_ENQUEUE_MS": str(stored.store_timestamp),
        "TIMER_DEQUEUE_MS": str(stored.store_timestamp + 5000),
    }
    for field in ("body", "flag", "sys_flag", "born_timestamp", "born_host", "reconsume_times"):
        assert getattr(record, field) == getattr(waited, field), field
    assert record.sys_flag == 1
    assert rig.store.query("T", "k2", 10, 0, 1 << 50).parts
    ((_, _, tags_code),) = rig.store.entries("T", 2, 0, 1)
    assert tags_code == 65
    assert rig.stats.topic_put("T", DELAY).count == 1


def test_messages_come_in_the_order_of_their_times(rig: Any) -> None:
    for seconds in (5, 1, 3, 700, 2, 4000, 3):
        rig.put(b"%d" % seconds, seconds)
    rig.advance(5000)
    assert rig.delivered() == [b"1", b"2", b"3", b"3", b"5", b"700", b"4000"]
    assert rig.timed.waiting_count == 0


def test_many_messages_of_one_moment(rig: Any) -> None:
    for number in range(500):
        rig.put(b"%d" % number, 2)
    rig.advance(2.1)
    assert len(rig.delivered()) == 500


def test_nothing_happens_while_nothing_waits(rig: Any) -> None:
    rig.advance(100)
    assert rig.loop.fired == 1
    assert rig.loop.waiting == 0


def test_a_far_message_costs_a_look_now_and_then(rig: Any) -> None:
    rig.put(b"x", 3600)
    rig.advance(300)
    assert rig.loop.fired < 310


def test_an_earlier_message_does_not_wait_for_a_later_one(rig: Any) -> None:
    rig.put(b"late", 8)
    rig.advance(0.01)
    rig.put(b"soon", 0.005)
    rig.advance(0.005)
    assert rig.delivered() == [b"soon"]


def test_the_wall_clock_set_forward(rig: Any) -> None:
    rig.put(b"x", 3600)
    rig.clock.jump(3600)
    rig.advance(1)
    assert rig.delivered() == [b"x"]


def test_a_message_of_forty_days_is_stored_anew_until_its_time(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.timer.timer_delivery.LOOK_SECONDS_MAX", 60.0)
    due = rig.now + 40 * DAY * 1000
    rig.put(b"x", 40 * DAY)
    rig.advance(2 * DAY - 1)
    assert len(rig.waiting()) == 1
    rig.advance(38 * DAY)
    assert rig.delivered() == []
    waited = rig.waiting()
    assert len(waited) == 20
    assert waited[-1].properties["TIMER_ROLL_TIMES"] == "19"
    assert {record.properties["TIMER_OUT_MS"] for record in waited} == {str(due - 1)}
    rig.advance(1)
    (record,) = rig.records()
    assert record.store_timestamp == due
    assert len(rig.waiting()) == 20


def test_messages_outlive_the_log_file_they_were_stored_in(make_rig: MakeRig) -> None:
    rig = make_rig(fileReservedTime="1", deleteWhen="")
    rig.put(b"x", 4 * 3600)
    for _ in range(4 * 6):
        rig.advance(600)
        for _ in range(30):
            rig.store.put(NewMessage(topic="P", queue_id=0, body=b"p" * 3000, properties=b""))
        rig.store.flush()
        rig.store.delete_expired_files()
        rig.store.maintain()
    assert rig.store.min_physical > 65536
    assert rig.delivered() == [b"x"]


class TestRecall:
    def test_a_recalled_message_does_not_come(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.put(b"a", 5)
        rig.put(b"b", 5)
        rig.put(b"c", 5)
        rig.recall(b"b", due)
        rig.advance(10)
        assert rig.delivered() == [b"a", b"c"]
        assert rig.timed.recalled_count == 1
        assert rig.timed.waiting_count == 0

    def test_its_record_is_rocketmqs(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.recall(b"a", due)
        (record,) = rig.waiting()
        assert record.body == b"0"
        assert record.properties == {
            "TAGS": "_RECALL_TAG_",
            "TIMER_DEL_UNIQKEY": "Ka",
            "UNIQ_KEY": "Ka",
            "TIMER_DELIVER_MS": str(due),
            "PGROUP": "PG",
            "TIMER_OUT_MS": str(due - 1),
            "REAL_TOPIC": "T",
            "REAL_QID": "0",
        }

    def test_in_the_last_millisecond(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.put(b"a", 5)
        rig.advance(4.999)
        rig.recall(b"a", due)
        rig.advance(1)
        assert rig.delivered() == []

    def test_another_time_or_key_is_another_message(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.put(b"a", 5)
        rig.recall(b"other", due)
        rig.recall(b"a", due + 2000)
        rig.advance(10)
        assert rig.delivered() == [b"a"]

    def test_a_second_message_of_the_same_key_comes_at_its_own_time(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.put(b"a", 5)
        rig.put(b"a", 20)
        rig.recall(b"a", due)
        rig.advance(30)
        assert rig.delivered() == [b"a"]

    def test_of_a_message_that_was_stored_anew(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cometmq.broker.timer.timer_delivery.LOOK_SECONDS_MAX", 60.0)
        due = rig.now + 10 * DAY * 1000
        rig.put(b"a", 10 * DAY)
        rig.advance(3 * DAY)
        rig.recall(b"a", due)
        rig.advance(8 * DAY)
        assert rig.delivered() == []
        assert rig.timed.recalled_count == 1

    async def test_survives_restarts_and_kills(self, rig: Any) -> None:
        due = rig.now + 5000
        rig.put(b"a", 5)
        rig.put(b"b", 5)
        rig.recall(b"a", due)
        await rig.restart()
        rig.crash()
        rig.advance(10)
        assert rig.delivered() == [b"b"]

    def test_a_handle_names_the_message(self, make_rig: MakeRig) -> None:
        rig = make_rig(brokerName="b")
        assert rig.timed.handle(rig.message(b"x"), 1794779966001) == (
            "djEgVCBiIDE3OTQ3Nzk5NjYwMDEgS3g="
        )


class TestTheTime:
    @pytest.mark.parametrize(
        ("timer", "seconds"),
        [
            (("TIMER_DELAY_SEC", "3"), 3),
            (("TIMER_DELAY_MS", "4500"), 4.5),
            (("TIMER_DELIVER_MS", "1700000007001"), 7.001),
            (("TIMER_DELAY_SEC", str(40 * DAY)), 40 * DAY),
        ],
    )
    def test_of_a_message(self, rig: Any, timer: tuple[str, str], seconds: float) -> None:
        assert rig.timed.deliver_ms(timer) == rig.now + round(seconds * 1000)

    @pytest.mark.parametrize(
        "timer",
        [("TIMER_DELAY_SEC", "0"), ("TIMER_DELAY_MS", "-5"), ("TIMER_DELIVER_MS", "1700000000000")],
    )
    def test_that_is_past_means_now(self, rig: Any, timer: tuple[str, str]) -> None:
        assert rig.timed.deliver_ms(timer) == 0

    @pytest.mark.parametrize(
        "timer",
        [
            ("TIMER_DELAY_SEC", str(40 * DAY + 1)),
            ("TIMER_DELAY_MS", str(40 * DAY * 1000 + 1)),
            ("TIMER_DELIVER_MS", str(1_700_000_000_001 + 40 * DAY * 1000)),
            ("TIMER_DELIVER_MS", "tomorrow"),
            ("TIMER_DELIVER_MS", "9" * 30),
        ],
    )
    def test_that_is_refused(self, rig: Any, timer: tuple[str, str]) -> None:
        with pytest.raises(Refused) as caught:
            rig.timed.deliver_ms(timer)
        assert caught.value.code == 13
        assert "should not be bigger than the max delay 3456000000ms" in str(caught.value)

    def test_is_refused_when_timers_are_off(self, make_rig: MakeRig) -> None:
        rig = make_rig(timerWheelEnable="false")
        with pytest.raises(Refused) as caught:
            rig.timed.deliver_ms(("TIMER_DELAY_SEC", "1"))
        assert caught.value.code == 1

    def test_the_limit_is_a_setting(self, make_rig: MakeRig) -> None:
        rig = make_rig(timerMaxDelaySec="10")
        assert rig.timed.deliver_ms(("TIMER_DELAY_SEC", "10"))
        with pytest.raises(Refused):
            rig.timed.deliver_ms(("TIMER_DELAY_SEC", "11"))


def test_a_full_disk_holds_messages_up_and_loses_none(rig: Any) -> None:
    rig.put(b"x", 1)
    rig.store.flush()
    rig.store._appender.refusal = OSError("no space left")
    rig.advance(5)
    assert rig.delivered() == []
    rig.store._appender.refusal = None
    rig.advance(1)
    assert rig.delivered() == [b"x"]


def test_properties_that_leave_no_room_for_notes(rig: Any) -> None:
    rig.put(b"x", 1)
    size = 32767 - len(rig.waiting()[0].properties_text) - 10
    rig.put(b"x", 1, "a\x01" + "v" * size)
    _, waited = rig.waiting()
    rig.advance(1)
    _, record = rig.records()
    assert parse_properties(record.properties_text) == waited.properties


def test_a_record_that_says_nothing_is_passed_over(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    message = rig.message(b"x")
    stored = rig.store.put(
        NewMessage(topic="rmq_sys_wheel_timer", queue_id=0, body=b"", properties=b"")
    )
    rig.timed._lanes.wall.waiting.add(rig.now + 5, stored.physical_offset)
    rig.timed.put(message, rig.now + 6)
    rig.advance(1)
    assert rig.delivered() == [b"x"]
    assert "timed message skipped" in caplog.text
