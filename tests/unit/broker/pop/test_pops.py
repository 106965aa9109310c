"""Pops, acknowledgements and what becomes of messages that nobody acknowledges."""

from __future__ import annotations

import pytest
from tests.unit.broker.pop.rig import GROUP, INVISIBLE, RETRY, REVIVE, TOPIC, PopRig

from cometmq.broker.filters.message_filter import MessageFilter
from cometmq.broker.pop.check_points import Ack
from cometmq.broker.pop.pop_topics import retry_topic_v2
from cometmq.broker.pop.pops import CARRY_COUNT
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.record import decode_record
from cometmq.protocol import fastjson
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.faulty_files import Outage

SECONDS = INVISIBLE / 1000


@pytest.fixture
def rig() -> PopRig:
    return PopRig()


def test_a_message_is_given_out_once_while_it_is_invisible(rig: PopRig) -> None:
    for number in range(3):
        rig.put(b"%d" % number, queue_id=number % 2)
    assert sorted(rig.bodies()) == [b"0", b"1", b"2"]
    rig.advance(SECONDS - 0.001)
    assert rig.bodies() == []


def test_no_more_than_asked_for(rig: PopRig) -> None:
    for number in range(5):
        rig.put(b"%d" % number, queue_id=number % 2)
    result = rig.pops.pop(rig.request(2))
    assert (result.count, result.rest_count) == (2, 3)
    assert len(rig.bodies(4)) == 3


def test_what_is_not_acknowledged_comes_again_with_one_more_try(rig: PopRig) -> None:
    rig.put(b"lost")
    rig.put(b"done")
    for body, out in rig.pop():
        if body == b"done":
            assert rig.ack(out) > 0
    pop_time = rig.clock.wall_ms()
    rig.advance(SECONDS)
    result = rig.pops.pop(rig.request())
    (record,) = rig.given(result)
    assert (record.body, record.reconsume_times, record.topic) == (b"lost", 1, TOPIC)
    assert record.properties["1ST_POP_TIME"] == str(pop_time)
    assert record.properties["POP_CK"] == (
        f"0 {result.pop_time} {INVISIBLE} {result.revive_queue_id} 1 b49 0 0"
    )
    (stored,) = rig.records(RETRY)
    assert stored.topic == RETRY


def test_an_acknowledgement_that_comes_late_or_twice_changes_nothing(rig: PopRig) -> None:
    rig.put()
    ((_, first),) = rig.pop()
    assert rig.ack(first) > 0
    assert rig.ack(first) == 0
    rig.put()
    ((_, second),) = rig.pop()
    rig.advance(SECONDS)
    assert rig.ack(second) == 0
    assert rig.bodies() == [b"x"]


def test_a_batch_of_acknowledgements_is_one_record(rig: PopRig) -> None:
    for _ in range(4):
        rig.put()
    outs = [out for _, out in rig.pop()]
    key = outs[0][0]
    assert rig.pops.ack(Ack(key, (0, 2, 3))) > 0
    queue_id = next(iter(rig.pops.in_flight.points())).revive_queue_id
    point, acked = rig.records(REVIVE, queue_id)
    assert (point.properties["TAGS"], acked.properties["TAGS"]) == ("ck", "bAck")
    assert fastjson.loads(point.body) == {
        **{"bn": "b49", "bm": 0, "c": GROUP, "d": [0, 1, 2, 3], "it": INVISIBLE, "n": 4},
        **{"pt": key.pop_time, "q": 0, "ro": 0, "so": 0, "t": TOPIC},
    }
    assert fastjson.loads(acked.body)["aol"] == [0, 2, 3]
    rig.advance(SECONDS)
    assert len(rig.bodies()) == 1


def test_a_message_can_be_hidden_for_longer_or_shorter(rig: PopRig) -> None:
    for body in (b"long", b"short"):
        rig.put(body)
    outs = dict(rig.pop())
    changed = {
        body: rig.pops.change_invisible(*outs[body], ms)
        for body, ms in ((b"long", 20_000), (b"short", 1000))
    }
    assert rig.ack(outs[b"long"]) == 0, "the old handle counts no more"
    rig.advance(1)
    assert rig.bodies() == [b"short"]
    rig.advance(SECONDS)
    point = changed[b"long"]
    assert point is not None
    rig.advance(5)
    assert rig.ack((point.key, 0)) > 0
    rig.advance(60)
    assert [record.body for record in rig.records(RETRY)].count(b"long") == 0


def test_only_a_message_that_is_out_can_be_hidden_longer(rig: PopRig) -> None:
    rig.put()
    ((_, out),) = rig.pop()
    rig.ack(out)
    assert rig.pops.change_invisible(*out, 1000) is None


def test_after_the_last_try_a_message_is_a_dead_letter(rig: PopRig) -> None:
    rig.groups.put(SubscriptionGroupConfig(group_name=GROUP, retry_max_times=2))
    rig.put(b"poison")
    tries = 0
    for _ in range(10):
        tries += len(rig.pop())
        rig.advance(SECONDS)
    assert tries == 3
    (dead,) = rig.records("%DLQ%g")
    assert (dead.body, dead.reconsume_times) == (b"poison", 3)
    assert dead.properties["RETRY_TOPIC"] == TOPIC
    assert (rig.rooms.pop.revival.revived_count, rig.rooms.pop.revival.buried_count) == (2, 1)


def test_unwanted_messages_are_passed_over(rig: PopRig) -> None:
    for number in range(20):
        rig.put(b"%d" % number, tag="A" if number % 5 else "B")
    wanted = MessageFilter(tags={java_hash("B")})
    result = rig.pops.pop(rig.request(wanted=wanted))
    assert [record.body for record in rig.given(result)] == [b"0", b"5", b"10", b"15"]
    (popped,) = result.popped
    assert popped.offsets == [0, 5, 10, 15]
    rig.ack(rig.outs(result)[1][1])
    rig.advance(SECONDS)
    again = rig.given(rig.pops.pop(rig.request(wanted=wanted)))
    assert [record.body for record in again] == [b"0", b"10", b"15"]


def test_a_long_row_of_unwanted_messages_is_walked_in_steps(rig: PopRig) -> None:
    for _ in range(25):
        rig.put(tag="A")
    rig.put(b"that", tag="B")
    wanted = MessageFilter(tags={java_hash("B")}, scan_count=2)
    tries = 0
    while not (result := rig.pops.pop(rig.request(wanted=wanted))).count:
        assert result.is_scanning
        tries += 1
        assert tries < 10
    assert [record.body for record in rig.given(result)] == [b"that"]
    assert tries >= 3


def test_peek_takes_nothing(rig: PopRig) -> None:
    rig.put(b"still there")
    assert rig.pops.has_message(rig.request())
    assert [record.body for record in rig.given(rig.pops.peek(rig.request()))] == [b"still there"]
    assert rig.bodies() == [b"still there"]
    assert not rig.pops.has_message(rig.request())


def test_a_reset_of_the_position_is_obeyed(rig: PopRig) -> None:
    rig.put(b"0")
    rig.put(b"1")
    outs = rig.pop()
    rig.store.flush()
    rig.advance(1)
    assert rig.offsets.query(GROUP, TOPIC, 0) == 2
    rig.offsets.commit(GROUP, TOPIC, 0, 1)
    again = rig.pop()
    assert [body for body, _ in again] == [b"1"]
    assert again[0][1] not in [out for _, out in outs]


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_reset_to_where_the_table_still_is_counts_too(rig: PopRig, is_flushed: bool) -> None:
    """Pops are ahead of what is saved, and what they did is saved after the reset."""
    rig.offsets.commit(GROUP, TOPIC, 0, 0)
    rig.put(b"0")
    assert rig.bodies() == [b"0"]
    rig.offsets.reset(GROUP, TOPIC, 0, 0)
    if is_flushed:
        rig.store.flush()
        rig.advance(1)
    assert rig.offsets.query(GROUP, TOPIC, 0) == 0
    assert rig.bodies() == [b"0"]
    assert not rig.offsets.is_reset(GROUP, TOPIC, 0)
    rig.store.flush()
    rig.advance(1)
    assert (rig.offsets.query(GROUP, TOPIC, 0), rig.bodies()) == (1, [])


def test_a_position_is_saved_when_its_check_point_is_on_the_disk(rig: PopRig) -> None:
    rig.put()
    rig.store.flush()
    rig.pop()
    rig.advance(1)
    assert rig.offsets.query(GROUP, TOPIC, 0) == -1
    rig.store.flush()
    rig.advance(1)
    assert rig.offsets.query(GROUP, TOPIC, 0) == 1


@pytest.mark.parametrize("outage", Outage)
def test_a_crash_keeps_what_is_out_and_what_is_done(rig: PopRig, outage: Outage) -> None:
    for number in range(4):
        rig.put(b"%d" % number)
    outs = dict(rig.pop())
    rig.ack(outs[b"1"])
    changed = rig.pops.change_invisible(*outs[b"2"], 60_000)
    rig.store.flush()
    rig.crash(outage)
    assert rig.bodies() == []
    assert changed is not None
    assert rig.ack((changed.key, 2)) > 0
    assert rig.ack(outs[b"3"]) > 0
    rig.advance(120)
    assert rig.bodies() == [b"0"]


async def test_a_stop_hands_over_positions_and_a_start_goes_on(rig: PopRig) -> None:
    for number in range(3):
        rig.put(b"%d" % number)
    outs = dict(rig.pop())
    rig.ack(outs[b"0"])
    await rig.restart()
    assert rig.offsets.query(GROUP, TOPIC, 0) == 3
    assert rig.bodies() == []
    rig.ack(outs[b"1"])
    await rig.restart()
    rig.advance(SECONDS)
    assert rig.bodies() == [b"2"]
    await rig.restart()
    assert len(rig.pops.in_flight) == 1


def test_what_came_again_does_not_come_once_more_after_a_kill(rig: PopRig) -> None:
    rig.put()
    rig.pop()
    rig.advance(SECONDS)
    ((_, out),) = rig.pop()
    rig.ack(out)
    rig.crash()
    rig.advance(60)
    assert rig.bodies() == []


def test_a_reset_survives_a_kill(rig: PopRig) -> None:
    rig.put()
    rig.put()
    rig.pop()
    rig.store.flush()
    rig.advance(1)
    rig.offsets.commit(GROUP, TOPIC, 0, 0)
    rig.save()
    ((_, out), _) = rig.pop()
    rig.crash()
    assert rig.bodies() == []
    rig.store.flush()
    rig.advance(1)
    rig.offsets.commit(GROUP, TOPIC, 0, 0)
    rig.save()
    assert rig.pops.change_invisible(*out, 1000) is not None
    rig.crash()
    assert len(rig.bodies()) == 2, "to hide a message longer says nothing about the position"


def test_messages_that_are_gone_do_not_hold_up_the_others(rig: PopRig) -> None:
    rig.put(b"gone")
    rig.pop()
    rig.put(b"there", queue_id=1)
    rig.pop()
    rig.store.delete_topic(TOPIC)
    rig.advance(60)
    assert len(rig.pops.in_flight) == 0


def test_a_full_disk_delays_what_is_due(rig: PopRig) -> None:
    rig.put()
    rig.pop()
    rig.files.set_free(0)
    rig.store.maintain()
    rig.advance(SECONDS + 5)
    assert len(rig.pops.in_flight) == 1
    rig.files.set_free(1 << 39)
    rig.store.maintain()
    rig.advance(5)
    assert rig.bodies() == [b"x"]


async def test_retry_topics_of_the_second_kind() -> None:
    rig = PopRig(enableRetryTopicV2="true")
    rig.put()
    rig.pop()
    rig.advance(SECONDS)
    topic = retry_topic_v2(GROUP, TOPIC)
    result = rig.pops.pop(rig.request(retry=topic))
    assert [one.topic for one in result.popped] == [topic]
    (record,) = rig.given(result)
    assert record.properties["POP_CK"].split(" ")[4] == "2"
    await rig.restart()
    assert len(rig.records(topic)) == 1


def test_the_position_in_the_revive_topic_is_the_last_one_done_with_as_rocketmq_reads_it(
    rig: PopRig,
) -> None:
    def position(queue_id: int) -> int:
        rig.store.flush()
        rig.advance(1)
        return rig.offsets.query("CID_RMQ_SYS_REVIVE_GROUP", REVIVE, queue_id)

    rig.put(b"0")
    ((_, out),) = rig.pop(invisible_ms=1000_000)
    (queue_id,) = [number for number in range(8) if rig.store.max_offset(REVIVE, number)]
    # RocketMQ goes on behind the position. There is none before the first record.
    assert position(queue_id) == -1
    rig.save()
    rig.crash()
    assert len(rig.pops.in_flight) == 1
    rig.ack(out)
    assert position(queue_id) == rig.store.max_offset(REVIVE, queue_id) - 1 == 1
    rig.save()
    rig.crash()
    assert len(rig.pops.in_flight) == 0


def test_a_check_point_with_many_records_behind_it_is_written_again(
    rig: PopRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.pop.pops.CARRY_COUNT", 10)
    assert CARRY_COUNT > 1000
    for number in range(3):
        rig.put(b"%d" % number)
    held = dict(rig.pop(3, invisible_ms=1000_000))
    for _ in range(200):
        rig.put()
        ((_, out),) = rig.pop()
        rig.ack(out)
    rig.ack(held[b"0"])
    rig.advance(1)
    rig.store.flush()
    rig.advance(1)
    queue_id = held[b"0"][0].queue_id + 1
    begin = rig.offsets.query("CID_RMQ_SYS_REVIVE_GROUP", REVIVE, queue_id)
    assert rig.store.max_offset(REVIVE, queue_id) - begin <= 20
    rig.save()
    rig.crash()
    assert len(rig.pops.in_flight) == 1
    rig.ack(held[b"1"])
    rig.advance(2000)
    assert [record.body for record in rig.records(RETRY)] == [b"2"]


def test_check_points_of_a_rocketmq_broker_come_through_its_timer(rig: PopRig) -> None:
    """It popped two messages, one was acknowledged, and then we took over its store."""
    for number in range(2):
        rig.put(b"%d" % number)
    pop_time = rig.clock.wall_ms() - INVISIBLE
    rig.offsets.commit(GROUP, TOPIC, 0, 2)
    point = {
        **{"bm": 0, "bn": "b49", "c": GROUP, "d": [0, 1], "it": INVISIBLE, "n": 2},
        **{"pt": pop_time, "q": 0, "ro": 0, "so": 0, "t": TOPIC},
    }
    ack = {"ao": 1, "bn": "b49", "c": GROUP, "pt": pop_time, "q": 0, "so": 0, "t": TOPIC}

    def arrive(tag: str, body: object) -> None:
        own = NewMessage(
            topic=REVIVE,
            queue_id=3,
            body=fastjson.dumps(body),
            properties=f"TAGS\x01{tag}\x02TIMER_DEQUEUE_MS\x011\x02".encode(),
        )
        # Others that are stored with it are none of its business.
        rig.store.put_all([NewMessage(topic="Other", queue_id=99, body=b"", properties=b""), own])

    arrive("ck", point)
    rig.advance(1)
    arrive("ack", ack)
    rig.advance(5)
    assert rig.bodies() == [b"0"]


def test_nonsense_in_the_revive_topic_is_passed_over(rig: PopRig) -> None:
    for tag, body in (("ck", b"{"), ("ack", b"[]"), ("what", b"{}"), ("ck", b'{"t":"T"}')):
        rig.store.put(
            NewMessage(
                topic=REVIVE, queue_id=1, body=body, properties=f"TAGS\x01{tag}\x02".encode()
            )
        )
    rig.put()
    rig.pop()
    rig.crash()
    assert len(rig.pops.in_flight) == 1


def test_a_retry_record_too_full_for_a_handle_is_given_out_without(rig: PopRig) -> None:
    text = b"a\x01" + b"v" * 32_760 + b"\x02"
    rig.store.put(NewMessage(topic=TOPIC, queue_id=0, body=b"full", properties=text))
    rig.pop()
    rig.advance(SECONDS)
    (part,) = rig.pops.pop(rig.request()).parts
    record = decode_record(part)
    assert (record.body, "POP_CK" in record.properties) == (b"full", False)
