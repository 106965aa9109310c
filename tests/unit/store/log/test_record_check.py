"""The checksum of the whole record, as RocketMQ 5 writes it."""

from __future__ import annotations

import struct

import pytest

from cometmq.model.address import pack_host
from cometmq.model.messages.record import encode_blank, encode_record
from cometmq.store.log.record_check import (
    MARKED_BYTES,
    are_alike_and_sound,
    are_plainly_sound,
    begins_soundly,
    is_sound,
    is_sound_as_marked,
    record_mark,
)

PLACE = 4711


def encoded(number: int, place: int, body: bytes, properties: bytes, *, v6: bool = False) -> bytes:
    host = pack_host("::1", 1) if v6 else pack_host("127.0.0.1", 1)
    return encode_record(
        topic=b"Topic",
        queue_id=1,
        queue_offset=number,
        physical_offset=place,
        flag=0,
        sys_flag=48 if v6 else 0,
        born_timestamp=1,
        born_host=host,
        store_timestamp=2,
        store_host=host,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=body,
        properties=properties,
    )


def plain(number: int, place: int) -> bytes:
    return encoded(number, place, b"body %d" % number, b"KEYS\x01a\x02")


def marked(properties: bytes = b"KEYS\x01a\x02", *, v6: bool = False) -> bytes:
    record = encoded(2, PLACE, b"the body", properties + bytes(MARKED_BYTES), v6=v6)
    record = record[:-MARKED_BYTES]
    return record + record_mark(record)


def test_the_mark_is_a_property_with_the_lowest_digit_first() -> None:
    mark = record_mark(b"Hello RocketMQ")  # 1774740973
    assert mark == b"__CRC32#\x013790474771\x02"
    assert len(mark) == MARKED_BYTES == 20


@pytest.mark.parametrize("v6", [False, True])
def test_every_flipped_bit_is_noticed_with_a_mark(v6: bool) -> None:
    record = marked(v6=v6)
    assert is_sound_as_marked(memoryview(record), PLACE)
    # Without the last 20 bytes: a damaged name of the mark makes it another property.
    for at in range(len(record) - MARKED_BYTES):
        for bit in range(8):
            flipped = bytearray(record)
            flipped[at] ^= 1 << bit
            assert not is_sound_as_marked(memoryview(flipped), PLACE), (at, bit)


def test_without_being_asked_a_mark_is_not_believed() -> None:
    record = bytearray(marked())
    record[-5] ^= 1
    assert is_sound(memoryview(record), PLACE)
    assert not is_sound_as_marked(memoryview(record), PLACE)


def test_records_of_one_size_are_judged_as_those_of_several_sizes() -> None:
    size_bytes = len(plain(0, 0))
    places = [PLACE, PLACE + size_bytes, PLACE + 9 * size_bytes]
    data = b"".join(plain(5 + number, place) for number, place in enumerate(places))

    def is_alike(changed: bytes | bytearray) -> bool:
        view = memoryview(changed)
        stretches = [view[: 2 * size_bytes], view[2 * size_bytes :]]
        return are_alike_and_sound(stretches, size_bytes, places, 1, 5, b"\x05Topic")

    def is_plain(changed: bytes | bytearray) -> bool:
        view = memoryview(changed)
        records = [view[at : at + size_bytes] for at in range(0, len(view), size_bytes)]
        return are_plainly_sound(records, places, 1, 5, b"\x05Topic")

    assert is_alike(data)
    assert is_plain(data)
    noticed = 0
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            assert is_alike(flipped) == is_plain(flipped), (at, bit)
            noticed += not is_alike(flipped)
    # Size, magic, checksum, queue, number, place, body and its length, topic, length of the properties; the two bits
    # for hosts with IPv6.
    assert noticed == 3 * (8 * (4 + 4 + 4 + 4 + 8 + 8 + 6 + 4 + 6 + 2) + 2)


@pytest.mark.parametrize("size_bytes", [0, 4, 50, 90])
def test_what_is_cut_off_is_not_sound(size_bytes: int) -> None:
    record = marked()
    assert not is_sound(memoryview(record)[:size_bytes], PLACE)
    cut = struct.pack(">i", size_bytes) + record[4:size_bytes]
    assert not is_sound(memoryview(cut), PLACE)


def test_the_begin_of_a_log_is_judged_once_enough_of_it_is_there() -> None:
    record, file_end = marked(), PLACE + 1000
    for size_bytes in range(len(record)):
        assert begins_soundly(record[:size_bytes], PLACE, file_end) is None
    assert begins_soundly(record + b"more", PLACE, file_end) is True
    assert begins_soundly(record, PLACE, PLACE + len(record) - 1) is False
    assert begins_soundly(record, PLACE + 1, file_end) is False


@pytest.mark.parametrize("at", [0, 4, 8, 28, 90])
def test_damage_at_the_begin_of_a_log_is_seen(at: int) -> None:
    damaged = bytearray(marked())
    damaged[at] ^= 0x40
    assert begins_soundly(damaged, PLACE, PLACE + 1000) is False


def test_a_blank_record_is_sound_if_it_reaches_the_end_of_its_file() -> None:
    assert begins_soundly(encode_blank(1000), PLACE, PLACE + 1000) is True
    assert begins_soundly(encode_blank(1000), PLACE, PLACE + 1001) is False
