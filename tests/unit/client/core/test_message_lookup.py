"""Telling offset ids from unique ids, and the wanted messages from those that merely share a hash."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.message_lookup import lookup, with_key, with_unique_id
from cometmq.model.address import pack_host
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.received_message import ReceivedMessage

# address, process id, instance hash, time, counter
UNIQUE = "0A000001004D00000005000003E80000"


def test_an_offset_id_says_where_to_look() -> None:
    for host in (pack_host("10.0.0.1", 10911), pack_host("fd00::1", 10911)):
        way = lookup(offset_id_text(host, 1234), None)
        assert way.place is not None
        assert (way.place.host, way.place.physical_offset, way.topic) == (host, 1234, None)


def test_a_unique_id_needs_a_topic() -> None:
    assert lookup(UNIQUE, "T").place is None
    with pytest.raises(UsageError, match=r"unique id.*give the topic"):
        lookup(UNIQUE, None)


def test_an_id_that_may_be_either_is_tried_as_both() -> None:
    either = "0A000001000012345678000003E80000"
    way = lookup(either, "T")
    assert way.place is not None
    assert way.topic == "T"


@pytest.mark.parametrize("text", ["", "order-17", "7F" * 15, "7F" * 17, "Z" * 32])
def test_what_is_no_id_gets_told_what_one_looks_like(text: str) -> None:
    with pytest.raises(UsageError, match="32 hex digits"):
        lookup(text, "T")


def message(key: str, stored_at: int, topic: str = "T", unique: str = "") -> ReceivedMessage:
    properties = {"KEYS": key}
    if unique:
        properties["UNIQ_KEY"] = unique
    return ReceivedMessage(topic=topic, body=b"x", properties=properties, store_timestamp=stored_at)


def test_only_messages_that_carry_the_key_count_newest_first() -> None:
    found = with_key(
        [
            message("a b", 1),
            message("other", 2),
            message("b", 3),
            message("b", 4, topic="U"),
            message("c", 2, unique="b"),
        ],
        "T",
        "b",
    )
    assert [each.store_timestamp for each in found] == [3, 2, 1]
    in_time = with_key([message("b", moment) for moment in range(6)], "T", "b", 2, 4)
    assert [each.store_timestamp for each in in_time] == [4, 3, 2]


def test_of_several_with_a_unique_id_the_first_stored_counts() -> None:
    stored = [
        message("k", 5, unique=UNIQUE),
        message("k", 3, unique=UNIQUE),
        message("k", 1, unique=UNIQUE, topic="U"),
        message("k", 2, unique="7F" * 16),
    ]
    found = with_unique_id(stored, "T", UNIQUE.lower())
    assert found is not None
    assert found.store_timestamp == 3
    assert with_unique_id(stored[2:], "T", UNIQUE) is None
