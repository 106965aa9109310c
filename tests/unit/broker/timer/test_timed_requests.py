"""Sends with a time of delivery, and recalls of them, as a client sees them."""

from __future__ import annotations

from typing import Any

import pytest

from cometmq.broker.broker_stats import DELAY
from cometmq.model.messages.recall_handle import RecallHandle, decode_recall_handle
from cometmq.protocol.command import Command

TIMER = "rmq_sys_wheel_timer"


def send(rig: Any, properties: str, **fields: str) -> Any:
    return rig.send("T", i=f"UNIQ_KEY\x01K\x02{properties}", **fields)


def recall(rig: Any, handle: str, topic: str = "T") -> Command:
    ext = {"producerGroup": "PG", "topic": topic, "recallHandle": handle}
    reply = rig.ask(370, ext)
    assert isinstance(reply, Command)
    return reply


def sent(rig: Any, seconds: int = 10) -> str:
    reply = send(rig, f"TIMER_DELAY_SEC\x01{seconds}")
    assert reply.code == 0
    return str((reply.ext or {})["recallHandle"])


def test_a_timed_message_waits_and_its_reply_has_a_handle(rig: Any) -> None:
    handle = decode_recall_handle(sent(rig))
    due = rig.clock.wall_ms() + 10_000
    assert handle == RecallHandle("T", rig.live.current.identity.broker_name, due, "K")
    assert rig.records("T", 0) == []
    (record,) = rig.records(TIMER, 0)
    assert record.properties["TIMER_OUT_MS"] == str(due - 1)
    assert rig.topics.get(TIMER).queue_count == 1
    assert rig.stats.topic_put(TIMER, DELAY).count == 1


def test_without_a_unique_key_there_is_no_handle(rig: Any) -> None:
    reply = rig.send("T", i="TIMER_DELAY_SEC\x0110")
    assert reply.code == 0
    assert "recallHandle" not in (reply.ext or {})
    assert len(rig.records(TIMER, 0)) == 1


def test_a_time_that_is_past_means_now(rig: Any) -> None:
    reply = send(rig, f"TIMER_DELIVER_MS\x01{rig.clock.wall_ms()}")
    assert reply.code == 0
    assert "recallHandle" not in (reply.ext or {})
    (record,) = rig.records("T", 0)
    assert "TIMER_DELIVER_MS" in record.properties
    assert "TIMER_OUT_MS" not in record.properties


def test_a_time_too_far_ahead_is_refused(rig: Any) -> None:
    reply = send(rig, f"TIMER_DELAY_SEC\x01{41 * 86_400}")
    assert (reply.code, reply.remark) == (
        13,
        "timer message illegal, the delay time should not be bigger than the max delay 3456000000ms; "
        "or if set del msg, the delay time should be bigger than the current time",
    )
    assert (reply.ext or {})["MSG_REGION"] == "DefaultRegion"
    assert rig.store.max_physical == 0
    assert rig.stats.put_failed_count == 0


def test_a_delay_level_counts_more(rig: Any) -> None:
    assert send(rig, "TIMER_DELAY_SEC\x0110\x02DELAY\x012").code == 0
    (record,) = rig.records("SCHEDULE_TOPIC_XXXX", 1)
    assert "TIMER_DELAY_SEC" not in record.properties
    assert rig.records(TIMER, 0) == []


def test_nobody_sends_to_the_timer_topic(rig: Any) -> None:
    assert rig.send(TIMER).code == 16


class TestRecall:
    def test_is_stored_and_answered(self, rig: Any) -> None:
        reply = recall(rig, sent(rig))
        assert (reply.code, reply.ext) == (0, {"msgId": "K", "MSG_REGION": "DefaultRegion"})
        _, record = rig.records(TIMER, 0)
        assert record.properties["TIMER_DEL_UNIQKEY"] == "K"
        assert rig.stats.topic_put(TIMER, DELAY).count == 2

    @pytest.mark.parametrize("jump", [3600, -3600])
    def test_of_a_delay_is_in_time_although_the_clock_was_set(self, rig: Any, jump: int) -> None:
        longest = 40 * 86_400
        handles = [sent(rig), sent(rig, longest)]
        rig.clock.jump(jump)
        rig.clock.advance(9)
        for handle in handles:
            assert recall(rig, handle).code == 0

    def test_comes_too_late(self, rig: Any) -> None:
        handle = sent(rig)
        rig.clock.advance(10)
        reply = recall(rig, handle)
        assert (reply.code, reply.remark) == (604, "recall failed, timestamp invalid")

    @pytest.mark.parametrize(
        ("topic", "handle", "code", "remark"),
        [
            ("Unknown", "", 17, "recall failed, the topic[Unknown] not exist"),
            ("T", "nonsense", 604, "recall handle is invalid"),
            ("T", RecallHandle("U", "x", 1, "K").encode(), 604, "recall failed, topic not match"),
            (
                "T",
                RecallHandle("T", "elsewhere", 1, "K").encode(),
                604,
                "recall failed, broker service not available",
            ),
        ],
    )
    def test_is_refused(self, rig: Any, topic: str, handle: str, code: int, remark: str) -> None:
        sent(rig)
        reply = recall(rig, handle, topic)
        assert reply.code == code
        assert (reply.remark or "").startswith(remark)
        assert reply.ext == {"MSG_REGION": "DefaultRegion"}
        assert len(rig.records(TIMER, 0)) == 1

    def test_can_be_forbidden_in_rocketmqs_words(self, make_rig: Any) -> None:
        rig = make_rig(recallMessageEnable="false")
        reply = recall(rig, sent(rig))
        assert (reply.code, reply.remark, reply.ext) == (
            16,
            "recall failed, operation is forbidden",
            {"MSG_REGION": "DefaultRegion"},
        )

    def test_waits_for_the_disk_where_sends_do(self, make_rig: Any) -> None:
        rig = make_rig(flushDiskType="SYNC_FLUSH")
        due = rig.clock.wall_ms() + 5000
        rig.creation.for_send("T", "TBW102", 4, rig.peer, is_unit=False)
        handle = RecallHandle("T", rig.live.current.identity.broker_name, due, "K").encode()
        ext = {"producerGroup": "PG", "topic": "T", "recallHandle": handle}
        assert rig.dispatch(Command(code=370, ext=ext, opaque=7)) == []
        rig.store.flush()
        (reply,) = rig.peer.take()
        assert reply.code == 0
