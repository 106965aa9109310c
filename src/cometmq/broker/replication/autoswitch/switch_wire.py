"""The bytes of replication under a controller (RocketMQ's autoswitch HA). No I/O.

    slave -> master   int32 1, int16 fromLastFile, int16 learner, int64 own id             who it is
    master -> slave   int32 1, int32 12n, int64 log end, int32 last epoch, n x (int32 epoch, int64 start)
    slave -> master   int32 2, int64 offset                                                the end of its log
    master -> slave   int32 2, int32 size, int64 offset, int32 epoch, int64 start, int64 confirmed, bytes

The first two come once, in this order; then reports and pieces, as on the default wire. A piece never has bytes of two
epochs, nor of two files. All integers are big-endian and signed.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from cometmq.base.errors import RemoteProtocolError, UsageError
from cometmq.broker.replication.autoswitch.epochs import ENTRIES_MAX, Epoch, EpochTable
from cometmq.broker.replication.ha_wire import FrameReader, Piece, SlaveIdentity

HANDSHAKE_STATE: Final = 1
TRANSFER_STATE: Final = 2

STATE: Final = struct.Struct(">i")
SLAVE_HANDSHAKE: Final = struct.Struct(">ihhq")
MASTER_HANDSHAKE: Final = struct.Struct(">iiqi")
ENTRY: Final = struct.Struct(">iq")
REPORT: Final = struct.Struct(">iq")
TRANSFER: Final = struct.Struct(">iiqiqq")

PIECE_BYTES_MAX: Final = 4 * 1024 * 1024 - TRANSFER.size
"""RocketMQ's slaves read into a buffer of 4 MiB, which must hold a whole frame."""
NOTHING: Final = -1
"""The offset in the heartbeat of a RocketMQ master whose log is empty."""


class MasterHandshake(NamedTuple):
    """What a master's log consists of."""

    log_end: int
    epochs: tuple[Epoch, ...]


class Transfer(NamedTuple):
    """A piece of the log, with the epoch that it is from, and up to where all that count have the log."""

    piece: Piece
    epoch: Epoch
    confirmed: int


MasterFrame = MasterHandshake | Transfer


def encode_slave_handshake(slave: SlaveIdentity) -> bytes:
    return SLAVE_HANDSHAKE.pack(
        HANDSHAKE_STATE, slave.from_last_file, slave.is_learner, slave.broker_id
    )


def encode_master_handshake(log_end: int, epochs: EpochTable) -> bytes:
    entries = b"".join(ENTRY.pack(*one) for one in epochs)
    header = MASTER_HANDSHAKE.pack(HANDSHAKE_STATE, len(entries), log_end, epochs.last_number)
    return header + entries


def encode_report(offset: int) -> bytes:
    return REPORT.pack(TRANSFER_STATE, offset)


def encode_transfer(offset: int, size_bytes: int, epoch: Epoch, confirmed: int) -> bytes:
    """The header before ``size_bytes`` of the log."""
    return TRANSFER.pack(TRANSFER_STATE, size_bytes, offset, epoch.number, epoch.start, confirmed)


class SlaveFrames:
    """Cuts what a slave sends. Of several reports the newest counts."""

    def __init__(self) -> None:
        self._partial = b""
        self.slave: SlaveIdentity | None = None
        """Who it says to be; None before it has."""

    def feed(self, data: bytes) -> tuple[int, int | None]:
        """How many handshakes came, and the last complete report, if one did.

        Raises:
            RemoteProtocolError: something that no slave sends.
        """
        data = self._partial + data
        at, handshakes, report = 0, 0, None
        while len(data) - at >= STATE.size:
            (state,) = STATE.unpack_from(data, at)
            if state == HANDSHAKE_STATE:
                if len(data) - at < SLAVE_HANDSHAKE.size:
                    break
                self.slave = _slave(data, at)
                handshakes += 1
                at += SLAVE_HANDSHAKE.size
            elif state == TRANSFER_STATE and self.slave is not None:
                if len(data) - at < REPORT.size:
                    break
                report = REPORT.unpack_from(data, at)[1]
                if report < 0:
                    raise RemoteProtocolError(f"expected the end of a log, found {report}")
                at += REPORT.size
            else:
                raise RemoteProtocolError(
                    f"expected a slave under a controller, found the state {state} in its frame; does it have "
                    f"enableControllerMode=true?"
                )
        self._partial = data[at:]
        return handshakes, report


class MasterFrames(FrameReader[MasterFrame]):
    """Cuts what a master sends.

    Args:
        piece_bytes_max: a longer piece is refused before memory is taken for it.
    """

    def __init__(self, piece_bytes_max: int = PIECE_BYTES_MAX) -> None:
        super().__init__()
        self._piece_bytes_max = piece_bytes_max

    def _size(self, data: memoryview) -> int | None:
        if len(data) < STATE.size:
            return None
        (state,) = STATE.unpack_from(data)
        if state == HANDSHAKE_STATE:
            return self._handshake_size(data)
        if state == TRANSFER_STATE:
            return self._transfer_size(data)
        raise RemoteProtocolError(
            f"expected a master under a controller, found the state {state} in its frame; does it have "
            f"enableControllerMode=true?"
        )

    def _frame(self, data: memoryview) -> MasterFrame:
        (state,) = STATE.unpack_from(data)
        if state == HANDSHAKE_STATE:
            _, _, log_end, _ = MASTER_HANDSHAKE.unpack_from(data)
            rows = ENTRY.iter_unpack(data[MASTER_HANDSHAKE.size :])
            return MasterHandshake(log_end, tuple(Epoch(*row) for row in rows))
        _, _, offset, epoch, start, confirmed = TRANSFER.unpack_from(data)
        piece = Piece(max(offset, 0), data[TRANSFER.size :])
        return Transfer(piece, Epoch(epoch, start), max(confirmed, 0))

    def _handshake_size(self, data: memoryview) -> int | None:
        if len(data) < MASTER_HANDSHAKE.size:
            return None
        _, entries_bytes, log_end, _ = MASTER_HANDSHAKE.unpack_from(data)
        count, rest = divmod(entries_bytes, ENTRY.size)
        if rest or not 0 <= count <= ENTRIES_MAX or log_end < 0:
            raise RemoteProtocolError(
                f"expected at most {ENTRIES_MAX} epochs of a log, found {entries_bytes} bytes of them and the log's "
                f"end {log_end}"
            )
        return MASTER_HANDSHAKE.size + int(entries_bytes)

    def _transfer_size(self, data: memoryview) -> int | None:
        if len(data) < TRANSFER.size:
            return None
        _, size_bytes, offset, *_ = TRANSFER.unpack_from(data)
        is_heartbeat_of_nothing = size_bytes == 0 and offset == NOTHING
        if not 0 <= size_bytes <= self._piece_bytes_max or (
            offset < 0 and not is_heartbeat_of_nothing
        ):
            raise RemoteProtocolError(
                f"expected a piece of at most {self._piece_bytes_max} bytes of a log, found offset {offset} and size "
                f"{size_bytes}"
            )
        return TRANSFER.size + int(size_bytes)


def table_of(handshake: MasterHandshake) -> EpochTable:
    """Raises RemoteProtocolError: no master has such epochs."""
    try:
        return EpochTable(handshake.epochs)
    except UsageError as error:
        raise RemoteProtocolError(f"the master told {error}") from None


def _slave(data: bytes, at: int) -> SlaveIdentity:
    _, from_last_file, learner, broker_id = SLAVE_HANDSHAKE.unpack_from(data, at)
    return SlaveIdentity(broker_id, is_learner=bool(learner), from_last_file=bool(from_last_file))
