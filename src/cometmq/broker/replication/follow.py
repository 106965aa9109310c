"""How a slave follows its master: first it makes sure that both logs agree, then it appends what comes. No I/O.

    connected -> comparing: asks for the end of its own log and compares what comes with what it has
                   all the same ------------> following: appends, and reports the new end
                   differs, or master ends -> cut the tail from there on, connect again
                   differs from the start --> look further back, connect again
    nothing of the log agrees, or the master no longer has what comes next -> refused
    differs in a record that is damaged there and good here -> refused: a good record is not given for a damaged one

The wire has no epochs and no identity. Without the comparison a slave whose log went another way, because it was a
master itself for a while, would append new records behind records that its master does not have.

``slave_link`` carries the instructions out. Times are monotonic seconds of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from cometmq.broker.replication.ha_wire import Piece

REPORT_SECONDS: Final = 5.0
"""A slave says something at least this often; masters disconnect those who are silent for 20 s."""
SILENCE_SECONDS: Final = 20.0
"""A master that sends nothing for so long is gone, or the network is: connect again. A setting may say otherwise."""
LOOK_BACK_BYTES: Final = 64 * 1024
"""How much of the log's end is compared at first; more when nothing of it agrees."""
LOOK_BACK_FACTOR: Final = 16
QUIET_HEARTBEATS: Final = 2
"""So many heartbeats in a row say that the master's log ends. One may come before the data that was asked for."""


class OwnLog(Protocol):
    """The slave's log, as far as following looks at it."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Bytes that the log holds."""
        ...

    def record_from(self, offset: int) -> int:
        """Where the first record at or behind ``offset`` begins; ``end`` when there is none."""
        ...

    def record_around(self, offset: int, low: int) -> int:
        """Where the record begins that holds the byte at ``offset``; ``low`` is where an earlier one begins."""
        ...

    def is_sound(self, offset: int) -> bool:
        """Whether the record that begins at ``offset`` is undamaged."""
        ...

    def judge(self, offset: int, data: bytes | bytearray) -> bool | None:
        """The same of the master's record at ``offset``, from its bytes; None: more of them are needed to tell."""
        ...


@dataclass(slots=True)
class _Dispute:
    """A record that is good here and another at the master's, with the bytes of the master's that have come."""

    at: int
    theirs: bytearray


@dataclass(frozen=True, slots=True)
class Report:
    offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """At once: the data may be a view of memory that is used again."""

    offset: int
    data: bytes | memoryview


@dataclass(frozen=True, slots=True)
class CutTail:
    """Remove the log from ``offset`` on, after a copy of it was put aside; then connect again."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Reconnect:
    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """This slave cannot follow this master. Somebody has to decide what to do."""

    reason: str


@dataclass(frozen=True, slots=True)
class Say:
    """Send these bytes, whatever they mean."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """Something to keep before anything else is done, for whoever owns it: ``epoch_follow``."""

    what: object


Instruction = Report | Append | CutTail | Reconnect | Refuse | Say | Note


class Follow:
    """One slave, over any number of connections."""

    def __init__(
        self, log: OwnLog, file_bytes: int, silence_seconds: float = SILENCE_SECONDS
    ) -> None:
        self._log = log
        self._file_bytes = file_bytes
        self._silence_seconds = silence_seconds
        self._look_back = LOOK_BACK_BYTES
        self._is_following = False
        self._dispute: _Dispute | None = None
        self._asked_from = 0
        self._lowest = 0
        self._first = 0
        self._next = 0
        self._quiet = 0
        self._heard_at = 0.0
        self._reported_at = 0.0

    @property
    def is_following(self) -> bool:
        """Both logs were found to agree, and new records are appended."""
        return self._is_following

    @property
    def shown_to(self) -> int | None:
        """This wire does not tell what other slaves have."""
        return None

    def connected(self, now: float) -> list[Instruction]:
        log = self._log
        self._is_following = False
        self._dispute = None
        self._quiet = 0
        self._heard_at = now
        self._asked_from = log.end
        self._lowest = log.start
        if log.end > log.start:
            self._asked_from = log.record_from(max(log.start, log.end - self._look_back))
            if self._asked_from >= log.end:
                self._asked_from = log.start
        # To masters 0 means an empty log: they may answer with their last file. A log that is not empty asks for its
        # second byte.
        self._first = self._next = max(self._asked_from, min(log.end, 1))
        return [self._report(self._first, now)]

    def lost(self) -> None:
        """The connection is gone. A master that did not send what it was asked for does not have it."""
        if not self._is_following and self._quiet and self._next == self._first:
            self._look_further_back()

    def came(self, piece: Piece, now: float) -> list[Instruction]:
        self._heard_at = now
        if not self._is_following and self._asked_from < self._log.start:
            return [Reconnect("this broker deleted what is compared")]
        if not piece.data:
            return self._heartbeat(piece.offset, now)
        self._quiet = 0
        if self._is_following:
            return self._append(piece, now)
        if not self._log.end:
            return self._begin(piece, now)
        return self._compare(piece, now)

    def tick(self, now: float) -> list[Instruction]:
        """To be called every second or so."""
        if now - self._heard_at > self._silence_seconds:
            return [Reconnect(f"the master sent nothing for {self._silence_seconds:g} s")]
        if now - self._reported_at >= REPORT_SECONDS:
            return [self._report(self._log.end if self._is_following else self._first, now)]
        return []

    def _begin(self, piece: Piece, now: float) -> list[Instruction]:
        if piece.offset % self._file_bytes:
            return [
                self._sizes_differ(
                    f"the master's log begins at {piece.offset}, which is no multiple of this broker's"
                )
            ]
        self._is_following = True
        return self._appended(piece, now)

    def _append(self, piece: Piece, now: float) -> list[Instruction]:
        end = self._log.end
        if piece.offset > end:
            return [self._gone(piece.offset)]
        if piece.offset != end:
            return [Reconnect(f"the master sent offset {piece.offset}, expected {end}")]
        return self._appended(piece, now)

    def _appended(self, piece: Piece, now: float) -> list[Instruction]:
        if piece.offset // self._file_bytes != (piece.end - 1) // self._file_bytes:
            return [
                self._sizes_differ(
                    f"the master sent {piece.offset} to {piece.end} in one piece, across the border of this broker's"
                )
            ]
        return [Append(piece.offset, piece.data), self._report(piece.end, now)]

    def _compare(self, piece: Piece, now: float) -> list[Instruction]:
        log = self._log
        if piece.offset > self._next:
            if piece.offset >= log.end or piece.offset % self._file_bytes:
                return [self._gone(piece.offset)]
            # The master's log begins behind what was asked for. The rest of both can be compared all the same.
            self._lowest = self._asked_from = self._first = self._next = piece.offset
        if piece.offset != self._next:
            return [Reconnect(f"the master sent offset {piece.offset}, expected {self._next}")]
        data = bytes(piece.data)
        if self._dispute is not None:
            self._next += len(data)
            self._dispute.theirs += data
            return self._settle(self._dispute)
        known = min(len(data), log.end - piece.offset)
        own = log.read(piece.offset, known)
        if own != data[:known]:
            return self._differs(piece.offset, data, piece.offset + _first_difference(own, data))
        self._next += known
        if self._next < log.end:
            return []
        self._is_following = True
        self._look_back = LOOK_BACK_BYTES
        if rest := data[known:]:
            return self._appended(Piece(self._next, rest), now)
        return [self._report(log.end, now)]

    def _differs(self, start: int, data: bytes, offset: int) -> list[Instruction]:
        """The master's bytes from ``start`` on are not those of this log from ``offset`` on."""
        log = self._log
        at = log.record_around(offset, self._asked_from)
        # What was asked for may not even begin a record in the master's log.
        if at == self._asked_from or not log.is_sound(at):
            return [self._give_way(at)]
        # What came of it in earlier pieces was the same as here.
        before = log.read(at, max(start - at, 0))
        self._dispute = _Dispute(at, bytearray(before + data[max(at - start, 0) :]))
        self._next = start + len(data)
        return self._settle(self._dispute)

    def _settle(self, dispute: _Dispute) -> list[Instruction]:
        is_sound = self._log.judge(dispute.at, dispute.theirs)
        if is_sound is None:
            return []
        return [self._give_way(dispute.at) if is_sound else _damaged(dispute.at)]

    def _give_way(self, at: int) -> Instruction:
        """The record at ``at`` is not the master's."""
        if at > self._asked_from:
            return CutTail(at, f"the master's log goes on differently from {at} on")
        if self._asked_from <= self._lowest:
            return Refuse(
                f"nothing of this log agrees with the master's: the record at {at} is another. Is it the master of "
                f"another broker? Correct its address, or empty this store to copy the master's"
            )
        self._look_further_back()
        return Reconnect(f"the record at {at} differs from the master's: looking further back")

    def _heartbeat(self, offset: int, now: float) -> list[Instruction]:
        if self._is_following:
            if offset > self._log.end:
                return [self._gone(offset)]
            return []
        if not self._log.end:
            return []
        if offset >= self._log.end and offset > self._next:
            return [self._gone(offset)]
        if offset == self._log.end == self._log.start:
            # An empty log that does not start at 0 has nothing to compare, and goes on where it is.
            self._is_following = True
            return []
        self._quiet += 1
        if self._quiet < QUIET_HEARTBEATS and offset >= self._next:
            return []
        if self._dispute is not None:
            # Logs end with a whole record.
            return [_damaged(self._dispute.at)]
        if self._next > self._first:
            return [CutTail(self._next, f"the master's log ends at {self._next}")]
        if self._asked_from <= self._lowest:
            return [
                Refuse(
                    f"the master's log ends before this one begins at {self._log.start}. Is it the right master? "
                    f"Correct its address, or empty this store to copy the master's"
                )
            ]
        self._quiet = 0
        self._look_further_back(offset)
        return [Reconnect("the master's log ends earlier: looking further back")]

    def _sizes_differ(self, what: str) -> Refuse:
        return Refuse(
            f"{what} mappedFileSizeCommitLog {self._file_bytes}; both need the same. Correct it, and empty this store"
        )

    def _look_further_back(self, master_end: int | None = None) -> None:
        """Next time; at once far enough when the master said where its log ends."""
        log_bytes = self._log.end - self._log.start
        missing = 0 if master_end is None else self._log.end - master_end
        self._look_back = min(
            max(self._look_back * LOOK_BACK_FACTOR, missing + LOOK_BACK_BYTES),
            max(log_bytes, LOOK_BACK_BYTES),
        )

    def _gone(self, master_start: int) -> Refuse:
        return Refuse(
            f"this log ends at {self._log.end}, and the master's begins at {master_start}: what lies between was "
            f"deleted there. Empty this store to copy the master's"
        )

    def _report(self, offset: int, now: float) -> Report:
        self._reported_at = now
        return Report(offset)


def _damaged(at: int) -> Refuse:
    return Refuse(
        f"the record at {at} is damaged at the master, and good here: nothing is cut. It is healed from a replica when "
        f"it is read there; else let a broker with a good log be the master"
    )


def _first_difference(own: bytes, other: bytes) -> int:
    low, high = 0, len(own)
    # By halves: comparing slices is a hundred times as fast as comparing bytes one by one.
    while high - low > 1:
        middle = (low + high) // 2
        if own[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low
