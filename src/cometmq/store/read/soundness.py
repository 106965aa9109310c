"""Which records are checked before they are handed out, and what happens if one is damaged.

A check costs a half to one microsecond for a record of a kilobyte, as much as the rest of a read. So it is done where
it can find something: a record can rot on the disk, not in memory. What this process appended among the last
bytes of the log is still in memory. Everything else is checked when it is read, and then taken as sound for a while,
so that many readers of one range cost one check.

Thread rule: the owner of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq.base.ports import Clock
from cometmq.store.files.record_scan import Scanned
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.log.damage import Damage, Damages, RecordBeingHealed, damage_of
from cometmq.store.log.record_check import (
    are_alike_and_sound,
    are_plainly_sound,
    is_sound,
    is_sound_as_marked,
)
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.queue_check import all_lead_to
from cometmq.store.store_config import ReadConfig

REMEMBERED_MAX: Final = 32_768
"""Records that were checked, in each of two generations: about 5 MB together."""
REMEMBERED_SECONDS: Final = 60.0


class Soundness:
    def __init__(
        self, log: CommitLog, damages: Damages, config: ReadConfig, memory_bytes: int, clock: Clock
    ) -> None:
        self._log = log
        self._damages = damages
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._appended_from = 0
        self._recent: set[int] = set()
        self._older: set[int] = set()
        self._renewed_at = 0.0
        self.apply(config)

    def apply(self, config: ReadConfig) -> None:
        self._is_on = config.check_crc
        self.checks_marks = config.check_marks
        """Whether records that carry a checksum of the whole record are held against it, too."""
        self._check = is_sound_as_marked if config.check_marks else is_sound
        cached_bytes = self._memory_bytes * config.memory_percent // 100
        self.hot_bytes = min(config.unchecked_bytes, cached_bytes)
        """How many of the last bytes of the log are in memory, if this process has appended them."""
        self._damages.wait_seconds = config.heal_wait_ms / 1000
        self._renew()

    def trust_what_comes(self) -> None:
        """What is in the log now comes from the disk; what is appended from now on does not."""
        self._appended_from = self._log.end
        self._recent, self._older = set(), set()

    def distrust(self, record: Scanned) -> None:
        """A record came damaged from another log: check everything up to its end, though it was just appended."""
        self._appended_from = max(self._appended_from, record.physical_offset + record.size_bytes)
        self._damages.found(damage_of(record))

    @property
    def hot_from(self) -> int:
        """Records from here on need no check."""
        return self.in_memory_from if self._is_on else 0

    @property
    def in_memory_from(self) -> int:
        """Records from here on are in memory: this process has appended them a short while ago."""
        return max(self._appended_from, self._log.end - self.hot_bytes)

    def age(self) -> None:
        """To be called every few seconds: what was checked long ago may have been read from the disk again since."""
        if self._clock.monotonic() - self._renewed_at >= REMEMBERED_SECONDS:
            self._renew()

    def are_known(self, places: Sequence[int]) -> bool:
        """Whether all of these were checked a short while ago."""
        return self._recent.issuperset(places)

    def are_alike_and_sound(
        self,
        queue: ConsumeQueue,
        queue_offset: int,
        places: Sequence[int],
        size_bytes: int,
        stretches: Sequence[memoryview],
    ) -> bool:
        """``are_sound`` for stretches of records of one size. Some that are sound it does not recognize."""
        is_sound = not self.checks_marks and are_alike_and_sound(
            stretches, size_bytes, places, queue.queue_id, queue_offset, queue.topic_field
        )
        if is_sound:
            self._remember(places)
        return is_sound

    def are_sound(
        self,
        queue: ConsumeQueue,
        queue_offset: int,
        places: Sequence[int],
        sizes: Sequence[int],
        records: Sequence[memoryview],
    ) -> bool:
        """Whether all of these consecutive messages of a queue are undamaged. Does not say which one is not."""
        is_plain = not self.checks_marks and are_plainly_sound(
            records, places, queue.queue_id, queue_offset, queue.topic_field
        )
        if not is_plain:
            if not all(map(self._check, records, places)):
                return False
            if not all_lead_to(queue, queue_offset, [*records], tuple(sizes)):
                return False
        self._remember(places)
        return True

    def is_sound(self, place: int, record: memoryview) -> bool:
        """Whether a record that its queue entry leads to is undamaged."""
        if place in self._recent or place in self._older:
            return True
        if self._check(record, place):
            self._remember((place,))
            return True
        return False

    def waits_for(
        self, queue: ConsumeQueue, queue_offset: int, place: int, size_bytes: int
    ) -> bool:
        """A message of a queue is damaged. Whether to wait until it is healed, rather than go on without it."""
        return self._damages.found(
            Damage(place, size_bytes, queue.topic, queue.queue_id, queue_offset)
        )

    def record(self, place: int, *, expected: bool = False) -> memoryview | None:
        """The whole record that starts at an offset of the log; None if none does, or if it is damaged.

        Args:
            expected: a record was there, so if there is none now, it is damaged.

        Raises:
            RecordBeingHealed: it is damaged, and may soon no longer be.
        """
        found = self._log.record(place)
        if found is None:
            if expected and self._log.start <= place < self._log.end and self._is_on:
                self._wait_or_go_on(place, self._damages.found(Damage(place)))
            return None
        if place >= self.hot_from or place in self._recent or place in self._older:
            return found
        if self._check(found, place):
            self._remember((place,))
            return found
        self._wait_or_go_on(place, self._damages.found_record(found, place))
        return None

    def _wait_or_go_on(self, place: int, waits: bool) -> None:
        if waits:
            raise RecordBeingHealed(
                f"the record at {place} is damaged and a replica is being asked for it; try again"
            )

    def _remember(self, places: Sequence[int]) -> None:
        if len(self._recent) + len(places) > REMEMBERED_MAX:
            self._renew()
        self._recent.update(places)

    def _renew(self) -> None:
        self._older, self._recent = self._recent, set()
        self._renewed_at = self._clock.monotonic()
