"""The SyncStateSet of a master: the brokers that have everything that was acknowledged. No I/O.

Any of them may be elected when the master is gone, so a send is acknowledged when all of them have the record. Only the
controller changes the set; the master proposes.

    joining    a slave that caught up is waited for from now on, and proposed when it has all that is in the log now
    leaving    a member that is gone, or did not catch up for long, is proposed to leave, and waited for until then
    open       a proposal without an answer may have been accepted: both sets are waited for, and it is made again. If
               that is refused, the reason may be that the first was accepted, or it may still be: then the controller
               has to tell the set, some time later

Times are monotonic seconds of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

JOIN_SECONDS_MAX: Final = 3.0
"""Sends wait for a slave that joins. One that does not make it in this time has to catch up first."""

LATE_SECONDS: Final = 10.0
"""How much later a proposal that was given up may still be carried out: it waits in a queue, or for a quorum."""


class Proposal(NamedTuple):
    """A new set for the controller to decide on, and the epoch of the present one."""

    members: frozenset[int]
    epoch: int


class _Join(NamedTuple):
    log_end: int
    since: float


class SyncState:
    """
    Args:
        behind_seconds_max: a member that did not catch up for so long has to leave.
    """

    def __init__(self, behind_seconds_max: float) -> None:
        self.behind_seconds_max = behind_seconds_max
        self.own_id = 0
        self.members: frozenset[int] = frozenset()
        """As the controller last told, this broker included."""
        self.epoch = 0
        self._proposed: frozenset[int] | None = None
        self._is_asked = False
        self._is_doubtful = False
        self._refused_at: float | None = None
        self._joining: dict[int, _Join] = {}
        self._caught_up_at: dict[int, float] = {}
        self._end_before: int | None = None

    @property
    def awaited(self) -> frozenset[int]:
        """The other brokers that must have a record before it is acknowledged."""
        return (self.members | (self._proposed or frozenset()) | self._joining.keys()) - {
            self.own_id
        }

    def begin(
        self, own_id: int, members: frozenset[int], epoch: int, *, goes_on: bool = False
    ) -> None:
        """This broker's reign begins, with the set that the election left; or goes on after a doubt."""
        if goes_on and epoch < self.epoch:
            # The answer was overtaken by a change of the set.
            members, epoch = self.members, self.epoch
        if epoch != self.epoch:
            self._close()
        # Else what was proposed before the doubt may still be accepted.
        self.own_id = own_id
        self.members = members
        self.epoch = epoch
        self._is_asked = False
        self._joining.clear()
        self._caught_up_at.clear()
        self._end_before = None

    def told(self, members: frozenset[int], epoch: int, asked_at: float) -> None:
        """The controller tells the set. What is older than what is known does not count."""
        if epoch > self.epoch:
            self.members, self.epoch = members, epoch
            # It was accepted, or comes too late to be.
            self._close()
        elif (
            epoch == self.epoch
            and self._refused_at is not None
            and asked_at > self._refused_at + LATE_SECONDS
        ):
            # It is the old set, after all that was proposed.
            self._close()

    def refused(self, now: float) -> None:
        """The controller does not want the proposal."""
        self._is_asked = False
        if self._is_doubtful:
            self._refused_at = now
        else:
            self._close()

    def unanswered(self) -> None:
        """Nobody knows what has become of the proposal."""
        self._is_asked = False
        self._is_doubtful = True

    def accepted(self, members: frozenset[int], epoch: int, now: float) -> None:
        self._is_asked = False
        self.told(members, epoch, now)

    def look(self, slaves: Mapping[int, int], log_end: int, now: float) -> Proposal | None:
        """What to propose now. To be called every second or so.

        Args:
            slaves: where the logs of the connected slaves end, by id, without learners.
        """
        for slave, end in slaves.items():
            if end >= (log_end if self._end_before is None else self._end_before):
                self._caught_up_at[slave] = now
        self._end_before = log_end
        if self._is_asked or self._refused_at is not None:
            return None
        if self._proposed is None:
            staying = {
                one for one in self.members if one == self.own_id or self._stays(one, slaves, now)
            }
            chosen = frozenset(staying | self._joined(slaves, log_end, now))
            if chosen == self.members:
                return None
            self._proposed = chosen
            for one in chosen:
                self._joining.pop(one, None)
        self._is_asked = True
        return Proposal(self._proposed, self.epoch)

    def _close(self) -> None:
        """There is no proposal any more of which nobody knows."""
        self._proposed = None
        self._is_doubtful = False
        self._refused_at = None

    def _stays(self, member: int, slaves: Mapping[int, int], now: float) -> bool:
        if member not in slaves:
            return False
        return now - self._caught_up_at.setdefault(member, now) <= self.behind_seconds_max

    def _joined(self, slaves: Mapping[int, int], log_end: int, now: float) -> set[int]:
        """Slaves that have what is in the log, and will be waited for."""
        for slave, join in list(self._joining.items()):
            if slave not in slaves or now - join.since > JOIN_SECONDS_MAX:
                del self._joining[slave]
        for slave in slaves.keys() - self.members - self._joining.keys():
            if self._caught_up_at.get(slave) == now:
                self._joining[slave] = _Join(log_end, now)
        return {one for one, join in self._joining.items() if slaves[one] >= join.log_end}

    def __repr__(self) -> str:
        return (
            f"<SyncState {sorted(self.members)} epoch={self.epoch} awaited={sorted(self.awaited)}>"
        )
