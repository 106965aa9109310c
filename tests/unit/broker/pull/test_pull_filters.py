"""Pulls by SQL92 expressions: in the request, and from heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.pull.long_polling import TICK_SECONDS
from cometmq.model.messages.record import decode_records
from cometmq.model.topic import TopicConfig

MakeRig = Callable[..., Any]
SQL = "SQL92"


def send(rig: Any, body: str, topic: str = "T", **properties: str) -> None:
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    assert rig.send(topic, body.encode(), i=text).code == 0


def bodies(reply: Any) -> list[str]:
    data = b"".join(bytes(part) for part in reply.body_parts or ())
    return [record.body.decode() for record in decode_records(data)]


def beat(
    rig: Any, expression: str, *, version: int = 5, topic: str = "T", group: str = "CG"
) -> None:
    wish = {
        "topic": topic,
        "subString": expression,
        "subVersion": version,
        "expressionType": SQL,
    }
    consumer = {"groupName": group, "subscriptionDataSet": [wish]}
    assert rig.ask(34, None, {"clientID": "one", "consumerDataSet": [consumer]}).code == 0


def pull_heard(rig: Any, offset: int = 0, version: int = 5, **fields: str) -> Any:
    return rig.pull("T", offset, sysFlag="0", subVersion=str(version), **fields)


class TestInTheRequest:
    def pull(self, rig: Any, expression: str, offset: int = 0, **fields: str) -> Any:
        return rig.pull("T", offset, subscription=expression, expressionType=SQL, **fields)

    def test_only_what_matches_is_shipped(self, rig: Any) -> None:
        for price in ("5", "50", "x", "500"):
            send(rig, price, price=price)
        send(rig, "without")
        reply = self.pull(rig, "price > 10")
        assert (reply.code, reply.remark, bodies(reply)) == (0, "FOUND", ["50", "500"])
        assert reply.ext["nextBeginOffset"] == "5"

    def test_the_reader_gets_past_what_does_not_match(self, rig: Any) -> None:
        for _ in range(3):
            send(rig, "no", price="1")
        reply = self.pull(rig, "price > 10")
        assert (reply.code, reply.remark) == (20, "NO_MATCHED_MESSAGE")
        assert reply.ext["nextBeginOffset"] == "3"

    def test_one_pull_looks_at_a_bounded_part_of_the_queue(self, make_rig: MakeRig) -> None:
        rig = make_rig(mappedFileSizeConsumeQueue="40000", mappedFileSizeCommitLog="1048576")
        for _ in range(850):
            send(rig, "n", p="1")
        assert self.pull(rig, "p = 2").ext["nextBeginOffset"] == "800"
        # The longer an expression, the shorter the part.
        long = " OR ".join(f"p = {number}" for number in range(2, 1200))
        assert 10 < int(self.pull(rig, long).ext["nextBeginOffset"]) < 30

    @pytest.mark.parametrize("expression", ["a >", "", "a = NULL", "a > 'x'"])
    def test_a_wrong_expression_is_refused(self, rig: Any, expression: str) -> None:
        send(rig, "x")
        reply = self.pull(rig, expression)
        assert reply.code == 23
        assert reply.remark.startswith("parse the consumer's subscription failed: at character ")

    def test_an_unknown_type_is_refused(self, rig: Any) -> None:
        send(rig, "x")
        reply = rig.pull("T", subscription="a > 1", expressionType="XPATH")
        assert (reply.code, "found 'XPATH'" in reply.remark) == (23, True)

    def test_can_be_switched_off_and_on(self, make_rig: MakeRig) -> None:
        rig = make_rig(enablePropertyFilter="false")
        send(rig, "x", a="5")
        reply = self.pull(rig, "a > 1")
        assert (reply.code, reply.remark) == (
            1,
            "The broker does not support consumer to filter message by SQL92",
        )
        rig.live.update({"enablePropertyFilter": "true"})
        assert bodies(self.pull(rig, "a > 1")) == ["x"]


class TestFromHeartbeats:
    def test_only_what_matches_is_shipped(self, rig: Any) -> None:
        send(rig, "no", a="1")
        send(rig, "yes", a="9")
        beat(rig, "a > 5")
        assert bodies(pull_heard(rig)) == ["yes"]

    def test_versions(self, rig: Any) -> None:
        send(rig, "x", a="9")
        assert pull_heard(rig).code == 24
        beat(rig, "a > 5", version=5)
        assert pull_heard(rig, version=6).code == 25
        assert pull_heard(rig, version=5).code == 0
        beat(rig, "a > 10", version=6)
        assert pull_heard(rig, version=6).code == 20
        # An old heartbeat that comes late changes nothing.
        beat(rig, "a > 5", version=5)
        assert pull_heard(rig, version=6).code == 20

    def test_a_wrong_expression_is_told_to_the_pulls(self, rig: Any) -> None:
        send(rig, "x", a="9")
        beat(rig, "a >", version=5)
        assert pull_heard(rig).code == 27
        beat(rig, "a > 5", version=6)
        assert pull_heard(rig, version=6).code == 0
        beat(rig, "a >", version=7)
        assert pull_heard(rig, version=7).code == 28

    def test_can_be_switched_off(self, make_rig: MakeRig) -> None:
        rig = make_rig(enablePropertyFilter="false")
        send(rig, "x", a="9")
        beat(rig, "a > 5")
        assert pull_heard(rig).code == 1

    def test_groups_have_filters_of_their_own(self, rig: Any) -> None:
        send(rig, "x", a="9")
        beat(rig, "a > 5")
        beat(rig, "a < 5", group="OTHER")
        assert pull_heard(rig).code == 0
        assert pull_heard(rig, consumerGroup="OTHER").code == 20


class TestWaiting:
    def test_a_pull_is_woken_by_a_message_it_wants(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        beat(rig, "a > 5")
        command = {"sysFlag": "2", "subVersion": "5"}
        with pytest.raises(AssertionError, match="no answer"):
            rig.pull("T", **command)
        for value in ("1", "x", "5"):
            send(rig, value, a=value)
        assert rig.long_polling.is_waiting_for(["T"], [0])
        send(rig, "6", a="6")
        assert not rig.long_polling.is_waiting_for(["T"], [0])
        rig.loop.turn()
        assert len(rig.long_polling) == 0
        (reply,) = rig.peer.take()
        assert bodies(reply) == ["6"]

    def test_a_pull_that_waited_in_vain_goes_on_behind_what_it_did_not_want(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        beat(rig, "a > 5")
        with pytest.raises(AssertionError, match="no answer"):
            rig.pull("T", sysFlag="2", subVersion="5", suspendTimeoutMillis="1000")
        send(rig, "no", a="1")
        rig.advance(1 + 2 * TICK_SECONDS)
        (reply,) = rig.peer.take()
        assert (reply.code, reply.ext["nextBeginOffset"]) == (20, "1")

    def test_properties_that_are_no_text_wake_nobody(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        beat(rig, "a IS NULL")
        with pytest.raises(AssertionError, match="no answer"):
            rig.pull("T", sysFlag="2", subVersion="5")
        rig.long_polling.arrived("T", 0, 1, 0, 0, b"\xff")
        assert len(rig.long_polling) == 1


class TestRetryTopics:
    def prepare(self, rig: Any) -> None:
        beat(rig, "a > 5")
        rig.topics.put(TopicConfig(topic_name="%RETRY%CG", read_queue_nums=1, write_queue_nums=1))
        send(rig, "no", "%RETRY%CG", RETRY_TOPIC="T", a="1")
        send(rig, "yes", "%RETRY%CG", RETRY_TOPIC="T", a="9")
        send(rig, "other", "%RETRY%CG", RETRY_TOPIC="U", a="1")

    def test_are_not_filtered(self, rig: Any) -> None:
        self.prepare(rig)
        assert bodies(rig.pull("%RETRY%CG")) == ["no", "yes", "other"]

    def test_are_filtered_on_demand_by_the_topic_of_the_message(self, make_rig: MakeRig) -> None:
        rig = make_rig(filterSupportRetry="true")
        self.prepare(rig)
        assert bodies(rig.pull("%RETRY%CG")) == ["yes", "other"]
        rig.topics.put(TopicConfig(topic_name="%RETRY%X", read_queue_nums=1, write_queue_nums=1))
        send(rig, "x", "%RETRY%X", RETRY_TOPIC="T", a="1")
        assert bodies(rig.pull("%RETRY%X", consumerGroup="X")) == ["x"]


@pytest.mark.parametrize(
    ("kind", "text", "code", "remark"),
    [
        ("TAG", "a || b", 0, None),
        (SQL, "a > 1", 0, None),
        (SQL, "a >", 23, "at character 4: expected a value, a property or '('"),
        ("XPATH", "a", 23, "expected type TAG or SQL92, found 'XPATH'"),
    ],
)
def test_a_client_may_ask_whether_its_filter_will_do(
    rig: Any, kind: str, text: str, code: int, remark: str | None
) -> None:
    wish = {"topic": "T", "subString": text, "expressionType": kind}
    reply = rig.ask(46, None, {"clientId": "one", "group": "CG", "subscriptionData": wish})
    assert reply.code == code
    assert remark is None or reply.remark.startswith(remark)


def test_a_client_learns_that_filters_are_off(make_rig: MakeRig) -> None:
    rig = make_rig(enablePropertyFilter="false")
    wish = {"topic": "T", "subString": "a > 1", "expressionType": SQL}
    reply = rig.ask(46, None, {"clientId": "one", "group": "CG", "subscriptionData": wish})
    assert (reply.code, reply.remark) == (
        1,
        "The broker does not support consumer to filter message by SQL92",
    )


def test_a_filter_is_dead_when_its_last_consumer_is_gone(rig: Any) -> None:
    beat(rig, "a > 5")
    filter_data = rig.filters.get("T", "CG")
    assert not filter_data.is_dead
    rig.ask(35, {"clientID": "one", "consumerGroup": "CG"})
    assert filter_data.is_dead
    beat(rig, "a > 5")
    assert not filter_data.is_dead
    rig.ports.closed(rig.peer)
    assert filter_data.is_dead
