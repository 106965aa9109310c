"""What a master sends to one slave, and when. No I/O, no clock: times are monotonic seconds of the caller.

    connected -> the slave reports the end of its log -> pieces from there on; a report after each that it has stored

``master_link`` carries it out. What the reports mean for sends is decided in ``replicas``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cometmq.base.errors import RemoteProtocolError


class LogSpan(NamedTuple):
    """What the master's log holds: from ``start`` up to ``end``, in files of ``file_bytes``."""

    start: int
    end: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Args:
    piece_bytes: the most that one frame carries.
    heartbeat_seconds: a slave is sent something at least this often.
    silence_seconds: a slave that says nothing for so long is disconnected.
    from_last_file: a slave with an empty log gets the last file only, not everything that is there.
    """

    piece_bytes: int
    heartbeat_seconds: float
    silence_seconds: float
    from_last_file: bool = False


class Feed:
    def __init__(self, limits: FeedLimits, now: float) -> None:
        self._limits = limits
        self._heard_at = now
        self._wrote_at = now
        self.from_last_file = limits.from_last_file
        """Some wires let the slave say it."""
        self.next_offset: int | None = None
        """Where the next piece starts; None before the first report."""
        self.confirmed: int | None = None
        """The end of the slave's log as it last said."""

    def reported(self, offset: int, log: LogSpan, now: float) -> None:
        """The slave says that its log ends at ``offset``.

        Raises:
            RemoteProtocolError: it has more than this log: it followed somebody else, or was a master itself.
        """
        self._heard_at = now
        if offset > log.end:
            raise RemoteProtocolError(
                f"its log ends at {offset}, behind the end of ours at {log.end}: it is no slave of this broker, or has "
                f"records that this master does not have. Empty its store, or let a CometMQ slave follow with it, "
                f"which cuts them off and keeps them"
            )
        if self.next_offset is None:
            self.next_offset = self._first_offset(offset, log)
        elif offset > self.next_offset:
            raise RemoteProtocolError(
                f"it confirms the log up to {offset}, but was sent no more than up to {self.next_offset}"
            )
        self.confirmed = offset

    def next_piece(self, log: LogSpan) -> tuple[int, int] | None:
        """Offset and size of what to send now; None when there is nothing, or nobody has asked yet."""
        offset = self.next_offset
        if offset is None or offset >= log.end:
            return None
        if offset < log.start:
            # Deleted meanwhile. The gap is for the slave to see; it cannot go on with what it has.
            offset = self.next_offset = log.start
        to_file_end = log.file_bytes - offset % log.file_bytes
        return offset, min(self._limits.piece_bytes, to_file_end, log.end - offset)

    def sent(self, size_bytes: int, now: float) -> None:
        assert self.next_offset is not None
        self.next_offset += size_bytes
        self._wrote_at = now

    def heartbeat(self, log: LogSpan, now: float, *, is_due: bool = False) -> int | None:
        """The offset to say in a heartbeat that is due now, by the clock or for another reason; None when none is."""
        is_due = is_due or now - self._wrote_at >= self._limits.heartbeat_seconds
        if self.next_offset is None or not is_due:
            return None
        return max(self.next_offset, log.start)

    def is_silent(self, now: float) -> bool:
        return now - self._heard_at > self._limits.silence_seconds

    def _first_offset(self, offset: int, log: LogSpan) -> int:
        if offset:
            return offset
        if self.from_last_file and log.end:
            return max(log.start, (log.end - 1) // log.file_bytes * log.file_bytes)
        return log.start
