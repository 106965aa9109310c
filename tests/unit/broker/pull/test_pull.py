from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import StoreClosed
from cometmq.broker.pull.long_polling import TICK_SECONDS
from cometmq.broker.pull.pull_subscription import KEPT_CHARS_MAX, _kept_filter_by_tags
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.record import decode_records
from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import Command
from cometmq.store.read.read_results import GetResult, GetStatus

MakeRig = Callable[..., Any]
SUSPEND, HEARD = "6", "0"


def bodies(reply: Any) -> list[bytes]:
    data = b"".join(bytes(part) for part in reply.body_parts or ())
    return [record.body for record in decode_records(data)]


def offsets(reply: Any) -> tuple[str, str, str]:
    assert reply.ext["suggestWhichBrokerId"] == "0"
    return reply.ext["nextBeginOffset"], reply.ext["minOffset"], reply.ext["maxOffset"]


def test_messages_are_shipped_as_they_are_stored(rig: Any) -> None:
    for body in (b"0", b"1", b"2"):
        rig.send("T", body)
    reply = rig.pull("T", 1)
    assert (reply.code, reply.remark, offsets(reply)) == (0, "FOUND", ("3", "0", "3"))
    assert bodies(reply) == [b"1", b"2"]
    assert len(reply.body_parts) == 1, "adjacent records are one view of the log"
    assert isinstance(reply.body_parts[0], memoryview)
    tally = rig.stats.group_get("T", "CG")
    assert (tally.count, tally.size_bytes) == (2, len(reply.body_parts[0]))


def test_lite_pull_is_the_same_request(rig: Any) -> None:
    rig.send("T")
    (reply,) = rig.dispatch(
        Command(
            code=361,
            ext={
                "consumerGroup": "CG",
                "topic": "T",
                "queueId": "0",
                "queueOffset": "0",
                "maxMsgNums": "10",
                "sysFlag": "22",
                "subscription": "*",
            },
        )
    )
    assert bodies(reply) == [b"x"]


def test_lite_pull_can_be_switched_off(make_rig: MakeRig) -> None:
    rig = make_rig(litePullMessageEnable="false")
    rig.send("T")
    assert rig.pull("T", sysFlag="20").code == 16
    assert rig.pull("T").code == 0


@pytest.mark.parametrize(
    ("offset", "code", "status", "next_offset"),
    [
        (2, 19, "OFFSET_OVERFLOW_ONE", "2"),
        (3, 21, "OFFSET_OVERFLOW_BADLY", "2"),
        (-1, 21, "OFFSET_TOO_SMALL", "0"),
    ],
)
def test_offsets_beyond_the_queue(
    rig: Any, offset: int, code: int, status: str, next_offset: str
) -> None:
    rig.send("T")
    rig.send("T")
    reply = rig.pull("T", offset)
    assert (reply.code, reply.remark) == (code, status)
    assert offsets(reply) == (next_offset, "0", "2")
    assert reply.body_parts is None


def test_an_empty_queue_is_fine_for_a_reader_at_its_start_only(rig: Any) -> None:
    rig.topics.put(TopicConfig(topic_name="T"))
    assert rig.pull("T", 0).code == 19
    assert rig.pull("T", 5).code == 21
    assert offsets(rig.pull("T", 5)) == ("0", "0", "0")


def test_only_tags_that_were_asked_for(rig: Any) -> None:
    for tag in "ABA":
        rig.send("T", tag.encode(), i=f"TAGS\x01{tag}")
    assert bodies(rig.pull("T", subscription="A || C")) == [b"A", b"A"]
    nothing = rig.pull("T", subscription="C")
    assert (nothing.code, nothing.remark, offsets(nothing)[0]) == (20, "NO_MATCHED_MESSAGE", "3")


def test_a_short_tag_expression_is_compiled_once_and_a_long_one_is_not_kept(rig: Any) -> None:
    for tag in "AB":
        rig.send("T", tag.encode(), i=f"TAGS\x01{tag}\x02")
    _kept_filter_by_tags.cache_clear()
    long = " || ".join(["B", *(f"another{number}" for number in range(KEPT_CHARS_MAX // 10))])
    assert len(long) > KEPT_CHARS_MAX
    for expression in ("B", "B", long, "A||B", long):
        reply = rig.pull("T", 0, subscription=expression)
        assert bodies(reply) == ([b"A", b"B"] if expression == "A||B" else [b"B"])
    kept = _kept_filter_by_tags.cache_info()
    assert (kept.currsize, kept.hits) == (2, 1)


def test_the_offset_comes_with_the_pull(rig: Any) -> None:
    rig.send("T")
    rig.pull("T", sysFlag="4", commitOffset="9")
    assert rig.offsets.query("CG", "T", 0) == -1
    rig.pull("T", sysFlag="5", commitOffset="9")
    assert rig.offsets.query("CG", "T", 0) == 9


def test_what_was_pulled_is_recorded_whether_something_was_found_or_not(rig: Any) -> None:
    rig.send("T")
    rig.send("T")
    assert rig.offsets.pull_offset("CG", "T", 0) == -1
    rig.pull("T", maxMsgNums="1")
    assert rig.offsets.pull_offset("CG", "T", 0) == 1
    rig.pull("T", 1, subscription="C")
    assert rig.offsets.pull_offset("CG", "T", 0) == 2
    assert rig.offsets.pull_offset("CG", "T", 1) == -1
    rig.offsets.commit("CG", "T", 0, 5)
    assert rig.offsets.pull_offset("CG", "T", 0) == 5


class TestReset:
    """A group whose position was reset hears of it by its next pull."""

    @pytest.fixture
    def rig(self, rig: Any) -> Any:
        for number in range(4):
            rig.send("T", b"%d" % number)
        rig.offsets.commit("CG", "T", 0, 3)
        rig.offsets.reset("CG", "T", 0, 1)
        return rig

    def position(self, rig: Any) -> str:
        found = rig.ask(14, {"consumerGroup": "CG", "topic": "T", "queueId": "0"})
        return str(found.ext["offset"])

    def commit(self, rig: Any, offset: int) -> tuple[int, str | None]:
        ext = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": str(offset)}
        reply = rig.ask(15, ext)
        return reply.code, reply.remark

    def test_once(self, rig: Any) -> None:
        reply = rig.pull("T", 4, sysFlag="5", commitOffset="4")
        assert (reply.code, reply.remark, offsets(reply)) == (21, "OFFSET_RESET", ("1", "0", "4"))
        assert self.position(rig) == "1"
        assert bodies(rig.pull("T", 1)) == [b"1", b"2", b"3"]

    def test_what_is_committed_before_does_not_count(self, rig: Any) -> None:
        assert self.commit(rig, 4) == (0, "Offset has been previously reset")
        assert self.position(rig) == "1"
        rig.pull("T", 4)
        assert self.commit(rig, 2) == (0, None)
        assert self.position(rig) == "2"

    def test_other_groups_and_queues_do_not_notice(self, rig: Any) -> None:
        rig.send("T", b"elsewhere", e="1")
        assert bodies(rig.pull("T", 0, queueId="1")) == [b"elsewhere"]
        assert len(bodies(rig.pull("T", 0, consumerGroup="other"))) == 4
        assert rig.pull("T", 4).code == 21

    def test_a_pull_that_waits_is_answered(self, rig: Any) -> None:
        rig.offsets.take_reset("CG", "T", 0)
        consumer, other = rig.make_peer(2), rig.make_peer(3)
        TestLongPolling().park(rig, consumer, 4)
        TestLongPolling().park(rig, other, 4, consumerGroup="other")
        rig.offsets.reset("CG", "T", 0, 2)
        rig.long_polling.wake("T", 0, "CG")
        rig.loop.turn()
        (reply,) = consumer.take()
        assert (reply.code, offsets(reply)) == (21, ("2", "0", "4"))
        assert (other.take(), len(rig.long_polling)) == ([], 1)

    def test_whoever_gave_the_queue_away_does_not_take_the_word_from_the_new_owner(
        self, rig: Any
    ) -> None:
        former, owner = rig.make_peer(2), rig.make_peer(3)
        for consumer in (former, owner):
            rig.offsets.take_reset("CG", "T", 0)
            TestLongPolling().park(rig, consumer, 4)
        rig.offsets.reset("CG", "T", 0, 2)
        rig.long_polling.wake("T", 0, "CG")
        rig.loop.turn()
        for consumer in (former, owner):
            (reply,) = consumer.take()
            assert (reply.code, offsets(reply)) == (21, ("2", "0", "4"))
        TestLongPolling().park(rig, owner, 4)
        assert not rig.offsets.is_reset("CG", "T", 0)

    def test_a_reader_that_is_there_already_is_told(self, rig: Any) -> None:
        """It may hold messages that it is not to consume any more."""
        assert rig.pull("T", 1).code == 21
        assert bodies(rig.pull("T", 1)) == [b"1", b"2", b"3"]

    def test_a_reader_that_goes_its_own_way_is_told_once(self, rig: Any) -> None:
        assert rig.pull("T", 3).code == 21
        assert bodies(rig.pull("T", 3)) == [b"3"]
        assert not rig.offsets.is_reset("CG", "T", 0)


class TestRefusals:
    def refused(self, reply: Any) -> tuple[int, str]:
        assert reply.ext == {}
        return reply.code, reply.remark

    def test_in_order(self, make_rig: MakeRig) -> None:
        rig = make_rig(autoCreateSubscriptionGroup="false", brokerPermission="2")
        assert self.refused(rig.pull())[0] == 16
        rig.live.update({"brokerPermission": "6"})
        assert self.refused(rig.pull())[0] == 26
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", consume_enable=False))
        assert self.refused(rig.pull()) == (16, "subscription group no permission, CG")
        rig.groups.put(SubscriptionGroupConfig(group_name="CG"))
        assert self.refused(rig.pull()) == (17, "topic[T] not exist, apply first please!")
        rig.topics.put(TopicConfig(topic_name="T", perm=2))
        assert self.refused(rig.pull()) == (16, "the topic[T] pulling message is forbidden")
        rig.topics.put(TopicConfig(topic_name="T", read_queue_nums=2))
        code, remark = self.refused(rig.pull(queueId="2"))
        assert code == 1
        assert remark.startswith("queueId[2] is illegal, topic:[T] topicConfig.readQueueNums:[2]")
        assert self.refused(rig.pull(queueId="-1"))[0] == 1
        assert rig.pull().code == 19

    def test_expressions(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        assert self.refused(rig.pull(subscription="||"))[0] == 23

    def test_of_what_heartbeats_say(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        reply = rig.pull(sysFlag=HEARD)
        assert self.refused(reply) == (24, "the consumer's group info not exist")
        rig.beat(rig.peer, "one", "CG", U="*")
        reply = rig.pull(sysFlag=HEARD)
        assert self.refused(reply) == (24, "the consumer's subscription not exist")
        rig.beat(rig.peer, "one", "CG", T="*")
        reply = rig.pull(sysFlag=HEARD, subVersion="6")
        assert self.refused(reply) == (25, "the consumer's subscription not latest")
        assert rig.pull(sysFlag=HEARD, subVersion="5").code == 19

    def test_of_broadcasting(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", consume_broadcast_enable=False))
        rig.beat(rig.peer, "one", "CG", T="*")
        rig.clients.consumers["CG"].message_model = "BROADCASTING"
        assert self.refused(rig.pull(sysFlag=HEARD))[0] == 16

    def test_of_bad_fields(self, rig: Any) -> None:
        assert rig.ask(11, {"topic": "T"}).code == 1
        assert rig.pull(queueOffset="x").code == 1
        assert rig.pull(consumerGroup="../x").code == 1

    def test_of_a_closed_store(self, rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def closed(*args: object, **named: object) -> GetResult:
            raise StoreClosed("the store is closed")

        rig.send("T")
        monkeypatch.setattr(rig.store, "get", closed)
        assert rig.pull().remark == "store getMessage return null: the store is closed"


class TestLongPolling:
    def park(self, rig: Any, peer: Any, offset: int = 1, **fields: str) -> None:
        ext = {
            "consumerGroup": "CG",
            "topic": "T",
            "queueId": "0",
            "queueOffset": str(offset),
            "maxMsgNums": "32",
            "sysFlag": SUSPEND,
            "suspendTimeoutMillis": "15000",
            "subscription": "*",
            **fields,
        }
        assert rig.dispatch(Command(code=11, ext=ext, opaque=8), peer) == []

    def test_a_pull_at_the_end_is_answered_by_the_next_message(self, rig: Any) -> None:
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer)
        rig.send("T", b"other queue", e="1")
        rig.loop.turn()
        assert consumer.take() == []
        rig.send("T", b"1")
        rig.send("T", b"2")
        rig.loop.turn()
        (reply,) = consumer.take()
        assert (reply.code, reply.opaque, bodies(reply)) == (0, 8, [b"1", b"2"])
        assert len(rig.long_polling) == 0

    def test_a_pull_may_wait_before_the_first_message(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        consumer = rig.make_peer(2)
        self.park(rig, consumer, 0)
        rig.send("T", b"0")
        rig.loop.turn()
        assert bodies(consumer.take()[0]) == [b"0"]

    def test_its_time_limit_answers_with_nothing_new(self, rig: Any) -> None:
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer)
        rig.advance(15)
        assert consumer.take() == []
        rig.advance(TICK_SECONDS)
        (reply,) = consumer.take()
        assert (reply.code, reply.remark, offsets(reply)) == (
            19,
            "OFFSET_OVERFLOW_ONE",
            ("1", "0", "1"),
        )

    def test_messages_of_other_tags_move_it_on_at_its_time_limit(self, rig: Any) -> None:
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer, subscription="B")
        rig.send("T", b"1", i="TAGS\x01A")
        rig.loop.turn()
        assert consumer.take() == []
        rig.advance(15 + TICK_SECONDS)
        (reply,) = consumer.take()
        assert (reply.code, offsets(reply)[0]) == (20, "2")

    def test_the_offset_is_committed_once_by_the_first_run(self, rig: Any) -> None:
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer, sysFlag="7", commitOffset="1")
        assert rig.offsets.query("CG", "T", 0) == 1
        rig.offsets.commit("CG", "T", 0, 0)
        rig.send("T", b"1")
        rig.loop.turn()
        assert rig.offsets.query("CG", "T", 0) == 0

    def test_what_changed_while_it_waited_is_noticed(self, rig: Any) -> None:
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer)
        rig.topics.remove("T")
        rig.advance(15 + TICK_SECONDS)
        assert consumer.take()[0].code == 17

    def test_short_polling(self, make_rig: MakeRig) -> None:
        rig = make_rig(longPollingEnable="false", shortPollingTimeMills="1000")
        consumer = rig.make_peer(2)
        rig.send("T", b"0")
        self.park(rig, consumer)
        rig.advance(1 + TICK_SECONDS)
        assert consumer.take()[0].code == 19

    def test_without_room_it_is_answered_at_once(self, make_rig: MakeRig) -> None:
        rig = make_rig(pullThreadPoolQueueCapacity="1")
        rig.send("T", b"0")
        self.park(rig, rig.make_peer(2))
        assert rig.pull("T", 1, sysFlag=SUSPEND).code == 19

    def test_a_hole_in_the_queue_is_not_waited_for(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.send("T")
        hole = GetResult(GetStatus.OFFSET_FOUND_NULL, 100, 0, 200)
        monkeypatch.setattr(rig.store, "get", lambda *args, **named: hole)
        reply = rig.pull("T", 1, sysFlag=SUSPEND)
        assert (reply.code, reply.ext["nextBeginOffset"]) == (19, "100")


def test_a_slow_reader_is_sent_to_a_slave(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(slaveReadEnable="true")
    rig.send("T")
    far_behind = GetResult(GetStatus.NO_MATCHED_MESSAGE, 1, 0, 9, suggest_slave=True)
    monkeypatch.setattr(rig.store, "get", lambda *args, **named: far_behind)
    assert rig.pull().ext["suggestWhichBrokerId"] == "1"
    rig.live.update({"slaveReadEnable": "false"})
    assert rig.pull().ext["suggestWhichBrokerId"] == "0"
