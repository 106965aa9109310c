from __future__ import annotations

import pytest

from cometmq.store.files.queue_entry import ADDRESS_MAX
from cometmq.store.open_files import OpenFiles
from cometmq.store.queues.extended_queue import (
    CODE_MIN,
    ExtendedQueue,
    Unit,
    UnitReader,
    address_of,
    decode_unit,
    encode_unit,
    is_address,
    offset_of,
)
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

PATH = "/ext/T/0/00000000000000000000"


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(FakeClock())


@pytest.fixture
def open_files(files: FaultyFiles) -> OpenFiles:
    return OpenFiles(files, 4)


def test_a_unit_is_laid_out_as_rocketmqs() -> None:
    unit = Unit(tags_code=-2, store_timestamp=1_700_000_000_000, bits=b"\x01\x80")
    raw = encode_unit(unit)
    assert raw == bytes.fromhex("0016 fffffffffffffffe 0000018bcfe56800 0002 0180")
    assert decode_unit(b"--" + raw, 2) == unit


def test_a_unit_without_bits() -> None:
    raw = encode_unit(Unit(7, 1, b""))
    assert raw == bytes.fromhex("0014 0000000000000007 0000000000000001 0000")
    assert decode_unit(raw) == Unit(7, 1, b"")


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff\xff" + bytes(30),
        bytes(40),
        encode_unit(Unit(7, 1, b"1234"))[:-1],
        b"\x00\x15" + encode_unit(Unit(7, 1, b""))[2:] + bytes(8),
        b"\x00\x13" + encode_unit(Unit(7, 1, b""))[2:18] + b"\xff\xff" + bytes(8),
    ],
    ids=["nothing", "end of the file", "zeros", "cut off", "two lengths", "negative length"],
)
def test_what_is_no_unit_is_none(damaged: bytes) -> None:
    assert decode_unit(damaged) is None


def test_addresses_lie_below_all_hashes_and_times() -> None:
    assert (address_of(0), offset_of(CODE_MIN)) == (CODE_MIN, 0)
    assert address_of(34) == -9223372036854775774
    assert offset_of(address_of(1 << 40)) == 1 << 40
    assert is_address(ADDRESS_MAX)
    assert not any(map(is_address, (-(1 << 31), -1, 0, 1_700_000_000_000)))


def test_a_unit_that_does_not_fit_goes_into_the_next_file(
    files: FaultyFiles, open_files: OpenFiles
) -> None:
    row = ExtendedQueue("/ext/T/0", 64)
    units = [Unit(number, number, bytes(number % 8)) for number in range(20)]
    offsets = [row.append(encode_unit(unit)) for unit in units]
    # 20 + 21 bytes leave 23: too few for 22 and the 4 that stay free.
    assert offsets[:3] == [0, 20, 64]
    assert [row.unit(offset, open_files) for offset in offsets] == units
    row.write_waiting(open_files)
    assert not row.waiting
    assert [row.unit(offset, open_files) for offset in offsets] == units
    first = files.read(PATH)
    assert len(first) == 64
    assert first[41:] == b"\xff\xff" + bytes(21)


def test_units_that_just_fit_fill_a_file(open_files: OpenFiles) -> None:
    row = ExtendedQueue("/ext/T/0", 64)
    assert row.append(encode_unit(Unit(1, 1, bytes(40)))) == 0
    assert row.append(encode_unit(Unit(1, 1, b""))) == 64
    row = ExtendedQueue("/ext/T/0", 64)
    row.append(encode_unit(Unit(1, 1, bytes(17))))
    assert row.append(encode_unit(Unit(1, 1, bytes(3)))) == 37
    row.write_waiting(open_files)
    assert row.append(encode_unit(Unit(1, 1, b""))) == 64


def test_a_reader_finds_units_in_any_order(open_files: OpenFiles) -> None:
    row = ExtendedQueue("/ext/T/0", 1 << 20)
    units = [Unit(number, number, bytes(number % 8)) for number in range(3000)]
    addresses = [address_of(row.append(encode_unit(unit))) for unit in units[:2000]]
    row.write_waiting(open_files)
    addresses += [address_of(row.append(encode_unit(unit))) for unit in units[2000:]]
    reader = UnitReader(row, open_files)
    order = [*range(3000), *range(2999, -1, -7), 1999, 2000, 0]
    assert [reader.unit(addresses[at]) for at in order] == [units[at] for at in order]
    assert reader.unit(address_of(row.end)) is None
    assert reader.unit(address_of(1 << 50)) is None


def test_a_file_that_is_gone_holds_no_units(files: FaultyFiles, open_files: OpenFiles) -> None:
    row = ExtendedQueue("/ext/T/0", 64)
    offset = row.append(encode_unit(Unit(1, 1, b"")))
    row.write_waiting(open_files)
    open_files.remove(PATH)
    assert row.unit(offset, open_files) is None


def test_old_files_expire_but_the_last(open_files: OpenFiles) -> None:
    row = ExtendedQueue("/ext/T/0", 64)
    offsets = [row.append(encode_unit(Unit(1, 1, bytes(20)))) for _ in range(4)]
    assert offsets == [0, 64, 128, 192]
    row.write_waiting(open_files)
    assert row.expire(63) == []
    assert row.expire(130) == [0, 64]
    assert row.unit(0, open_files) is None
    assert row.expire(row.end) == [128]
    assert row.expire(row.end) == []
