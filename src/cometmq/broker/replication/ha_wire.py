"""The bytes of RocketMQ's default replication, on a port of its own. No I/O.

    slave -> master   int64 offset                     the end of its log: confirms what is before, asks for the rest
    master -> slave   int64 offset, int32 size, bytes  a piece of the log as it is; size 0 is a heartbeat

There is no handshake, no identity and no record border: a piece may end anywhere, but never crosses the end of a log
file. All integers are big-endian and signed. TCP may split and join frames at will.

A peer that only wants to read a piece of the log says -1 first. RocketMQ's masters take that for nothing said yet. Ours
know that it is no slave, and that it will not change its log to match what it reads, so slaves answer it, too.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import Final, Generic, NamedTuple, TypeVar

from cometmq.base.errors import RemoteProtocolError

REPORT: Final = struct.Struct(">q")
TRANSFER: Final = struct.Struct(">qi")

ONLY_READS: Final = -1
"""What a peer reports before anything else, if it does not follow."""

PIECE_BYTES_MAX: Final = 4 * 1024 * 1024 - TRANSFER.size
"""RocketMQ's slaves read into a buffer of 4 MiB, which must hold a whole frame."""

READ_BYTES: Final = 1024 * 1024
"""The most that a slave reads from the socket at once, unless a frame is larger."""


F = TypeVar("F")


class Piece(NamedTuple):
    """What a master sent: bytes of the log at an offset; or none, which is a heartbeat with the offset to come next."""

    offset: int
    data: bytes | memoryview

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


def encode_report(offset: int) -> bytes:
    return REPORT.pack(offset)


def encode_transfer(offset: int, size_bytes: int) -> bytes:
    """The header before ``size_bytes`` of the log."""
    return TRANSFER.pack(offset, size_bytes)


class SlaveIdentity(NamedTuple):
    """Who a slave is, where the wire tells it."""

    broker_id: int
    is_learner: bool
    """It copies, but is never to be a master."""
    from_last_file: bool
    """With an empty log it wants the master's last file only."""


class ReportReader:
    """Cuts what a slave sends into reports. Only the newest counts, as with RocketMQ's masters.

    It is all that a master has to know of this wire: a ``master_link.MasterWire``.
    """

    slave: SlaveIdentity | None = None
    """Nobody says who he is."""
    has_news = False
    """There is nothing to say but the log."""

    def __init__(self) -> None:
        self._partial = b""
        self._is_first = True
        self.only_reads = False
        """The peer does not follow."""

    def feed(self, data: bytes) -> int | None:
        """The last complete report in what has come; None when there is none yet.

        Raises:
            RemoteProtocolError: an offset below zero, which no log has.
        """
        data = self._partial + data
        whole = len(data) // REPORT.size * REPORT.size
        self._partial = data[whole:]
        if not whole:
            return None
        if self._is_first:
            self._is_first = False
            self.only_reads = REPORT.unpack_from(data)[0] == ONLY_READS
            if self.only_reads and whole == REPORT.size:
                return None
        (offset,) = REPORT.unpack_from(data, whole - REPORT.size)
        if offset < 0:
            raise RemoteProtocolError(
                f"expected the end of a log, found the offset {offset}; is the peer a slave of this kind?"
            )
        return int(offset)

    def take_words(self) -> bytes:
        """What has to be said before anything else."""
        return b""

    def fit(self, offset: int, size_bytes: int) -> int:
        """How much of a piece may go into one frame."""
        return size_bytes

    def header(self, offset: int, size_bytes: int) -> bytes:
        return encode_transfer(offset, size_bytes)


class FrameReader(ABC, Generic[F]):
    """Cuts what a master sends into frames.

    A transport reads into ``room``, so that nothing is copied: ``received`` gives frames with views of it.
    """

    def __init__(self) -> None:
        self._memory = memoryview(bytearray(READ_BYTES))
        # What was handed out ends at the first of these; what has come ends at the second.
        self._start = self._end = 0
        # The size of the frame that is not complete, as far as it is known.
        self._frame_bytes = 0

    @property
    def pending_bytes(self) -> int:
        return self._end - self._start

    def room(self) -> memoryview:
        """Where the next bytes belong. The views of earlier frames are void after this."""
        if self._start:
            pending = self.pending_bytes
            self._memory[:pending] = self._memory[self._start : self._end]
            self._start, self._end = 0, pending
        if self._frame_bytes > len(self._memory):
            larger = memoryview(bytearray(self._frame_bytes))
            larger[: self._end] = self._memory[: self._end]
            self._memory = larger
        return self._memory[self._end :]

    def received(self, count: int) -> list[F]:
        """So many bytes came into the room. The frames that are complete now.

        Raises:
            RemoteProtocolError: a header that no master sends.
        """
        self._end += count
        at = self._start
        frames: list[F] = []
        self._frame_bytes = 0
        while at < self._end:
            try:
                size_bytes = self._size(self._memory[at : self._end])
            except RemoteProtocolError:
                self._start = self._end
                raise
            if size_bytes is None:
                break
            if self._end - at < size_bytes:
                self._frame_bytes = size_bytes
                break
            frames.append(self._frame(self._memory[at : at + size_bytes]))
            at += size_bytes
        self._start = at
        return frames

    @abstractmethod
    def _size(self, data: memoryview) -> int | None:
        """The size of the frame that begins here; None: more bytes are needed to tell. Raises RemoteProtocolError."""

    @abstractmethod
    def _frame(self, data: memoryview) -> F:
        """The frame that is exactly here."""


class TransferReader(FrameReader[Piece]):
    """Cuts what a master sends into pieces of the log.

    Args:
        piece_bytes_max: a longer piece is refused before memory is taken for it.
    """

    def __init__(self, piece_bytes_max: int = PIECE_BYTES_MAX) -> None:
        super().__init__()
        self._piece_bytes_max = piece_bytes_max

    def feed(self, data: bytes) -> list[Piece]:
        """``received`` for bytes that are elsewhere. The pieces are copies."""
        pieces: list[Piece] = []
        rest = memoryview(data)
        while rest:
            room = self.room()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            rest = rest[count:]
            pieces += [Piece(one.offset, bytes(one.data)) for one in self.received(count)]
        return pieces

    def _size(self, data: memoryview) -> int | None:
        if len(data) < TRANSFER.size:
            return None
        offset, size_bytes = TRANSFER.unpack_from(data)
        if offset < 0 or not 0 <= size_bytes <= self._piece_bytes_max:
            raise RemoteProtocolError(
                f"expected a piece of at most {self._piece_bytes_max} bytes of a log, "
                f"found offset {offset} and size {size_bytes}; is the peer a master of this kind?"
            )
        return TRANSFER.size + int(size_bytes)

    def _frame(self, data: memoryview) -> Piece:
        return Piece(TRANSFER.unpack_from(data)[0], data[TRANSFER.size :])
