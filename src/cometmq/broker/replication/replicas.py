"""What the slaves of a master have, and what follows for a send that must not be lost with the master. No I/O.

A record is replicated when enough copies of it exist: ``needed`` of them, the master's own included. Which slaves count
is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from cometmq.broker.replication.replication_config import ReplicationConfig

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
    """A connected slave. ``confirmed`` is the end of its log as it last said, ``since`` where it was begun here."""

    name: str
    confirmed: int
    since: int
    has_agreed: bool = False
    """It took what it was sent. What it says first is where its log ends, and may be the end of another log."""
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
        self._table: dict[Hashable, Replica] = {}

    def __len__(self) -> int:
        return len(self._table)

    @property
    def all(self) -> list[Replica]:
        return list(self._table.values())

    def joined(self, key: Hashable, name: str, confirmed: int, since: int = 0) -> None:
        """
        Args:
            since: its log was empty and is given the records from here on; it will not have the older ones.
        """
        new = Replica(name, confirmed, since)
        for one in self._table.values():
            if one.host == new.host:
                one.is_doubted = True
        self._table[key] = new

    def confirmed(self, key: Hashable, offset: int) -> None:
        """A slave has the log up to ``offset``. What it said before may be taken back: it may have lost its disk."""
        replica = self._table[key]
        replica.has_agreed |= offset > replica.confirmed
        replica.confirmed = offset
        replica.is_doubted = False

    def left(self, key: Hashable) -> None:
        self._table.pop(key, None)

    def copied_to(self, needed: int, waiting: int | None = None) -> int | None:
        """Up to where the log has ``needed`` copies, the master's included; None when there are too few slaves.

        Args:
            waiting: the end of the first record that somebody waits for. Slaves that will never have it do not count.
        """
        if needed < 2:
            return None
        confirmed = [
            one.confirmed
            for one in self._table.values()
            if one.has_agreed and not one.is_doubted and (waiting is None or one.since < waiting)
        ]
        if len(confirmed) < needed - 1:
            return None
        return sorted(confirmed, reverse=True)[needed - 2]

    def following(self, log_end: int) -> int:
        """How many slaves are no further behind than ``behind_max``."""
        return sum(log_end - one.confirmed <= self.behind_max for one in self._table.values())

    def outlook(self, needed: int, log_end: int) -> Outlook:
        if self.following(log_end) >= needed - 1:
            return Outlook.WAIT
        return Outlook.NOT_AVAILABLE
