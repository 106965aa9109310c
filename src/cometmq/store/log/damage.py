"""Records that are found to be damaged: noted once, told to the operator, and offered to whoever can heal them.

A damaged record is never handed out. While somebody is fetching it from a replica, readers wait, but not for long;
after that they go on without it. Its bytes stay as they are until they are healed.

Thread rule: the owner of the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from cometmq.base.errors import StoreError
from cometmq.base.ports import Clock
from cometmq.store.files.record_scan import Scanned, scan_record
from cometmq.store.log.commit_log import CommitLog

logger = logging.getLogger("cometmq.store")

KNOWN_MAX: Final = 4096
"""Damaged records that are remembered; more are counted again when they are read again."""


class RecordBeingHealed(StoreError):
    """The record is damaged, and a replica is being asked for it: try again."""


class Damage(NamedTuple):
    """A damaged record, and what is known about it from elsewhere; what is not known is 0, empty or -1."""

    place: int
    size_bytes: int = 0
    topic: str = ""
    queue_id: int = -1
    queue_offset: int = -1


def damage_of(record: Scanned) -> Damage:
    """A record whose body is damaged: the rest says which one it is."""
    topic = record.topic.decode(errors="replace")
    return Damage(
        record.physical_offset, record.size_bytes, topic, record.queue_id, record.queue_offset
    )


Healer = Callable[[Damage], bool]
"""Asks replicas for a record. Whether it will: it has somebody to ask, and has not just failed."""


class Damages:
    """Attributes:
    healer: who is told of each damaged record; None when nobody can heal.
    wait_seconds: how long readers wait for it.
    """

    def __init__(self, log: CommitLog, clock: Clock) -> None:
        self.healer: Healer | None = None
        self.wait_seconds = 0.0
        self.found_count = 0
        self.healed_count = 0
        self._log = log
        self._clock = clock
        self._known: dict[int, Damage] = {}
        # Those that somebody is healing, and until when readers wait for it.
        self._waited: dict[int, float] = {}

    @property
    def known(self) -> list[Damage]:
        """Those that are not healed, as far as they are remembered, in the order they were found."""
        return list(self._known.values())

    def found(self, damage: Damage) -> bool:
        """Note a damaged record. Whether it is worth waiting for it."""
        place = damage.place
        if place not in self._known:
            self._note(damage)
        until = self._waited.get(place)
        if until is None:
            if self.healer is None or not self.healer(damage):
                return False
            until = self._waited[place] = self._clock.monotonic() + self.wait_seconds
        return self._clock.monotonic() < until

    def found_record(self, record: memoryview, place: int) -> bool:
        """The same for a record about which nothing is known but what its damaged bytes say."""
        scanned = scan_record(record, 0, place, check_crc=False)
        return self.found(Damage(place) if scanned is None else damage_of(scanned))

    def forget_from(self, end: int) -> None:
        """The log was cut at ``end``."""
        for place in [place for place in self._known if place >= end]:
            del self._known[place]
            self._waited.pop(place, None)

    def healed(self, place: int) -> None:
        damage = self._known.pop(place, None)
        self._waited.pop(place, None)
        self.healed_count += 1
        logger.warning(
            "record healed %s", self._where(damage if damage is not None else Damage(place))
        )

    def given_up(self, place: int) -> None:
        """Nobody could heal it for now: readers go on without it."""
        self._waited.pop(place, None)

    def _note(self, damage: Damage) -> None:
        self.found_count += 1
        if len(self._known) >= KNOWN_MAX:
            dropped = next(iter(self._known))
            del self._known[dropped]
            self._waited.pop(dropped, None)
        self._known[damage.place] = damage
        logger.error("record damaged %s", self._where(damage))

    def _where(self, damage: Damage) -> str:
        file_start = damage.place - damage.place % self._log.file_bytes
        return (
            f"path={self._log.row.path(file_start)} position={damage.place - file_start} "
            f"offset={damage.place} topic={damage.topic or '?'} queue={damage.queue_id} "
            f"queue_offset={damage.queue_offset}"
        )

    def __repr__(self) -> str:
        return f"<Damages found={self.found_count} healed={self.healed_count}>"
