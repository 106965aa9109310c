"""Frames of replication under a controller, in any cut, and as RocketMQ's brokers sent them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import RemoteProtocolError
from cometmq.broker.replication.autoswitch.epochs import Epoch, EpochTable, common_end
from cometmq.broker.replication.autoswitch.switch_wire import (
    MASTER_HANDSHAKE,
    MasterFrame,
    MasterFrames,
    MasterHandshake,
    SlaveFrames,
    Transfer,
    encode_master_handshake,
    encode_report,
    encode_slave_handshake,
    encode_transfer,
    table_of,
)
from cometmq.broker.replication.ha_wire import Piece, SlaveIdentity

GOLDEN = Path(__file__).parents[4] / "golden" / "ha"
SLAVE = SlaveIdentity(7, is_learner=True, from_last_file=False)


def _fed(reader: MasterFrames, data: bytes) -> Iterator[MasterFrame]:
    while data:
        room = reader.room()
        part, data = data[: len(room)], data[len(room) :]
        room[: len(part)] = part
        for frame in reader.received(len(part)):
            if isinstance(frame, Transfer):
                piece = Piece(frame.piece.offset, bytes(frame.piece.data))
                frame = frame._replace(piece=piece)
            yield frame


def _encoded(frame: MasterFrame) -> bytes:
    if isinstance(frame, MasterHandshake):
        return encode_master_handshake(frame.log_end, EpochTable(frame.epochs))
    piece = frame.piece
    return encode_transfer(piece.offset, len(piece.data), frame.epoch, frame.confirmed) + piece.data


TRANSFERS = st.builds(
    Transfer,
    st.builds(Piece, st.integers(0, 2**62), st.binary(max_size=50)),
    st.builds(Epoch, st.integers(0, 2**30), st.integers(0, 2**62)),
    st.integers(0, 2**62),
)
HANDSHAKES = st.builds(
    MasterHandshake,
    st.integers(0, 2**62),
    st.integers(0, 5).map(lambda count: tuple(Epoch(n, n * 10) for n in range(1, count + 1))),
)


@given(st.lists(TRANSFERS | HANDSHAKES, max_size=8), st.integers(1, 60))
def test_frames_of_a_master_survive_any_chunking(
    frames: list[MasterFrame], chunk_bytes: int
) -> None:
    stream = b"".join(map(_encoded, frames))
    reader = MasterFrames()
    found: list[MasterFrame] = []
    for at in range(0, len(stream), chunk_bytes):
        found += _fed(reader, stream[at : at + chunk_bytes])
    assert found == frames
    assert reader.pending_bytes == 0


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=8), st.integers(1, 40))
def test_the_newest_report_counts(offsets: list[int], chunk_bytes: int) -> None:
    stream = encode_slave_handshake(SLAVE) + b"".join(map(encode_report, offsets))
    reader = SlaveFrames()
    found = [
        reader.feed(stream[at : at + chunk_bytes]) for at in range(0, len(stream), chunk_bytes)
    ]
    assert sum(handshakes for handshakes, _ in found) == 1
    assert [offset for _, offset in found if offset is not None][-1] == offsets[-1]
    assert reader.slave == SLAVE


@pytest.mark.parametrize(
    "data",
    [
        encode_report(5),
        bytes(8),
        encode_slave_handshake(SLAVE) + encode_report(-1),
        (77).to_bytes(8, "big"),
    ],
)
def test_what_no_slave_sends_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        SlaveFrames().feed(data)


@pytest.mark.parametrize(
    "data",
    [
        bytes(12),
        MASTER_HANDSHAKE.pack(1, 13, 5, 1),
        MASTER_HANDSHAKE.pack(1, 12 * 1001, 5, 1),
        MASTER_HANDSHAKE.pack(1, -12, 5, 1),
        MASTER_HANDSHAKE.pack(1, 0, -5, 1),
        encode_transfer(-1, 5, Epoch(1, 0), 0),
        encode_transfer(0, -5, Epoch(1, 0), 0),
        encode_transfer(0, 2**31 - 1, Epoch(1, 0), 0),
    ],
)
def test_what_no_master_sends_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        list(_fed(MasterFrames(), data))


def test_an_empty_master_may_say_minus_one() -> None:
    (frame,) = _fed(MasterFrames(), encode_transfer(-1, 0, Epoch(1, 0), 0))
    assert isinstance(frame, Transfer)
    assert frame.piece == Piece(0, b"")


def test_epochs_that_do_not_rise_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="epochs must rise"):
        table_of(MasterHandshake(50, (Epoch(2, 0), Epoch(1, 10))))


@pytest.mark.parametrize(
    ("name", "slave_id", "epochs", "end"),
    [
        ("join", 2, [(1, 0)], 0x1040),
        ("rejoin", 1, [(1, 0), (2, 4160)], 0x1448),
        ("truncate", 2, [(1, 0), (2, 4160), (3, 45408)], 45408),
    ],
)
def test_what_rocketmqs_brokers_sent(
    name: str, slave_id: int, epochs: list[tuple[int, int]], end: int
) -> None:
    master, slave = MasterFrames(), SlaveFrames()
    sent: bytes = b""
    log_end: int | None = None
    reports: list[int] = []
    table = EpochTable()
    for line in (GOLDEN / f"autoswitch-5.5.0-{name}.jsonl").read_text().splitlines():
        event = json.loads(line)
        data = bytes.fromhex(event.get("hex", ""))
        if event["dir"] == "slave>master":
            _, report = slave.feed(data)
            if report is not None:
                reports.append(report)
            continue
        sent += data
        for frame in _fed(master, data):
            # What was read can be written again, to the same bytes.
            encoded = _encoded(frame)
            assert sent.startswith(encoded)
            sent = sent[len(encoded) :]
            if isinstance(frame, MasterHandshake):
                table = table_of(frame)
                assert list(table) == epochs
            else:
                log_end = frame.piece.offset if log_end is None else log_end
                assert frame.piece.offset == log_end
                log_end = frame.piece.end
                assert (frame.epoch, None) == table.at(log_end)
                assert frame.confirmed >= log_end
    assert slave.slave == SlaveIdentity(slave_id, is_learner=False, from_last_file=False)
    assert log_end == end
    assert reports[-1] == end
    if name == "truncate":
        own = EpochTable([Epoch(1, 0), Epoch(2, 4160)])
        assert common_end(own, 24237896, table, end) == reports[0]
