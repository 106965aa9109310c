"""Offsets, lag, time spans, queue entries and the figures of the broker."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from cometmq.broker.admin.consume_stats import time_text
from cometmq.broker.admin.runtime_info import duration_text, size_text
from cometmq.model.subscription import SubscriptionData
from cometmq.store.queues.extended_queue import Unit


def queue(queue_id: int, topic: str = "t") -> str:
    return json.dumps(
        {"brokerName": "b49", "queueId": queue_id, "topic": topic}, separators=(",", ":")
    )


def test_topic_stats_cover_read_and_write_queues(rig: Any) -> None:
    rig.topic("t", 2)
    rig.topics.get("t").read_queue_nums = 3
    rig.add("t", 0, 100, 200)
    table = rig.json(202, {"topic": "t"})["offsetTable"]
    assert set(table) == {queue(0), queue(1), queue(2)}
    assert table[queue(0)] == {"minOffset": 0, "maxOffset": 2, "lastUpdateTimestamp": 200}
    assert table[queue(2)] == {"minOffset": 0, "maxOffset": 0, "lastUpdateTimestamp": 0}
    reply = rig.ask(202, {"topic": "u"})
    assert (reply.code, reply.remark) == (17, "topic[u] not exist")


def test_consume_stats_of_one_group(rig: Any) -> None:
    rig.topic("t", 2)
    rig.topic("u", 1)
    rig.add("t", 0, 100, 200, 300)
    rig.offsets.commit("g", "t", 0, 2)
    rig.offsets.commit("g", "u", 0, 0)
    rig.offsets.commit("g", "gone", 0, 0)
    rig.stats.group_get("t", "g").count = 120
    table = rig.json(208, {"consumerGroup": "g"})
    assert table["consumeTps"] == 2.0
    assert table["offsetTable"][queue(0)] == {
        "brokerOffset": 3,
        "consumerOffset": 2,
        "pullOffset": 2,
        "lastTimestamp": 200,
    }
    assert set(table["offsetTable"]) == {queue(0), queue(1), queue(0, "u")}
    of_one = rig.json(208, {"consumerGroup": "g", "topic": "u"})
    assert set(of_one["offsetTable"]) == {queue(0, "u")}
    of_list = rig.json(208, {"consumerGroup": "g", "topic": "u", "topicList": "t;"})
    assert set(of_list["offsetTable"]) == {queue(0), queue(1)}
    assert rig.json(208, {"consumerGroup": "nobody"}) == {"consumeTps": 0.0, "offsetTable": {}}


def test_a_topic_that_an_online_group_dropped_is_left_out(rig: Any) -> None:
    rig.topic("t", 1)
    rig.topic("u", 1)
    rig.offsets.commit("g", "t", 0, 0)
    rig.offsets.commit("g", "u", 0, 0)
    rig.consumer("g", "c1", "u")
    assert set(rig.json(208, {"consumerGroup": "g"})["offsetTable"]) == {queue(0, "u")}


def test_consume_stats_of_all_groups(rig: Any) -> None:
    rig.topic("t", 1)
    rig.topic("ordered", 1, order=True)
    for topic in ("t", "ordered"):
        rig.add(topic, 0, 1, 2, 3)
        rig.offsets.commit("g", topic, 0, 1)
    rig.ask(225, None, {"groupConfigList": [{"groupName": "g"}, {"groupName": "idle"}]})
    everything = rig.json(317, {"isOrder": "false"})
    assert everything["totalDiff"] == 4
    assert everything["brokerAddr"] == "127.0.0.1:32010"
    by_group = {
        name: stats for entry in everything["consumeStatsList"] for name, stats in entry.items()
    }
    assert {name: len(stats) for name, stats in by_group.items()} == {"g": 2, "idle": 0}
    assert rig.json(317, {"isOrder": "true"})["totalDiff"] == 2


def test_time_span_tells_how_late_a_group_is(rig: Any) -> None:
    rig.topic("t", 3)
    now = rig.clock.wall_ms()
    rig.add("t", 0, now - 500)
    rig.add("t", 1, now - 400)
    rig.add("t", 0, now - 300)
    rig.offsets.commit("g", "t", 0, 1)
    rig.offsets.commit("g", "t", 1, 1)
    first, second, empty = rig.json(303, {"topic": "t", "group": "g"})["consumeTimeSpanSet"]
    assert (first["minTimeStamp"], first["maxTimeStamp"]) == (now - 500, now - 300)
    assert (first["consumeTimeStamp"], first["delayTime"]) == (now - 500, 300)
    assert first["maxTimeStampStr"] == time_text(now - 300)
    assert second["delayTime"] == 0
    assert empty["delayTime"] == 0


def test_times_are_printed_as_java_prints_them() -> None:
    assert time_text(1794780179015).endswith(":59:015")
    assert len(time_text(1794780179815)) == len("2026-11-15#22:02:59:815")


def test_offsets_for_a_slave(rig: Any) -> None:
    rig.offsets.commit("g", "t", 1, 5)
    assert bytes(rig.ask(43).body).endswith(b',"offsetTable":{"t@g":{1:5}}}')
    rig.schedule.resume()
    rig.delay(1, 1, 3)
    rig.advance(2)
    assert bytes(rig.ask(45).body) == b'{"offsetTable":{1:2,3:0}}'


def test_who_consumes_a_topic_and_what_a_group_consumes(rig: Any) -> None:
    rig.offsets.commit("committed", "t", 0, 1)
    rig.consumer("online", "c1", "t")
    assert rig.json(300, {"topic": "t"}) == {"groupList": ["committed", "online"]}
    assert rig.json(343, {"group": "committed"}) == {
        "topicList": ["t"],
        "brokerAddr": "127.0.0.1:32010",
    }
    wish = rig.json(345, {"group": "online", "topic": "t"})["subscriptionData"]
    assert (wish["topic"], wish["subString"]) == ("t", "*")
    assert rig.json(345, {"group": "nobody", "topic": "t"}) == {"group": "nobody", "topic": "t"}


def test_correction_offsets(rig: Any) -> None:
    for group, first, second in (("own", 5, 2), ("other", 3, 8), ("skipped", 1, 1)):
        rig.offsets.commit(group, "t", 0, first)
        rig.offsets.commit(group, "t", 1, second)
    ext = {"topic": "t", "compareGroup": "own", "filterGroups": "skipped,own"}
    assert rig.json(308, ext) == {"correctionOffsets": {"0": 3, "1": 2**63 - 1}}


def test_offsets_are_cloned(rig: Any) -> None:
    rig.topic("t")
    rig.offsets.commit("a", "t", 0, 3)
    rig.offsets.commit("a", "gone", 0, 3)
    assert rig.ask(314, {"srcGroup": "a", "destGroup": "b", "offline": "true"}).code == 0
    assert (rig.offsets.query("b", "t", 0), rig.offsets.topics_of("b")) == (3, {"t"})
    rig.consumer("a", "c1", "other")
    assert rig.ask(314, {"srcGroup": "a", "destGroup": "c", "topic": "t"}).code == 0
    assert rig.offsets.topics_of("c") == set()


def test_queue_entries(rig: Any) -> None:
    rig.topic("t")
    rig.add("t", 2, 1, 2, 3)
    ext = {"topic": "t", "queueId": "2", "index": "1", "count": "5"}
    assert rig.json(321, ext) == {
        "minQueueIndex": 0,
        "maxQueueIndex": 3,
        "queueData": [
            {"physicOffset": place, "physicSize": size, "tagsCode": 7, "eval": False}
            for place, size, _ in rig.store.entries("t", 2, 1, 2)
        ],
    }
    assert rig.json(321, {**ext, "consumerGroup": "g"})["filterData"] == "g@t is not online!"
    rig.consumer("g", "c1", "t")
    assert rig.json(321, {**ext, "consumerGroup": "g"})["subscriptionData"]["topic"] == "t"
    assert rig.json(321, {**ext, "count": "-5"})["queueData"] == []
    reply = rig.ask(321, {**ext, "index": "9"})
    assert (reply.code, reply.remark) == (0, "Index 9 of 2@t is not exist!")
    reply = rig.ask(321, {**ext, "queueId": "9"})
    assert (reply.code, reply.remark) == (1, "9@t is not exist!")


def test_units_of_queue_entries(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.topic("t")
    rig.add("t", 0, 1, 2, 3)
    wish = SubscriptionData(topic="t", sub_string="a > 5", sub_version=7, expression_type="SQL92")
    rig.consumer("g", "c1", "t")
    rig.filters.register("g", [wish])
    bits = rig.filters.bits_of("t", "a\x019\x02")
    later = rig.clock.wall_ms() + 1
    units = [None, Unit(7, later, bits), Unit(7, later, bytes(14))]
    monkeypatch.setattr(rig.store, "units", lambda *_: units)
    ext = {"topic": "t", "queueId": "0", "index": "0", "count": "3", "consumerGroup": "g"}
    # As long as the group wants everything by tag, every entry will do.
    assert [entry["eval"] for entry in rig.json(321, ext)["queueData"]] == [False, True, True]
    rig.clients.consumer_group("g").subscriptions["t"] = wish
    told = rig.json(321, ext)
    assert json.loads(told["filterData"])["expression"] == "a > 5"
    plain, wanted, unwanted = told["queueData"]
    ((_, size, _),) = rig.store.entries("t", 0, 0, 1)
    assert plain == {"physicOffset": 0, "physicSize": size, "tagsCode": 7, "eval": False}
    assert (wanted["eval"], unwanted["eval"]) == (True, False)
    assert json.loads(wanted["extendDataJson"]) == {
        "filterBitMap": b64encode(bits).decode(),
        "msgStoreTime": later,
        "size": 34,
        "tagsCode": 7,
    }
    lines = wanted["bitMap"].split("\n")
    assert [len(line) for line in lines] == [48, 64, 0]
    assert int(lines[0] + lines[1], 2) == int.from_bytes(bits, "little")


def test_stats_by_name_and_key(rig: Any) -> None:
    tally = rig.stats.topic_put("t")
    tally.add_all([100] * 60)
    rig.stats.sample()
    figures = rig.json(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "t"})
    assert figures["statsMinute"]["sum"] == 60
    assert figures["statsMinute"]["tps"] == 1.0
    figures = rig.json(315, {"statsName": "TOPIC_PUT_SIZE", "statsKey": "t"})
    assert figures["statsDay"] == {"sum": 6000, "tps": 6000 / 86400, "avgpt": 100.0}
    reply = rig.ask(315, {"statsName": "TOPIC_PUT_NUMS", "statsKey": "x"})
    assert (reply.code, reply.remark) == (1, "The stats <TOPIC_PUT_NUMS> <x> not exist")


def test_runtime_info_counts_what_happened(make_rig: Any) -> None:
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    tally = rig.stats.topic_put("t")
    tally.add_all([250] * 4)
    rig.stats.put_failed_count = 2
    rig.clock.advance(65)
    rig.flow.measured(17.0, 0)
    rig.add("t", 0, 1)
    rig.core.durability.when_safe(10, lambda _: None)
    table = rig.json(28)["table"]
    assert table["runtime"] == "[ 0 days, 0 hours, 1 minutes, 5 seconds ]"
    assert table["brokerVersionDesc"] == "V4_9_8"
    assert table["putMessageTimesTotal"] == table["msgPutTotalTodayNow"] == "4"
    assert table["putMessageAverageSize"] == "250.0"
    assert table["putMessageFailedTimes"] == "2"
    assert table["sendThreadPoolQueueSize"] == "1"
    assert table["pullThreadPoolQueueHeadWaitTimeMills"] == "17"
    assert table["remainHowManyDataToFlush"] == f"{rig.store.max_physical} B"
    assert table["commitLogDirCapacity"].startswith("Total : ")
    assert all(isinstance(value, str) for value in table.values())


def test_runtime_info_tells_how_far_delay_levels_are_delivered(rig: Any) -> None:
    rig.schedule.resume()
    rig.delay(1, 1, 2)
    rig.advance(1)
    table = rig.json(28)["table"]
    assert (table["scheduleMessageOffset_1"], table["scheduleMessageOffset_2"]) == ("2,2", "0,1")


def test_runtime_info_tells_whether_the_broker_has_the_duties_of_a_master(rig: Any) -> None:
    assert rig.json(28)["table"]["brokerActive"] == "true"
    rig.live.update({"brokerRole": "SLAVE", "brokerId": "1"})
    assert rig.json(28)["table"]["brokerActive"] == "false"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (252 << 30, "252.0 GiB"),
        (3 << 60, "3072.0 PiB"),
    ],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert size_text(size) == text


def test_durations_are_readable() -> None:
    assert duration_text(90_061_000) == "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"


def test_a_slave_leaves_the_cleaning_to_its_master(rig: Any) -> None:
    """mqadmin asks all brokers of a cluster and stops at the first that refuses, so a slave does not."""
    rig.add("its-entry-is-still-on-the-way", 0, 1)
    rig.live.update({"brokerRole": "SLAVE", "brokerId": "1"})
    assert rig.ask(316).code == 0
    assert "its-entry-is-still-on-the-way" in rig.store.topics()


def test_cleaning_keeps_what_exists_and_what_is_the_systems(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.topic("t")
    for topic in ("t", "unused", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer", "b49"):
        rig.add(topic, 0, 1)
    assert rig.ask(316).code == 0
    assert "unused" not in rig.store.topics()
    assert len(rig.store.topics()) == 4
    calls: list[str] = []
    for name in ("clean_expired_queues", "delete_expired_files"):
        monkeypatch.setattr(rig.store, name, lambda name=name: calls.append(name))
    assert rig.ask(306).code == 0
    assert rig.ask(329).code == 0
    assert calls == ["clean_expired_queues", "delete_expired_files"]
