"""Messages out of pulled bytes: what is made at once, what is made when asked for, and making one by hand."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from enum import StrEnum

import pytest

from cometmq.model.address import pack_host
from cometmq.model.messages.compression import compress
from cometmq.model.messages.received_message import ReceivedMessage, decode_messages
from cometmq.model.messages.record import BadRecord, decode_record, encode_record
from cometmq.native.choice import NAME, NATIVE, PYTHON, VARIABLE

STORE = pack_host("10.0.0.7", 10911)
UNIQUE = "7F0000010D2A5A1B2C3D000A0001B00C"


def raw(
    body: bytes = b"body", properties: bytes = b"", sys_flag: int = 0, offset: int = 5
) -> bytes:
    return encode_record(
        topic=b"T",
        queue_id=3,
        queue_offset=offset,
        physical_offset=1 << 33,
        flag=9,
        sys_flag=sys_flag,
        born_timestamp=111,
        born_host=pack_host("127.0.0.1", 54321),
        store_timestamp=222,
        store_host=STORE,
        reconsume_times=2,
        prepared_transaction_offset=77,
        body=body,
        properties=properties,
    )


def test_every_field_of_a_pulled_record_is_there() -> None:
    text = f"UNIQ_KEY\x01{UNIQUE}\x02TAGS\x01paid\x02KEYS\x01a b\x02mine\x01yes"
    (message,) = decode_messages(raw(properties=text.encode()), "broker-a")
    assert (message.topic, message.body, message.broker_name) == ("T", b"body", "broker-a")
    assert (message.queue_id, message.queue_offset, message.physical_offset) == (3, 5, 1 << 33)
    assert (message.flag, message.sys_flag, message.reconsume_times) == (9, 0, 2)
    assert (message.born_timestamp, message.store_timestamp) == (111, 222)
    assert message.prepared_transaction_offset == 77
    assert (message.born_host, message.store_host) == ("127.0.0.1:54321", "10.0.0.7:10911")
    assert (message.message_id, message.tags, message.keys) == (UNIQUE, "paid", ["a", "b"])
    assert message.offset_id == "0A00000700002A9F0000000200000000"
    assert message.properties == {
        "UNIQ_KEY": UNIQUE,
        "TAGS": "paid",
        "KEYS": "a b",
        "mine": "yes",
    }
    assert type(message.properties) is dict
    assert message.properties is message.properties


def test_without_a_unique_key_the_offset_id_is_the_id() -> None:
    (message,) = decode_messages(raw(), "b")
    assert message.message_id == message.offset_id
    assert (message.tags, message.keys, message.properties) == (None, [], {})


def test_records_come_in_order_and_added_properties_win() -> None:
    pulled = raw(offset=1, properties=b"MAX_OFFSET\x011") + raw(offset=2)
    first, second = decode_messages(memoryview(pulled), "b", added={"MAX_OFFSET": "8"})
    assert [first.queue_offset, second.queue_offset] == [1, 2]
    assert first.properties == second.properties == {"MAX_OFFSET": "8"}
    first.properties["mine"] = "only"
    assert second.properties == {"MAX_OFFSET": "8"}


def test_a_compressed_body_comes_unpacked() -> None:
    packed, bits = compress(b"long " * 1000)
    (message,) = decode_messages(raw(packed, sys_flag=bits), "b")
    assert (message.body, message.body_error) == (b"long " * 1000, None)


def test_a_body_that_does_not_unpack_comes_as_it_is_stored_and_the_others_come_too() -> None:
    packed, bits = compress(b"long " * 1000)
    pulled = raw(packed, sys_flag=bits) + raw(b"not packed", sys_flag=bits) + raw(b"plain")
    good, bad, last = decode_messages(pulled, "b")
    assert [message.body for message in (good, bad, last)] == [
        b"long " * 1000,
        b"not packed",
        b"plain",
    ]
    assert (bad.body_error or "").startswith("compressed body is broken")
    assert "body_error='compressed body is broken" in repr(bad)
    assert good.body_error is last.body_error is None
    read = ReceivedMessage.from_record(decode_record(raw(b"not packed", sys_flag=bits)), "b")
    assert (read.body, read.body_error) == (bad.body, bad.body_error)
    made = ReceivedMessage(topic="T", body=b"x", body_error="for a test")
    assert made.body_error == "for a test"


def test_bytes_that_are_no_records_are_refused() -> None:
    with pytest.raises(BadRecord):
        decode_messages(raw() + b"rest", "b")
    damaged = bytearray(raw())
    damaged[90] ^= 1
    with pytest.raises(BadRecord):
        decode_messages(bytes(damaged), "b")


def test_a_message_from_a_record_is_the_same() -> None:
    pulled = raw(properties=b"TAGS\x01paid")
    (message,) = decode_messages(pulled, "b")
    assert ReceivedMessage.from_record(decode_record(pulled), "b") == message
    assert ReceivedMessage.from_record(decode_record(pulled), "c") != message
    assert decode_messages(pulled, "b", added={"MAX_OFFSET": "8"}) == [message]
    assert message != "message"


def test_a_message_can_be_made_by_hand() -> None:
    message = ReceivedMessage(topic="T", body=b"x", properties={"TAGS": "paid"}, queue_offset=4)
    assert (message.topic, message.body, message.tags, message.queue_offset) == (
        "T",
        b"x",
        "paid",
        4,
    )
    assert "'T'" in repr(message)
    assert "tags='paid'" in repr(message)
    assert ReceivedMessage(topic="T", body=b"x").properties == {}


def test_names_may_be_of_an_enumeration() -> None:
    class Name(StrEnum):
        ORDERS = "orders"

    message = ReceivedMessage(topic=Name.ORDERS, body=b"x", broker_name=Name.ORDERS)
    assert (message.topic, message.broker_name) == ("orders", "orders")
    (message,) = decode_messages(raw(), Name.ORDERS)
    assert message.broker_name == "orders"
    message.topic = Name.ORDERS
    assert message.topic == "orders"


class Noted(ReceivedMessage):
    __slots__ = ("note",)


class Open(ReceivedMessage):
    pass


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_may_be_pickled(protocol: int) -> None:
    (message,) = decode_messages(raw(properties=b"TAGS\x01paid"), "broker-a", added={"MORE": "1"})
    again = pickle.loads(pickle.dumps(message, protocol))
    assert again == message
    assert (again.size_bytes, again.body_crc) == (message.size_bytes, message.body_crc)
    assert again.properties == {"TAGS": "paid", "MORE": "1"}


def test_a_copy_has_what_a_subclass_adds() -> None:
    for message in (Noted(topic="T", body=b"x"), Open(topic="T", body=b"x")):
        message.note = "mine"  # type: ignore[union-attr]
        again = copy.copy(message)
        assert (type(again), again, again.note) == (type(message), message, "mine")  # type: ignore[union-attr]


@pytest.mark.skipif(NAME != NATIVE, reason="the twin is not used")
def test_what_one_implementation_pickles_the_other_one_reads() -> None:
    (message,) = decode_messages(raw(properties=b"TAGS\x01paid"), "broker-a")
    program = "import pickle, sys; pickle.dump(pickle.load(sys.stdin.buffer), sys.stdout.buffer)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(message),
        env={**os.environ, VARIABLE: PYTHON},
        capture_output=True,
        check=True,
    )
    assert pickle.loads(ended.stdout) == message
