from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cometmq.model.messages.record import decode_record
from cometmq.model.topic import TopicConfig
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command

MakeRig = Callable[..., Any]


class TestHeartbeat:
    def test_the_group_its_retry_topic_and_its_members_come_into_being(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        assert rig.beat(one, "one", "CG", T="*").code == 0
        assert rig.topics.get("%RETRY%CG").read_queue_nums == 1
        assert rig.created == ["%RETRY%CG"]
        assert rig.groups.get("CG") is not None
        rig.beat(two, "two", "CG", T="*")
        reply = rig.ask(38, {"consumerGroup": "CG"})
        assert fastjson.loads(bytes(reply.body)) == {"consumerIdList": ["one", "two"]}
        assert list(rig.clients.producers) == ["CLIENT_INNER_PRODUCER"]

    def test_every_member_is_told_of_a_new_one_before_its_answer(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        rig.beat(one, "one", "CG", T="*")
        body = fastjson.dumps(
            {"clientID": "two", "consumerDataSet": [{"groupName": "CG", "subscriptionDataSet": []}]}
        )
        sent = rig.dispatch(Command(code=34, body=body, opaque=7), two)
        assert [command.code for command in sent] == [40, 0]
        assert [command.code for command in one.take()] == [40]

    def test_a_heartbeat_that_changes_nothing_is_quiet(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        rig.beat(one, "one", "CG", T="*")
        rig.beat(two, "two", "CG", T="*")
        one.take()
        rig.beat(two, "two", "CG", T="*")
        assert one.take() == []

    def test_without_auto_creation_a_group_is_known_but_not_created(
        self, make_rig: MakeRig
    ) -> None:
        rig = make_rig(autoCreateSubscriptionGroup="false")
        assert rig.beat(rig.peer, "one", "CG", T="*").code == 0
        assert rig.groups.get("CG") is None
        assert rig.created == []
        assert rig.ask(38, {"consumerGroup": "CG"}).code == 0

    @pytest.mark.parametrize("group", ["../x", "a b", "", "g" * 256])
    def test_an_illegal_group_refuses_the_whole_heartbeat(self, rig: Any, group: str) -> None:
        assert rig.beat(rig.peer, "one", group, T="*").code == 1
        assert not rig.clients.consumers
        assert not rig.clients.producers
        assert rig.created == []

    def test_a_client_cannot_be_in_any_number_of_groups(self, make_rig: Any) -> None:
        rig = make_rig(clientGroupsPerConnectionMax="3", clientMembershipsMax="5")
        groups = [{"groupName": f"g{number}"} for number in range(4)]
        refused = rig.ask(34, None, {"clientID": "one", "producerDataSet": groups})
        assert refused.code == 1
        assert "clientGroupsPerConnectionMax" in refused.remark
        first = {"clientID": "one", "producerDataSet": groups[:3]}
        assert rig.ask(34, None, first).code == 0
        assert rig.ask(34, None, first).code == 0, "it is in them already"
        other = rig.make_peer(2)
        refused = rig.ask(34, None, {"clientID": "two", "producerDataSet": groups[:3]}, peer=other)
        assert refused.code == 2
        assert "clientMembershipsMax" in refused.remark

    def test_a_group_that_cannot_be_created_leaves_the_others_of_the_heartbeat_alone(
        self, make_rig: Any
    ) -> None:
        rig = make_rig(autoCreatePerConnectionMax="1")
        consumers = [{"groupName": name, "subscriptionDataSet": []} for name in "abc"]
        beat = {"clientID": "one", "consumerDataSet": consumers, "producerDataSet": []}
        refused = rig.ask(34, None, {**beat, "producerDataSet": [{"groupName": "p"}]})
        assert "autoCreatePerConnectionMax" in refused.remark
        assert list(rig.clients.consumers) == ["a"]
        assert list(rig.clients.producers) == ["p"]
        assert rig.groups.get("b") is None
        assert rig.ask(34, None, {**beat, "consumerDataSet": consumers[:1]}).code == 0

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"clientID":1}', b"[" * 10_000])
    def test_a_body_that_is_no_heartbeat(self, rig: Any, body: bytes) -> None:
        assert rig.ask(34, None, body).code == 1


class TestLeaving:
    def test_unregister_tells_those_who_stay(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        rig.beat(one, "one", "CG", T="*")
        rig.beat(two, "two", "CG", T="*")
        one.take()
        reply = rig.ask(
            35, {"clientID": "two", "consumerGroup": "CG", "producerGroup": "PG"}, peer=two
        )
        assert (reply.code, reply.ext) == (0, {})
        assert [command.code for command in one.take()] == [40]
        assert rig.clients.consumers["CG"].client_ids() == ["one"]

    def test_a_closed_connection_tells_them_too(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        rig.beat(one, "one", "CG", T="*")
        rig.beat(two, "two", "CG", T="*")
        one.take()
        rig.ports.closed(two)
        assert [command.code for command in one.take()] == [40]

    def test_a_silent_client_is_cut_off(self, rig: Any) -> None:
        one, two = rig.make_peer(1), rig.make_peer(2)
        rig.beat(one, "one", "CG", T="*")
        rig.clock.advance(100)
        rig.beat(two, "two", "CG", T="*")
        two.take()
        rig.clock.advance(21)
        rig.rooms.clients.processor.expire(120)
        assert one.is_closed
        assert not two.is_closed
        assert [command.code for command in two.take()] == [40]

    def test_a_group_without_members_has_no_list(self, rig: Any) -> None:
        reply = rig.ask(38, {"consumerGroup": "CG"})
        assert (reply.code, reply.remark) == (1, "no consumer for this group, CG")


class TestOffsets:
    def commit(self, rig: Any, offset: int, **fields: str) -> Any:
        ext = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": str(offset)}
        return rig.ask(15, ext | fields)

    def query(self, rig: Any, **fields: str) -> Any:
        return rig.ask(14, {"consumerGroup": "CG", "topic": "T", "queueId": "0"} | fields)

    def test_what_was_committed_is_found_again(self, rig: Any) -> None:
        rig.topics.put(TopicConfig(topic_name="T"))
        reply = self.commit(rig, 5)
        assert (reply.code, reply.ext) == (0, {})
        assert self.query(rig).ext == {"offset": "5"}
        self.commit(rig, 3)
        assert self.query(rig).ext == {"offset": "3"}

    def test_a_new_group_starts_at_the_beginning_of_a_young_queue(self, rig: Any) -> None:
        assert self.query(rig).ext == {"offset": "0"}
        rig.send("T")
        assert self.query(rig).ext == {"offset": "0"}

    def test_an_old_queue_has_no_offset_for_a_new_group(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.send("T")
        monkeypatch.setattr(rig.store, "is_in_memory", lambda offset: False)
        reply = self.query(rig)
        assert reply.code == 22
        assert reply.remark.startswith("Not found, V3_0_6_SNAPSHOT")

    def test_a_queue_that_lost_its_beginning_neither(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rig.store, "min_offset", lambda topic, queue_id: 1)
        assert self.query(rig).code == 22

    def test_a_client_may_ask_for_no_zero(self, rig: Any) -> None:
        assert self.query(rig, setZeroIfNotFound="false").code == 22
        assert self.query(rig, setZeroIfNotFound="true").code == 0

    def test_names_and_numbers_out_of_nowhere_are_not_kept(self, rig: Any) -> None:
        assert self.commit(rig, 5).code == 17
        rig.topics.put(TopicConfig(topic_name="T"))
        assert self.commit(rig, -1).code == 1
        assert self.commit(rig, 5, queueId="-1").code == 1
        assert self.commit(rig, 5, queueId="70000").code == 1
        assert self.commit(rig, 5, consumerGroup="../x").code == 1
        assert self.commit(rig, 5, commitOffset="x").code == 1
        assert rig.offsets.topics_of("CG") == set()

    def test_without_auto_creation_the_group_must_exist(self, make_rig: MakeRig) -> None:
        rig = make_rig(autoCreateSubscriptionGroup="false")
        rig.topics.put(TopicConfig(topic_name="T"))
        assert self.commit(rig, 5).code == 26


class TestLocks:
    def ask(self, rig: Any, code: int, client_id: str) -> Any:
        queues = [{"brokerName": "b49", "queueId": number, "topic": "T"} for number in (0, 1)]
        body = {"clientId": client_id, "consumerGroup": "CG", "mqSet": queues}
        return rig.ask(code, None, body)

    def locked(self, rig: Any, client_id: str) -> int:
        return len(fastjson.loads(bytes(self.ask(rig, 41, client_id).body))["lockOKMQSet"])

    def test_one_client_at_a_time(self, rig: Any) -> None:
        assert self.locked(rig, "one") == 2
        assert self.locked(rig, "two") == 0
        assert self.ask(rig, 42, "one").code == 0
        assert self.locked(rig, "two") == 2

    def test_a_bad_body(self, rig: Any) -> None:
        assert rig.ask(41, None, b'{"mqSet":[{}]}').code == 1


class TestQueries:
    def by_key(self, rig: Any, key: str, **fields: str) -> Any:
        ext = {"topic": "T", "key": key, "maxNum": "10", "beginTimestamp": "0"}
        return rig.ask(12, ext | {"endTimestamp": "9223372036854775807"} | fields)

    def test_by_key_and_by_unique_key(self, rig: Any) -> None:
        rig.send("T", b"0", i="UNIQ_KEY\x01U0\x02KEYS\x01k")
        rig.send("T", b"1", i="UNIQ_KEY\x01U1\x02KEYS\x01k")
        reply = self.by_key(rig, "k")
        assert reply.code == 0
        assert [decode_record(part).body for part in reply.body_parts] == [b"1", b"0"]
        assert reply.ext["indexLastUpdateTimestamp"] == str(rig.clock.wall_ms())
        reply = self.by_key(rig, "U0", _UNIQUE_KEY_QUERY="true", maxNum="0")
        assert [decode_record(part).body for part in reply.body_parts] == [b"0"]
        assert len(self.by_key(rig, "k", maxNum="1").body_parts) == 1

    def test_nothing_found(self, rig: Any) -> None:
        for reply in (
            self.by_key(rig, "k"),
            self.by_key(rig, ""),
            self.by_key(rig, "k", maxNum="-1"),
        ):
            assert reply.code == 22
            assert reply.ext == {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}

    def test_by_position(self, rig: Any) -> None:
        rig.send("T", b"0")
        rig.send("T", b"1")
        second = rig.store.entries("T", 0, 1, 1)[0][0]
        reply = rig.ask(33, {"offset": str(second)})
        assert decode_record(reply.body_parts[0]).body == b"1"
        for nowhere in (second - 1, second + 1, 1_000_000, -1):
            reply = rig.ask(33, {"offset": str(nowhere)})
            assert (reply.code, reply.remark) == (
                1,
                f"can not find message by the offset, {nowhere}",
            )

    def test_offsets_of_a_queue(self, rig: Any) -> None:
        queue = {"topic": "T", "queueId": "0"}
        assert rig.ask(30, queue).ext == rig.ask(31, queue).ext == {"offset": "0"}
        assert rig.ask(32, queue).ext == {"timestamp": "-1"}
        first_ms = rig.clock.wall_ms()
        rig.send("T")
        rig.clock.advance(1)
        rig.send("T")
        assert rig.ask(30, queue).ext == {"offset": "2"}
        assert rig.ask(32, queue).ext == {"timestamp": str(first_ms)}

        def search(timestamp: int, boundary: str = "LOWER") -> str:
            ext = queue | {"timestamp": str(timestamp), "boundaryType": boundary}
            return str(rig.ask(29, ext).ext["offset"])

        assert search(first_ms + 1) == "1"
        assert search(first_ms + 2000) == "2"
        assert search(first_ms + 999, "upper") == "0"
