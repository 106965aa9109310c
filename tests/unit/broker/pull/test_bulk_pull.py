"""Bulk pulls against a real store: what comes, how much of it, and what is refused."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import StoreClosed
from cometmq.broker.pull import bulk_pull_processor as bulk_pull
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.record import decode_records
from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import Command

MakeRig = Callable[..., Any]
BULK_PULL = 29001


def ask(rig: Any, topic: str = "T", offset: int = 0, **fields: str) -> Command:
    ext = {
        "consumerGroup": "CG",
        "topic": topic,
        "queueId": "0",
        "offset": str(offset),
        "maxBytes": str(4 << 20),
        "maxCount": "10000",
        "subscription": "*",
    } | fields
    reply: Command = rig.ask(BULK_PULL, ext)
    return reply


def bodies(reply: Command) -> list[bytes]:
    """Of the records, after a look at whether the sizes are theirs."""
    assert reply.ext is not None
    count = int(reply.ext["count"])
    data = b"".join(bytes(part) for part in reply.body_parts or ())
    records_end = len(data) - 4 * count
    records = decode_records(data[:records_end])
    assert len(records) == count
    sizes = struct.unpack(f">{count}i", data[records_end:])
    at = 0
    for size in sizes:
        assert int.from_bytes(data[at : at + 4], "big") == size
        at += size
    assert at == records_end
    return [record.body for record in records]


def next_offset(reply: Command) -> int:
    assert reply.ext is not None
    return int(reply.ext["nextBeginOffset"])


def test_a_range_comes_as_it_is_stored_with_the_sizes_behind(rig: Any) -> None:
    for number in range(50):
        rig.send("T", b"%d" % number)
    reply = ask(rig, offset=10, endOffset="40")
    assert (reply.code, reply.remark) == (0, "FOUND")
    assert reply.ext == {
        "nextBeginOffset": "40",
        "minOffset": "0",
        "maxOffset": "50",
        "count": "30",
        "suggestWhichBrokerId": "0",
    }
    assert bodies(reply) == [b"%d" % number for number in range(10, 40)]
    assert reply.body_parts is not None
    assert len(reply.body_parts) == 2, "adjacent records are one view of the log, then the sizes"
    assert isinstance(reply.body_parts[0], memoryview)
    tally = rig.stats.group_get("T", "CG")
    assert (tally.count, tally.size_bytes) == (30, len(reply.body_parts[0]))


def test_records_that_lie_apart_come_one_behind_the_other(rig: Any) -> None:
    for number in range(20):
        rig.send("T" if number % 3 else "U", b"%d" % number)
    assert bodies(ask(rig)) == [b"%d" % number for number in range(20) if number % 3]


def test_a_range_may_span_log_files(make_rig: MakeRig) -> None:
    rig = make_rig(mappedFileSizeCommitLog="4096")
    for number in range(60):
        rig.send("T", b"%d" % number)
    assert rig.store.max_physical > 4096
    reply = ask(rig)
    assert bodies(reply) == [b"%d" % number for number in range(60)]


def test_limits_count_from_the_second_record_on(rig: Any) -> None:
    for _ in range(10):
        rig.send("T", b"x" * 100)
    size = len(bytes((ask(rig, maxCount="1").body_parts or [b""])[0]))
    assert len(bodies(ask(rig, maxCount="3"))) == 3
    assert len(bodies(ask(rig, maxBytes=str(3 * size)))) == 3
    assert len(bodies(ask(rig, maxBytes=str(3 * size - 1)))) == 2
    small = ask(rig, maxBytes="1")
    assert (len(bodies(small)), next_offset(small)) == (1, 1)
    assert len(bodies(ask(rig, maxBytes="-1", maxCount="0"))) == 1


def test_the_broker_has_limits_of_its_own(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(10):
        rig.send("T")
    monkeypatch.setattr(bulk_pull, "REPLY_COUNT_MAX", 4)
    assert len(bodies(ask(rig, maxCount="2147483647"))) == 4
    monkeypatch.setattr(bulk_pull, "REPLY_BYTES_MAX", 400)
    reply = ask(rig, maxBytes="2147483647")
    assert reply.body_parts is not None
    assert len(bodies(reply)) < 4
    assert len(reply.body_parts[0]) <= 400


def test_tags_are_chosen_at_the_broker(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        rig.send("T", b"%d" % number, i=f"TAGS\x01{'AB'[number % 2]}")
    reply = ask(rig, subscription="A || C")
    assert (bodies(reply), next_offset(reply)) == ([b"%d" % n for n in range(0, 12, 2)], 12)
    reply = ask(rig, subscription="A", maxCount="2")
    assert (bodies(reply), next_offset(reply)) == ([b"0", b"2"], 3), "where the limit is met"
    nothing = ask(rig, subscription="C")
    assert (nothing.code, nothing.remark) == (20, "NO_MATCHED_MESSAGE")
    assert (next_offset(nothing), nothing.body_parts) == (12, None)
    monkeypatch.setattr(bulk_pull, "TAG_SCAN_COUNT", 5)
    assert next_offset(ask(rig, subscription="C")) == 5, "so many entries in one go"


def test_an_expression_is_evaluated_at_the_broker(rig: Any) -> None:
    for number in range(10):
        rig.send("T", b"%d" % number, i=f"a\x01{number}")
    reply = ask(rig, subscription="a > 6", expressionType="SQL92")
    assert (bodies(reply), next_offset(reply)) == ([b"7", b"8", b"9"], 10)


@pytest.mark.parametrize(
    ("offset", "code", "status", "goes_on_at"),
    [
        (2, 19, "OFFSET_OVERFLOW_ONE", 2),
        (3, 21, "OFFSET_OVERFLOW_BADLY", 2),
        (-1, 21, "OFFSET_TOO_SMALL", 0),
    ],
)
def test_offsets_beyond_the_queue(
    rig: Any, offset: int, code: int, status: str, goes_on_at: int
) -> None:
    rig.send("T")
    rig.send("T")
    reply = ask(rig, offset=offset)
    assert (reply.code, reply.remark, next_offset(reply)) == (code, status, goes_on_at)
    assert (bodies(reply), reply.body_parts) == ([], None)


def test_an_empty_queue_is_fine_for_a_reader_at_its_start_only(rig: Any) -> None:
    rig.topics.put(TopicConfig(topic_name="T"))
    assert ask(rig, offset=0).code == 19
    assert ask(rig, offset=5).code == 21


class TestRefusals:
    def test_what_a_pull_may_not_read_it_may_not_either(self, make_rig: MakeRig) -> None:
        rig = make_rig(autoCreateSubscriptionGroup="false", brokerPermission="2")
        assert ask(rig).code == 16
        rig.live.update({"brokerPermission": "6"})
        assert ask(rig).code == 26
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", consume_enable=False))
        assert (ask(rig).code, ask(rig).remark) == (16, "subscription group no permission, CG")
        rig.groups.put(SubscriptionGroupConfig(group_name="CG"))
        assert ask(rig).code == 17
        rig.topics.put(TopicConfig(topic_name="T", perm=2))
        assert ask(rig).code == 16
        rig.topics.put(TopicConfig(topic_name="T", read_queue_nums=2))
        assert ask(rig, queueId="2").code == 1
        assert ask(rig).code == 19

    def test_expressions_and_ranges(self, rig: Any) -> None:
        rig.send("T")
        assert ask(rig, subscription="||").code == 23
        assert ask(rig, subscription="a >", expressionType="SQL92").code == 23
        assert ask(rig, subscription="f", expressionType="PYTHON").code in (1, 23)
        reply = ask(rig, offset=5, endOffset="5")
        assert (reply.code, reply.remark) == (29, "endOffset 5 must be greater than offset 5")

    def test_a_store_that_cannot_be_read(self, rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        rig.send("T")

        def closed(*args: object, **limits: object) -> None:
            raise StoreClosed("the store is closed")

        monkeypatch.setattr(rig.store, "get_bulk", closed)
        reply = ask(rig)
        assert (reply.code, reply.remark) == (
            1,
            "store getMessage return null: the store is closed",
        )


def test_sizes_come_without_the_records_when_only_they_are_wanted(rig: Any) -> None:
    for number in range(5):
        rig.send("T", b"x" * number)
    whole = b"".join(bytes(part) for part in ask(rig).body_parts or ())
    reply = ask(rig, sizesOnly="true")
    assert (reply.code, next_offset(reply)) == (0, 5)
    assert b"".join(bytes(part) for part in reply.body_parts or ()) == whole[-4 * 5 :]
