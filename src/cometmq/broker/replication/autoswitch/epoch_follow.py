"""How a slave follows under a controller: the epochs tell what its log has in common with its master's. No I/O.

    connected -> says who it is -> the master tells its epochs
                   this log goes further than both have in common -> cut the tail, connect again
                   else -> as without a controller (``follow``): compare the ends, then append what comes

The epochs are enough as long as nobody loses the end of a log. A master that lost power, and goes on in the same epoch,
has other bytes at the same place. So the ends are compared all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cometmq.broker.replication.autoswitch.epochs import Epoch, EpochTable, common_end
from cometmq.broker.replication.autoswitch.switch_wire import (
    MasterFrame,
    MasterHandshake,
    Transfer,
    encode_slave_handshake,
    table_of,
)
from cometmq.broker.replication.follow import (
    REPORT_SECONDS,
    SILENCE_SECONDS,
    Append,
    CutTail,
    Follow,
    Instruction,
    Note,
    OwnLog,
    Reconnect,
    Refuse,
    Say,
)
from cometmq.broker.replication.ha_wire import SlaveIdentity


@dataclass(frozen=True, slots=True)
class Begins:
    """From here on the log is of this epoch."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class NeverWere:
    """Reigns that began at ``end`` or behind it are not the master's."""

    end: int


class EpochFollow:
    """One slave, over any number of connections.

    Args:
        own: the epochs of its log, now.
        identity: who it says to be.
    """

    def __init__(
        self,
        log: OwnLog,
        file_bytes: int,
        own: Callable[[], EpochTable],
        identity: Callable[[], SlaveIdentity],
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._log = log
        self._silence_seconds = silence_seconds
        self._follow = Follow(log, file_bytes, silence_seconds)
        self._own = own
        self._identity = identity
        self._master: EpochTable | None = None
        self._connected_at = self._asked_at = 0.0
        self._confirmed = 0

    @property
    def is_following(self) -> bool:
        return self._master is not None and self._follow.is_following

    @property
    def confirmed(self) -> int:
        """Up to where all that count have the log, as far as this one has it."""
        return min(self._confirmed, self._log.end)

    @property
    def shown_to(self) -> int | None:
        """A master that is elected has what is confirmed. The rest is cut if it does not have it."""
        return self.confirmed

    def connected(self, now: float) -> list[Instruction]:
        self._master = None
        self._confirmed = 0
        self._connected_at = now
        return [self._ask(now)]

    def lost(self) -> None:
        if self._master is not None:
            self._follow.lost()
            self._master = None

    def came(self, frame: MasterFrame, now: float) -> list[Instruction]:
        if isinstance(frame, MasterHandshake):
            return self._told(frame, now)
        if self._master is None:
            return [Reconnect("the master sent a piece of its log before its epochs")]
        self._confirmed = max(self._confirmed, frame.confirmed)
        instructions = self._follow.came(frame.piece, now)
        appends = any(isinstance(one, Append) for one in instructions)
        is_at_end = frame.piece.offset == self._log.end and not frame.piece.data
        if appends or (is_at_end and (self.is_following or not self._log.end)):
            return [*self._new_epochs(frame), *instructions]
        return instructions

    def tick(self, now: float) -> list[Instruction]:
        """To be called every second or so."""
        if self._master is not None:
            return self._follow.tick(now)
        if now - self._connected_at > self._silence_seconds:
            return [Reconnect(f"the master told no epochs for {self._silence_seconds:g} s")]
        return [self._ask(now)] if now - self._asked_at >= REPORT_SECONDS else []

    def _ask(self, now: float) -> Instruction:
        self._asked_at = now
        return Say(encode_slave_handshake(self._identity()))

    def _told(self, handshake: MasterHandshake, now: float) -> list[Instruction]:
        if self._master is not None:
            # The answer to a question that was asked twice.
            return []
        master, own, end = table_of(handshake), self._own(), self._log.end
        if not len(master):
            return [Reconnect("the master has no epoch yet")]
        # A log without epochs is from before the controller; its end is compared.
        common = common_end(own, end, master, handshake.log_end) if len(own) else end
        if common is None:
            return [
                Refuse(
                    f"this log and the master's have no epoch in common: {own} here, {master} there. Empty this "
                    f"store to copy the master's"
                )
            ]
        if common < self._log.start:
            return [
                Refuse(
                    f"this log begins at {self._log.start}, and has nothing behind {common} in common with the "
                    f"master's. Empty this store to copy the master's"
                )
            ]
        if common < end:
            return [CutTail(common, f"{own} here, {master} there: the same up to {common}")]
        self._master = master
        instructions = self._follow.connected(now)
        if own.last is not None and own.last not in list(master):
            return [Note(NeverWere(common)), *instructions]
        return instructions

    def _new_epochs(self, frame: Transfer) -> list[Instruction]:
        """What to note before the frame's bytes are appended."""
        own = self._own()
        if frame.epoch.number <= own.last_number:
            return []
        if len(own) or self._master is None:
            return [Note(Begins(frame.epoch))]
        earlier = [one for one in self._master if one.number < frame.epoch.number]
        return [Note(Begins(one)) for one in (*earlier, frame.epoch)]
