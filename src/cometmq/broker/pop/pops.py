"""POP consumption: messages are given out for a time, and acknowledged one by one.

    pop     taken of a queue, the group's position moves on, a check-point says what is out until when
    ack     the check-point's message is done
    change  a new check-point takes a message over from its old one
    time over: ``revival`` puts what is open into the retry topic, or to the dead letters

The event loop does one of these at a time, so no two pops see the same message. All of it is in the revive topic before
it counts: ``recover`` reads from there what the last run knew. State:

    message   waiting --pop--> out --ack--> done
                               out --time over--> waiting in the retry topic, or dead letter

Owned by the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from cometmq.base.ports import Clock
from cometmq.broker.filters.message_filter import ALL_MESSAGES, MessageFilter
from cometmq.broker.metrics.pop_counts import ACK, CHECK_POINT, PopCounts
from cometmq.broker.pop.check_points import Ack, CheckPoint, Key
from cometmq.broker.pop.handle import Handle, Popped
from cometmq.broker.pop.in_flight import InFlight
from cometmq.broker.pop.pop_topics import (
    NORMAL,
    REVIVE_GROUP,
    REVIVE_QUEUE_COUNT,
    SEEN_GROUP,
    kind_of,
)
from cometmq.broker.pop.popped_forms import given_form, queue_offsets
from cometmq.broker.pop.positions import PopPositions
from cometmq.broker.pop.revive_log import ReviveLog
from cometmq.model.messages.record import Record, decode_records
from cometmq.model.names import RETRY_PREFIX
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.read.read_results import GetResult, GetStatus

log = logging.getLogger("cometmq.broker")

SCAN_ROUNDS_MAX: Final = 4
"""How often one pop goes on in a queue whose messages it does not want."""
CARRY_COUNT: Final = 20_000
"""A check-point that has so many records behind it is written again, so that a restart need not read them all."""
CARRY_STEP: Final = 64


class PopRequest(msgspec.Struct, kw_only=True):
    group: str
    topic: str
    """The one that the consumer asks for."""
    places: list[tuple[str, int]]
    """Topics and queues to take of, in order."""
    count_max: int
    invisible_ms: int
    is_from_end: bool = False
    """Where a group begins that has no position: at the end of a queue instead of its start."""
    wanted: MessageFilter = ALL_MESSAGES


class PopResult(msgspec.Struct):
    pop_time: int
    revive_queue_id: int
    popped: list[Popped] = []
    parts: list[bytes | memoryview] = []
    count: int = 0
    size_bytes: int = 0
    rest_count: int = 0
    status: GetStatus = GetStatus.NO_MESSAGE_IN_QUEUE
    is_scanning: bool = False
    """There is more to look at that may or may not be wanted."""


class _Taken(msgspec.Struct):
    topic: str
    queue_id: int
    found: GetResult
    offsets: list[int]


class Pops:
    """Args: wake: called with the time when something new is due."""

    def __init__(
        self,
        *,
        store: MessageStore,
        log: ReviveLog,
        positions: PopPositions,
        clock: Clock,
        counts: PopCounts,
        wake: Callable[[int], None],
    ) -> None:
        self._counts = counts
        self._store = store
        self._log = log
        self._clock = clock
        self._wake = wake
        self.positions = positions
        self.in_flight = InFlight()
        self._next = dict.fromkeys(range(REVIVE_QUEUE_COUNT), 0)
        """Up to where each revive queue is known."""
        self._turn = 0
        self._marked_end = -1

    def recover(self) -> None:
        """Forget everything, and read from the log what is open."""
        self.in_flight = InFlight()
        self.positions.forget()
        self._marked_end = -1
        for queue_id in self._next:
            first, end = self._log.min_offset(queue_id), self._log.max_offset(queue_id)
            start = self._log_position(REVIVE_GROUP, queue_id) + 1
            seen = self._log_position(SEEN_GROUP, queue_id)
            self._next[queue_id] = min(max(start, first), end)
            self._read(queue_id, seen)
        if len(self.in_flight):
            log.info("pops recovered check_points=%d", len(self.in_flight))

    def is_waiting_for(self, topics: list[str], queue_ids: list[int]) -> bool:
        """One of the revive topic that is not ours came out of a RocketMQ's timer."""
        return self._log.topic in topics and not self._log.is_putting

    def arrived(self, topic: str, queue_id: int, *_: object) -> None:
        if topic == self._log.topic and queue_id in self._next:
            self._read(queue_id, self._log.max_offset(queue_id))

    def pop(self, request: PopRequest) -> PopResult:
        """Take messages. Raises StoreError and what ``MessageStore.put`` raises; then none is taken."""
        self._turn += 1
        revive_queue_id = self._turn % REVIVE_QUEUE_COUNT
        result = PopResult(self._clock.wall_ms(), revive_queue_id)
        taken = self._take(request, result)
        if not taken:
            return result
        while any(self.in_flight.get(_key(request, one, result.pop_time)) for one in taken):
            # Popped once more in the same millisecond, after a reset.
            result.pop_time += 1
        points = [
            CheckPoint(
                _key(request, one, result.pop_time),
                request.invisible_ms,
                set(one.offsets),
                revive_queue_id=revive_queue_id,
                broker_name=self._log.broker_name,
            )
            for one in taken
        ]
        stored = self._log.put(
            [
                self._log.point_message(point, one.found.next_offset)
                for point, one in zip(points, taken, strict=True)
            ]
        )
        for point, place, one in zip(points, stored, taken, strict=True):
            self._add(point, place.queue_offset)
            self._counts.written[one.topic, request.group, CHECK_POINT] += 1
            self.positions.move(
                (request.group, one.topic, one.queue_id), one.found.next_offset, place.end_offset
            )
            self._give(request, one, result)
        return result

    def peek(self, request: PopRequest) -> PopResult:
        """What a pop would take."""
        result = PopResult(self._clock.wall_ms(), 0)
        for one in self._take(request, result):
            self._give(request, one, result)
        return result

    def has_message(self, request: PopRequest) -> bool:
        """Whether a pop may find something."""
        return any(
            self._position(request, topic, queue_id) < self._store.max_offset(topic, queue_id)
            for topic, queue_id in request.places
        )

    def ack(self, ack: Ack) -> int:
        """Messages are done. Where their record ends in the log; 0 when all of this is known or too late."""
        point = self.in_flight.get(ack.key)
        if point is None or not (offsets := point.open.intersection(ack.offsets)):
            return 0
        said = Ack(ack.key, tuple(sorted(offsets)))
        stored = self._log.put([self._log.ack_message(said, point.revive_queue_id)])
        self._counts.written[ack.key.topic, ack.key.group, ACK] += 1
        self._done(said, stored[-1].queue_offset)
        return stored[-1].end_offset

    def ack_each(self, acks: list[Ack]) -> list[int | Exception]:
        """The same for many acknowledgements of one message each, with one write if possible: the outcome of each."""
        if len(acks) == 1:
            # The usual case while the broker is not busy, and cheaper this way.
            try:
                return [self.ack(acks[0])]
            except Exception as error:  # noqa: BLE001 - an outcome as below
                return [error]
        outcomes: dict[Ack, int | Exception] = {}
        said: list[Ack] = []
        messages: list[NewMessage] = []
        for ack in acks:
            point = self.in_flight.get(ack.key)
            if ack not in outcomes and point is not None and ack.offsets[0] in point.open:
                said.append(ack)
                messages.append(self._log.ack_message(ack, point.revive_queue_id))
            outcomes[ack] = 0
        if messages:
            for ack, stored in zip(said, self._log.put_each(messages), strict=True):
                if isinstance(stored, Exception):
                    outcomes[ack] = stored
                else:
                    self._counts.written[ack.key.topic, ack.key.group, ACK] += 1
                    self._done(ack, stored.queue_offset)
                    outcomes[ack] = stored.end_offset
        return [outcomes[ack] for ack in acks]

    def change_invisible(self, key: Key, offset: int, invisible_ms: int) -> CheckPoint | None:
        """Hide a message for so long from now on. Its new check-point; None when it is not out under that name."""
        old = self.in_flight.get(key)
        if old is None or offset not in old.open:
            return None
        now_ms = self._clock.wall_ms()
        while self.in_flight.get(key._replace(start_offset=offset, pop_time=now_ms)):
            now_ms += 1
        new = CheckPoint(
            key._replace(start_offset=offset, pop_time=now_ms),
            invisible_ms,
            {offset},
            revive_queue_id=old.revive_queue_id,
            broker_name=old.broker_name,
        )
        done = Ack(key, (offset,))
        # The new one first: a crash between them shows the message twice rather than never.
        stored = self._log.put(
            [self._log.point_message(new), self._log.ack_message(done, old.revive_queue_id)]
        )
        self._add(new, stored[0].queue_offset)
        self._done(done, stored[1].queue_offset)
        return new

    def done(self, point: CheckPoint, offset: int, seat: int) -> None:
        """``revival`` has dealt with a message, and its acknowledgement is at ``seat`` of the revive queue."""
        self._done(Ack(point.key, (offset,)), seat)

    @property
    def is_unsaved(self) -> bool:
        return self.positions.is_waiting or self._marked_end != self._end()

    def mark(self) -> None:
        """Note how far the revive queues are done with, and hand over the positions that are safe."""
        end = self._end()
        if end != self._marked_end:
            self._carry()
            self._marked_end = self._end()
            log_end = self._store.max_physical
            for queue_id, known in self._next.items():
                if known:
                    first = self.in_flight.first(queue_id)
                    begin = known if first is None else first.seat
                    topic = self._log.topic
                    if begin:
                        # RocketMQ begins to read behind this position: it is the last one that is done with.
                        self.positions.move((REVIVE_GROUP, topic, queue_id), begin - 1, log_end)
                    self.positions.move((SEEN_GROUP, topic, queue_id), known, log_end)
        self.settle()

    def settle(self) -> None:
        """Hand over the positions that are safe."""
        self.positions.settle(self._store.watermarks.flushed.value)

    def _take(self, request: PopRequest, result: PopResult) -> list[_Taken]:
        taken: list[_Taken] = []
        left = request.count_max
        for topic, queue_id in request.places:
            if left <= 0:
                position = self._position(request, topic, queue_id)
                result.rest_count += max(self._store.max_offset(topic, queue_id) - position, 0)
                continue
            found = self._look(request, topic, queue_id, left, result)
            if found.status is GetStatus.FOUND:
                offsets = [at for part in found.parts for at in queue_offsets(part)]
                left -= len(offsets)
                taken.append(_Taken(topic, queue_id, found, offsets))
                result.status = GetStatus.FOUND
            elif result.status is not GetStatus.FOUND:
                result.status = found.status
            result.rest_count += max(found.max_offset - found.next_offset, 0)
        return taken

    def _look(
        self, request: PopRequest, topic: str, queue_id: int, count: int, result: PopResult
    ) -> GetResult:
        place = (request.group, topic, queue_id)
        # What is to be tried again was wanted once.
        wanted = request.wanted if kind_of(topic) == NORMAL else ALL_MESSAGES
        start = self._position(request, topic, queue_id)
        for _ in range(SCAN_ROUNDS_MAX):
            found = self._store.get(
                topic,
                queue_id,
                start,
                count,
                tags=wanted.by_tag,
                record=wanted.by_record,
                scan_max=wanted.scan_count,
            )
            if found.status is GetStatus.FOUND or found.next_offset == start:
                return found
            start = found.next_offset
            self.positions.move(place, start, self._store.max_physical)
        result.is_scanning = start < found.max_offset
        return found

    def _position(self, request: PopRequest, topic: str, queue_id: int) -> int:
        known = self.positions.query((request.group, topic, queue_id))
        if known >= 0:
            return known
        first = self._store.min_offset(topic, queue_id)
        if (
            not request.is_from_end
            or topic.startswith(RETRY_PREFIX)
            or self._is_young(topic, queue_id)
        ):
            return first
        # From here on, whoever asks: otherwise each pop would begin at another end.
        end = self._store.max_offset(topic, queue_id)
        self.positions.move((request.group, topic, queue_id), end, self._store.max_physical)
        return end

    def _is_young(self, topic: str, queue_id: int) -> bool:
        """Its first message is still in memory: as with pulls, a new group then reads it from there."""
        if self._store.min_offset(topic, queue_id) > 0:
            return False
        first = self._store.entries(topic, queue_id, 0, 1)
        return not first or self._store.is_in_memory(first[0][0])

    def _give(self, request: PopRequest, one: _Taken, result: PopResult) -> None:
        result.popped.append(Popped(one.topic, one.queue_id, one.offsets))
        result.count += len(one.offsets)
        if one.topic == request.topic:
            result.parts += one.found.parts
            result.size_bytes += one.found.size_bytes
            return
        for record in _records(one.found):
            handle = Handle(
                one.offsets[0],
                result.pop_time,
                request.invisible_ms,
                result.revive_queue_id,
                kind_of(one.topic),
                self._log.broker_name,
                one.queue_id,
                record.queue_offset,
            )
            part = given_form(record, request.topic, handle.render())
            result.parts.append(part)
            result.size_bytes += len(part)

    def _add(self, point: CheckPoint, seat: int) -> None:
        self.in_flight.add(point, seat)
        self._next[point.revive_queue_id] = seat + 1
        self._wake(point.due_ms)

    def _done(self, ack: Ack, seat: int) -> None:
        point = self.in_flight.get(ack.key)
        if point is not None:
            self._next[point.revive_queue_id] = seat + 1
        self.in_flight.ack(ack)

    def _read(self, queue_id: int, seen: int) -> None:
        """Take over what a revive queue says.

        Args:
            seen: check-points before this offset have moved their group's position already.
        """
        for offset, said in self._log.read(queue_id, self._next[queue_id]):
            self._next[queue_id] = offset + 1
            if isinstance(said, Ack):
                self.in_flight.ack(said)
                continue
            if said.next_offset is not None and offset >= seen:
                key = said.key
                place = (key.group, key.topic, key.queue_id)
                if self.positions.query(place) < said.next_offset:
                    self.positions.move(place, said.next_offset, self._store.max_physical)
            if said.open:
                self.in_flight.add(said, offset)
                self._wake(said.due_ms)

    def _carry(self) -> None:
        for queue_id, known in self._next.items():
            for _ in range(CARRY_STEP):
                point = self.in_flight.first(queue_id)
                if point is None or known - point.seat <= CARRY_COUNT:
                    break
                stored = self._log.put([self._log.point_message(point)])
                self._add(point, stored[0].queue_offset)

    def _end(self) -> int:
        return sum(self._next.values())

    def _log_position(self, group: str, queue_id: int) -> int:
        return self.positions.query((group, self._log.topic, queue_id))

    def __repr__(self) -> str:
        return f"<Pops {self.in_flight!r} {self.positions!r}>"


def _key(request: PopRequest, one: _Taken, pop_time: int) -> Key:
    return Key(request.group, one.topic, one.queue_id, one.offsets[0], pop_time)


def _records(found: GetResult) -> Iterator[Record]:
    for part in found.parts:
        yield from decode_records(part, check_crc=False)
