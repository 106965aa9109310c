"""What the slaves of a master have, and what follows for a send that must not be lost with the master. No I/O.

A record is replicated when enough copies of it exist: ``needed`` of them, the master's own included. Which slaves count
is decided here and nowhere else, by what they report:

    stranger   has spoken once, or says the same again. It may fetch a piece of the log to heal a record, or its log may
               have gone another way. It is no slave for anybody.
    replica    reports more than at first, or the very end of the log. Sends may expect it to take what comes next.
    a copy     reports more than at first: it took what it was sent. Only then its word is good for records that wait.

A CometMQ slave asks for the last part of its own log, compares, and reports its end when both agree; so it is a copy
within a round trip, also when nothing is sent. A RocketMQ slave compares nothing and reports its end at first. If that
is the end of this log, it may be so by chance: the log of a former master has records of the same sizes. It is waited
for from then on, and is a copy with the next record. A send that waited for it across the break of its connection, and
was the last one, is answered that the slave was late, though it has the record: rather that than the opposite.

Under a controller a slave says who it is, and its epochs say that its log is the master's: it is a copy at once. There
a record needs copies at certain brokers, all those that may be elected (``Replicas.awaited``), and as many as set.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cometmq.broker.replication.ha_wire import SlaveIdentity
from cometmq.broker.replication.replication_config import ReplicationConfig

EVERYTHING: Final = 1 << 62
COPIES_MIN: Final = 2
"""A SYNC_MASTER has at least one slave to wait for. RocketMQ 5 counts the master alone unless inSyncReplicas says 2."""


def copies_needed(config: ReplicationConfig, *, following: int) -> int:
    """Copies that a record on a SYNC_MASTER needs, the master's own included.

    Args:
        following: how many slaves follow closely now.
    """
    needed = max(config.copies, COPIES_MIN)
    return max(needed, following + 1) if config.waits_for_all else needed


class Outlook(Enum):
    """What a send can expect from the slaves."""

    WAIT = "wait"
    """Enough slaves follow closely: answer when they have the record, or when the time is over."""
    NOT_AVAILABLE = "not available"
    """Too few slaves are there, or they are too far behind: answer at once that the record has too few copies."""


@dataclass(slots=True)
class Replica:
    """A connection that has reported.

    Args:
        first: what it reported first.
        confirmed: what it reported last: the end of its log.
        since: its log was empty and is given the records from here on; it will not have the older ones.
    """

    name: str
    first: int
    confirmed: int
    since: int
    is_known: bool = False
    """No stranger any more."""
    is_copy: bool = False
    slave: SlaveIdentity | None = None
    """Who it is, where the wire tells."""
    is_doubted: bool = False
    """Another connection came from the same host: this one may be its predecessor, whose end nobody told. It counts
    again when it says something."""

    @property
    def host(self) -> str:
        return self.name.rpartition(":")[0]


class Replicas:
    """The connected slaves by connection.

    Args:
        behind_max: a slave that lacks more bytes than this does not count as following.
    """

    def __init__(self, behind_max: int) -> None:
        self.behind_max = behind_max
        self.awaited: frozenset[int] | None = None
        """Under a controller: the ids of the slaves that must have a record before it counts."""
        self._table: dict[Hashable, Replica] = {}

    def __len__(self) -> int:
        return len(self.all)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._table and self._table[key].is_known

    @property
    def all(self) -> list[Replica]:
        return [one for one in self._table.values() if one.is_known]

    @property
    def log_ends(self) -> dict[int, int]:
        """Under a controller: where the logs of slaves that may become masters end, by id."""
        return {
            one.slave.broker_id: one.confirmed
            for one in self._table.values()
            if one.slave is not None and not one.slave.is_learner
        }

    def needed(self, config: ReplicationConfig, log_end: int) -> int:
        """Copies that a record on a SYNC_MASTER needs, the master's own included."""
        if self.awaited is not None:
            return max(config.copies, 1 + len(self.awaited))
        return copies_needed(config, following=self.following(log_end))

    def reported(self, key: Hashable, name: str, offset: int, log_end: int, since: int = 0) -> None:
        """A peer has the log up to ``offset``. What it said before may be taken back: it may have lost its disk.

        Args:
            log_end: where the master's log ends.
            since: see ``Replica``; of interest when it reports for the first time.
        """
        replica = self._table.setdefault(key, Replica(name, offset, offset, since))
        replica.confirmed = offset
        replica.is_doubted = False
        replica.is_copy |= offset > replica.first
        if not replica.is_known and (replica.is_copy or offset == log_end):
            replica.is_known = True
            for one in self._table.values():
                if one is not replica and one.host == replica.host:
                    one.is_doubted = True

    def identified(self, key: Hashable, name: str, offset: int, slave: SlaveIdentity) -> None:
        """The same for a peer that said who it is, and whose epochs agree."""
        replica = self._table.get(key)
        if replica is None:
            for other, one in list(self._table.items()):
                # Its earlier connection, whose end nobody told.
                if one.slave is not None and one.slave.broker_id == slave.broker_id:
                    del self._table[other]
            replica = self._table[key] = Replica(
                name, offset, offset, since=0, is_known=True, is_copy=True, slave=slave
            )
        replica.confirmed = offset

    def left(self, key: Hashable) -> None:
        self._table.pop(key, None)

    def copied_to(self, needed: int, waiting: int | None = None) -> int | None:
        """Up to where the log has ``needed`` copies, the master's included; None when there are too few slaves.

        Args:
            waiting: the end of the first record that somebody waits for. Slaves that will never have it do not count.
        """
        if self.awaited is not None:
            return self._copied_to_awaited(needed)
        if needed < 2:
            return None
        confirmed = [
            one.confirmed
            for one in self._table.values()
            if one.is_copy and not one.is_doubted and (waiting is None or one.since < waiting)
        ]
        if len(confirmed) < needed - 1:
            return None
        return sorted(confirmed, reverse=True)[needed - 2]

    def following(self, log_end: int) -> int:
        """How many slaves are no further behind than ``behind_max``; under a controller, of those that are awaited."""
        if self.awaited is not None:
            return len(self.awaited & self.log_ends.keys())
        return sum(log_end - one.confirmed <= self.behind_max for one in self.all)

    def outlook(self, needed: int, log_end: int) -> Outlook:
        if self.awaited is not None:
            # A member that is gone comes back, or the controller lets it go: both within the time of a send.
            has_enough = len(self.awaited | self.log_ends.keys()) >= needed - 1
        else:
            has_enough = self.following(log_end) >= needed - 1
        if has_enough:
            return Outlook.WAIT
        return Outlook.NOT_AVAILABLE

    def _copied_to_awaited(self, needed: int) -> int | None:
        assert self.awaited is not None
        ends = self.log_ends
        if len(ends) < needed - 1 or not self.awaited <= ends.keys():
            return None
        marks = [ends[one] for one in self.awaited]
        if needed > 1:
            marks.append(sorted(ends.values(), reverse=True)[needed - 2])
        return min(marks, default=EVERYTHING)
