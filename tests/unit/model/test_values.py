"""Small values of the model: hashes, addresses, ids, names, properties, batches, subscriptions."""

from __future__ import annotations

import pytest

from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.model.address import (
    host_text,
    pack_host,
    split_address,
    split_addresses,
    unpack_host,
)
from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.flags import is_inherited, is_readable, is_writable, perm_text
from cometmq.model.java_hash import java_hash
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.batch import (
    BatchElement,
    TooManyElements,
    decode_batch,
    decode_columns,
    encode_batch,
)
from cometmq.model.messages.message_id import offset_id_text, parse_offset_id
from cometmq.model.messages.properties import (
    parse_properties,
    property_of,
    render_properties,
    split_keys,
)
from cometmq.model.names import (
    check_group,
    check_topic,
    group_fault,
    is_system_topic,
    topic_fault,
)
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.model.topic import DataVersion, TopicConfig


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("*", 42),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("TopicTest#KEY1", -1656969516),
        ("polygenelubricants", -2147483648),
        ("é", 233),
        ("😀", 0xD83D * 31 + 0xDE00),
    ],
)
def test_java_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_hosts_pack_and_unpack() -> None:
    assert pack_host("127.0.0.1", 10911) == bytes.fromhex("7f00000100002a9f")
    assert unpack_host(pack_host("10.1.2.3", 65535)) == ("10.1.2.3", 65535)
    assert len(pack_host("fe80::1%eth0", 1)) == 20
    assert host_text(pack_host("::1", 9)) == "[::1]:9"


def test_an_ipv4_peer_of_a_dual_socket_is_ipv4() -> None:
    assert pack_host("::ffff:10.0.0.1", 5) == pack_host("10.0.0.1", 5)


@pytest.mark.parametrize("text", ["", "host", "256.1.1.1", "1.2.3"])
def test_hosts_must_be_addresses(text: str) -> None:
    with pytest.raises(UsageError, match="IP address"):
        pack_host(text, 1)


def test_addresses_split() -> None:
    assert split_address(" localhost:9876 ") == ("localhost", 9876)
    assert split_address("[::1]:80") == ("::1", 80)
    assert split_addresses("a:1; b:2;;") == ["a:1", "b:2"]


@pytest.mark.parametrize("text", ["http://a:1", "a:1,b:2", "a:1 b:2", "a:1;b:2"])
def test_an_address_is_neither_a_url_nor_a_list(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected an address like 127\.0\.0\.1:9876"):
        split_address(text)


def test_who_separates_addresses_with_commas_is_told_the_sign() -> None:
    with pytest.raises(UsageError, match="several separated by ';'"):
        split_address("a:1,b:2")


@pytest.mark.parametrize("text", ["", "host", ":80", "host:", "host:x", "host:0", "host:65536"])
def test_bad_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected an address"):
        split_address(text)


@pytest.mark.parametrize("host", ["a\0b", "127.0.0.1\0", "a..b", "x" * 64, "\udc80"])
def test_what_can_be_no_name_of_a_host_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="expected an address"):
        split_address(f"{host}:9876")


@pytest.mark.parametrize("host", ["::1", "fe80::1%eth0", "my_host", "bücher.example", "a.b."])
def test_unusual_hosts_are_hosts(host: str) -> None:
    assert split_address(f"[{host}]:9876") == (host, 9876)


def test_offset_ids() -> None:
    text = offset_id_text(pack_host("127.0.0.1", 10911), 123456)
    assert text == "7F00000100002A9F000000000001E240"
    parsed = parse_offset_id(text)
    assert (parsed.address, parsed.physical_offset) == ("127.0.0.1:10911", 123456)
    long = offset_id_text(pack_host("fd00::2", 7), 5)
    assert len(long) == 56
    assert parse_offset_id(long.lower()).address == "[fd00::2]:7"


@pytest.mark.parametrize("text", ["", "xyz", "7F", "7F" * 17, "7F " * 11, "zz" * 16])
def test_other_texts_are_no_offset_ids(text: str) -> None:
    with pytest.raises(UsageError, match="message id"):
        parse_offset_id(text)


@pytest.mark.parametrize("name", ["T", "%RETRY%g", "a-b_c|d", "x" * 127])
def test_legal_names(name: str) -> None:
    assert topic_fault(name) is None
    assert group_fault(name) is None
    check_topic(name)
    check_group(name)


@pytest.mark.parametrize("name", [None, "", "  ", "../x", "a/b", "a b", "T\n", "тема", "x" * 256])
def test_illegal_names(name: str | None) -> None:
    assert topic_fault(name)
    assert group_fault(name)
    with pytest.raises(UsageError):
        check_topic(name or "")
    with pytest.raises(UsageError):
        check_group(name or "")


def test_topics_are_shorter_than_groups() -> None:
    assert topic_fault("x" * 128)
    assert group_fault("x" * 255) is None


def test_system_topics() -> None:
    assert is_system_topic("TBW102")
    assert is_system_topic("rmq_sys_anything")
    assert not is_system_topic("Orders")


def test_properties_with_and_without_final_separator() -> None:
    pairs = {"KEYS": "a b", "TAGS": "t"}
    text = render_properties(pairs)
    assert text == "KEYS\x01a b\x02TAGS\x01t\x02"
    assert parse_properties(text) == parse_properties(text[:-1]) == pairs


@pytest.mark.parametrize("text", ["", "\x02", "a", "a\x01", "\x01b", "a\x01b\x01c", "\x02\x02a"])
def test_malformed_pairs_are_skipped(text: str) -> None:
    assert parse_properties(text) == {}
    assert property_of(text, "a") is None


def test_one_property_without_the_others() -> None:
    text = "XKEYS\x01no\x02KEYS\x01one\x02TAGS\x01KEYS\x02KEYS\x01two"
    assert property_of(text, "KEYS") == parse_properties(text)["KEYS"] == "two"
    assert property_of(text, "TAGS") == "KEYS"
    assert property_of(text, "OTHER") is None
    assert split_keys(" a  b ") == ["a", "b"]
    assert split_keys(None) == []


def test_batches_round_trip() -> None:
    elements = [BatchElement(1, b"body", b"K\x01v\x02"), BatchElement(-2, b"", b"")]
    assert decode_batch(encode_batch(elements)) == elements
    assert decode_batch(b"") == []


@pytest.mark.parametrize("sizes", [[(3, 1)] * 3, [(3, 1), (1, 3)], [(0, 0)] * 2, [(3, 1), (25, 1)]])
def test_a_batch_of_sizes_that_look_alike_round_trips(sizes: list[tuple[int, int]]) -> None:
    elements = [
        BatchElement(number, b"b" * body_bytes, b"p" * properties_bytes)
        for number, (body_bytes, properties_bytes) in enumerate(sizes)
    ]
    assert decode_batch(encode_batch(elements)) == elements


def test_a_batch_that_is_too_long_is_not_read_to_its_end() -> None:
    raw = encode_batch([BatchElement(1, b"one", b""), BatchElement(2, b"two", b"K\x01v")])
    assert decode_columns(raw, 2) == ([1, 2], [b"one", b"two"], [b"", b"K\x01v"])
    with pytest.raises(TooManyElements, match="at most 1 "):
        decode_columns(raw + b"broken", 1)


BATCH = encode_batch([BatchElement(0, b"body", b"pp")])


@pytest.mark.parametrize(
    "raw",
    [
        BATCH[:-1],
        BATCH[:10],
        BATCH + b"\x00",
        b"\x00\x00\x00\x00" + BATCH[4:],
        b"\xff\xff\xff\xff" + BATCH[4:],
        b"\x7f\xff\xff\xff" + BATCH[4:],
        BATCH[:16] + b"\xff\xff\xff\xff" + BATCH[20:],
        BATCH[:16] + b"\x7f\xff\xff\xff" + BATCH[20:],
        BATCH[:24] + b"\x00\x01" + BATCH[26:],
    ],
)
def test_broken_batches_are_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="batch element at byte"):
        decode_batch(raw)


def test_queues_sort_by_topic_broker_and_number() -> None:
    queues = [MessageQueue("b", 10, "T"), MessageQueue("b", 2, "T"), MessageQueue("a", 99, "T")]
    assert sorted([*queues, MessageQueue("z", 0, "A")]) == [
        MessageQueue("z", 0, "A"),
        MessageQueue("a", 99, "T"),
        MessageQueue("b", 2, "T"),
        MessageQueue("b", 10, "T"),
    ]
    assert str(queues[0]) == "MessageQueue [topic=T, brokerName=b, queueId=10]"
    assert len({*queues, MessageQueue("b", 2, "T")}) == 3


@pytest.mark.parametrize("expression", ["*", "", None])
def test_everything_is_subscribed_by_default(expression: str | None) -> None:
    assert build_subscription("T", expression) == SubscriptionData(topic="T")


def test_tags_are_hashed() -> None:
    data = build_subscription("T", " TagA || TagB ||", version=5)
    assert (data.tags_set, data.code_set) == (["TagA", "TagB"], [2598919, 2598920])
    assert (data.sub_version, data.expression_type) == (5, "TAG")


def test_other_expressions_are_kept() -> None:
    data = build_subscription("T", "a > 5", "SQL92")
    assert (data.sub_string, data.expression_type, data.code_set) == ("a > 5", "SQL92", [])


@pytest.mark.parametrize(("expression", "kind"), [("||", "TAG"), ("", "SQL92"), (None, "SQL92")])
def test_expressions_that_ask_for_nothing_are_refused(expression: str | None, kind: str) -> None:
    with pytest.raises(UsageError):
        build_subscription("T", expression, kind)


def test_the_same_subscription_has_any_version_and_order() -> None:
    first, second = build_subscription("T", "a||b"), build_subscription("T", "a||b", version=9)
    second.tags_set.reverse()
    assert first.asks_for_the_same(second)
    assert not first.asks_for_the_same(build_subscription("T", "a"))


def test_permissions() -> None:
    assert [perm_text(perm) for perm in (0, 2, 4, 6, 7)] == ["---", "-W-", "R--", "RW-", "RWX"]
    assert is_readable(4)
    assert is_writable(2)
    assert is_inherited(1)
    assert not is_readable(2) | is_writable(4) | is_inherited(6)


def test_a_topic_has_as_many_queues_as_either_side() -> None:
    assert TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=8).queue_count == 8


def test_a_version_moves_on() -> None:
    assert DataVersion(counter=1, timestamp=5, state_version=2).next(9) == DataVersion(
        counter=2, timestamp=9, state_version=2
    )


def test_modes_stand_in_java_s_order() -> None:
    assert list(ConsumeType)[:2] == ["CONSUME_ACTIVELY", "CONSUME_PASSIVELY"]
    assert list(MessageModel) == ["BROADCASTING", "CLUSTERING"]
    assert list(ConsumeFromWhere)[4] == "CONSUME_FROM_FIRST_OFFSET"
