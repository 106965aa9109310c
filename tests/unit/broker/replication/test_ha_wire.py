"""Frames of the replication port, in any cut, and as RocketMQ's brokers sent them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.ha_wire import (
    ONLY_READS,
    PIECE_BYTES_MAX,
    READ_BYTES,
    Piece,
    ReportReader,
    TransferReader,
    encode_report,
    encode_transfer,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "ha"
OFFSETS = st.integers(0, 2**62)


def _chunks(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@given(st.lists(st.builds(Piece, OFFSETS, st.binary(max_size=50)), max_size=8), st.integers(1, 40))
def test_pieces_survive_any_chunking(pieces: list[Piece], chunk_bytes: int) -> None:
    stream = b"".join(encode_transfer(one.offset, len(one.data)) + one.data for one in pieces)
    reader = TransferReader()
    found = [piece for chunk in _chunks(stream, chunk_bytes) for piece in reader.feed(chunk)]
    assert found == pieces
    assert reader.pending_bytes == 0


def test_pieces_are_views_of_the_memory_that_a_transport_reads_into() -> None:
    reader = TransferReader()
    pieces = [Piece(at * 300_000, bytes([at]) * 300_000) for at in range(12)]
    # Larger than what is read at once.
    pieces.append(Piece(3_600_000, b"x" * PIECE_BYTES_MAX))
    stream = b"".join(encode_transfer(one.offset, len(one.data)) + one.data for one in pieces)
    found: list[Piece] = []
    while stream:
        room = reader.room()
        assert 0 < len(room) <= PIECE_BYTES_MAX + 12
        part, stream = stream[: len(room)], stream[len(room) :]
        room[: len(part)] = part
        for piece in reader.received(len(part)):
            assert isinstance(piece.data, memoryview)
            found.append(Piece(piece.offset, bytes(piece.data)))
    assert found == pieces
    assert reader.pending_bytes == 0


def test_no_memory_is_taken_for_a_piece_that_is_refused() -> None:
    reader = TransferReader()
    header = encode_transfer(0, 2**31 - 1)
    room = reader.room()
    room[: len(header)] = header
    with pytest.raises(RemoteProtocolError):
        reader.received(len(header))
    assert len(reader.room()) == READ_BYTES


@given(st.lists(OFFSETS, min_size=1, max_size=8), st.integers(1, 40))
def test_the_newest_report_counts(offsets: list[int], chunk_bytes: int) -> None:
    stream = b"".join(map(encode_report, offsets))
    reader = ReportReader()
    found = [reader.feed(chunk) for chunk in _chunks(stream, chunk_bytes)]
    assert [offset for offset in found if offset is not None][-1] == offsets[-1]


@pytest.mark.parametrize(("offset", "size_bytes"), [(-1, 0), (0, -1), (0, 101), (2**40, 2**31 - 1)])
def test_a_header_that_no_master_sends_is_refused(offset: int, size_bytes: int) -> None:
    with pytest.raises(RemoteProtocolError, match="expected a piece of at most 100 bytes"):
        TransferReader(100).feed(encode_transfer(offset, size_bytes))


def test_a_report_that_no_slave_sends_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="offset -2"):
        ReportReader().feed(encode_report(-2))


@pytest.mark.parametrize("piece_bytes", [1, 8, 16])
def test_who_only_reads_says_so_first(piece_bytes: int) -> None:
    reader = ReportReader()
    stream = encode_report(ONLY_READS) + encode_report(7)
    found = [
        reader.feed(stream[at : at + piece_bytes]) for at in range(0, len(stream), piece_bytes)
    ]
    assert [one for one in found if one is not None] == [7]
    assert reader.only_reads
    with pytest.raises(RemoteProtocolError):
        reader.feed(encode_report(ONLY_READS))


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_what_rocketmqs_brokers_sent_is_one_row_of_records(version: str) -> None:
    transfers, reports = TransferReader(), ReportReader()
    end = confirmed = 0
    for line in (GOLDEN / f"default-{version}.jsonl").read_text().splitlines():
        event = json.loads(line)
        data = bytes.fromhex(event.get("hex", ""))
        if event["dir"] == "master>slave":
            for piece in transfers.feed(data):
                assert piece.offset == end
                end = piece.end
        elif (offset := reports.feed(data)) is not None:
            assert confirmed <= offset <= end
            confirmed = offset
    assert end > 1000
    assert confirmed > 1000
