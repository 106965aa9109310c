"""The timer index over restarts: nothing that waits is lost, nothing that the log holds is delivered twice.

A save notes at one moment how far delivery has come and where the log and the timer topic end, waits until the log is
on disk up to there, writes the new entries of the index, and then the checkpoint. So after a crash of any kind

- what the checkpoint says is in the buckets is there, and points to records that are there;
- records of the timer topic behind it are read again from the log: at most a save's interval of them;
- whatever was delivered later has its copy in the log behind the noted end; the mark on a copy says of which record
  (``store.delivered``). The entries of those are passed over when their turn comes.

Without a checkpoint all of the timer topic is read, and all of the log behind its first record: slow, but the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock, Files
from cometmq.broker.flush_wait import until_flushed
from cometmq.broker.timer.lanes import WALL, Lane, Lanes
from cometmq.broker.timer.rocketmq_timercheck import PeerProgress
from cometmq.broker.timer.timed_forms import TimedName, delay_ms, due_ms, recalled_by, wake_ms
from cometmq.model.messages.record import Record
from cometmq.model.messages.timer_properties import PRECISION_MS_MAX
from cometmq.model.names import TIMER_TOPIC
from cometmq.store.message_store import MessageStore
from cometmq.store.timer.entry import Position, wake_of
from cometmq.store.timer.timer_checkpoint import CheckpointFile, LaneState, TimerCheckpoint
from cometmq.store.timer.waiting import Change

log = logging.getLogger("cometmq.broker")

GROWTH_BYTES_MAX: Final = 256 << 20
"""How much the log may grow while messages wait before the same is saved again: a start walks over what came after."""
READ_COUNT: Final = 1000


class _Snapshot(NamedTuple):
    """What a save writes."""

    checkpoint: TimerCheckpoint
    changes: list[tuple[Lane, list[Change]]]
    gone: list[Lane]

    @property
    def has_entries(self) -> bool:
        return any(changes for _, changes in self.changes)


class TimerProgress:
    def __init__(
        self,
        *,
        directory: str,
        peer_path: str,
        store: MessageStore,
        files: Files,
        clock: Clock,
        window_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._window_ms = window_ms
        self._peer_path = peer_path
        self.lanes = Lanes(directory, files, clock)
        self._file = CheckpointFile(directory, files)
        self._saved = TimerCheckpoint([LaneState(number=WALL)])
        self._gone: list[Lane] = []
        self._walk_from = 0
        """While entries are in the index that only the log knows to be delivered: where it says so."""
        self._writing: asyncio.Task[None] | None = None
        self._is_unsaved = False

    def recover(self) -> dict[int, int]:
        """Fill the lanes with what waits. Which of it is delivered already, by physical offset with its time."""
        peer_bytes = self._peer_bytes()
        saved = self._file.load()
        peer = PeerProgress()
        if saved is None or saved.peer != _fingerprint(peer_bytes):
            # Nobody was here before, or a RocketMQ broker was since.
            peer = PeerProgress.decode(peer_bytes)
            saved = TimerCheckpoint([LaneState(number=WALL)], peer=_fingerprint(peer_bytes))
        self.lanes.restore(saved.lanes)
        queue_end = self._store.max_offset(TIMER_TOPIC, 0)
        queue_start = max(min(saved.queue_end, queue_end), self._store.min_offset(TIMER_TOPIC, 0))
        walk_from = saved.log_end
        if not saved.has_entries and (first := self._store.entries(TIMER_TOPIC, 0, queue_start, 1)):
            # A copy lies behind its original.
            walk_from = max(walk_from, first[0][0])
        delivered: dict[int, int] = {}
        if saved.has_entries or queue_start < queue_end:
            for record in self._store.copied_since(walk_from, TIMER_TOPIC):
                delivered[record.physical_offset] = self._wake(record) or 0
        added = 0
        rolled: dict[TimedName, int] = {}
        if peer:
            rolled = peer.rolled(self._records(queue_start, queue_end))
        for record in self._records(queue_start, queue_end):
            if not (peer and peer.has_delivered(record, rolled)):
                added += self._add(record)
        self._saved = saved
        self._walk_from = walk_from
        log.info(
            "timers recovered waiting=%d read=%d delivered=%d lanes=%d",
            sum(lane.waiting.count for lane in self.lanes),
            added,
            len(delivered),
            len(self.lanes),
        )
        return delivered

    def _add(self, record: Record) -> bool:
        wake = self._wake(record)
        if wake is None:
            return False
        if recalled_by(record) is not None:
            for lane in self.lanes:
                lane.waiting.add(wake, record.physical_offset, is_recall=True)
            return True
        delay = delay_ms(record.properties)
        if delay is None:
            lane = self.lanes.for_time(wake)
        else:
            lane = self.lanes.for_stored_delay((due_ms(record) or 0) - delay)
        lane.waiting.add(wake, record.physical_offset)
        return True

    async def save(self, *, is_catching_up: bool) -> None:
        """Note durably what is new, if anything is; the next time will do if the disk is full or slow.

        Args:
            is_catching_up: whether something in the index is known to be delivered only by what the log says.
        """
        snapshot = self._snapshot(is_catching_up)
        if not self._is_due(snapshot):
            return
        if not await until_flushed(self._store, self._clock, self._store.max_physical):
            self._note_unsaved("the log is not on disk yet")
            return
        # A cancelled wait does not end the thread, and the last save must not meet it.
        self._writing = asyncio.create_task(
            asyncio.to_thread(self._write, snapshot), name="timer-save"
        )
        try:
            await asyncio.shield(self._writing)
        except (CometError, OSError) as error:
            self._note_unsaved(str(error))
        else:
            self._wrote(snapshot)

    async def save_at_stop(self, *, is_catching_up: bool) -> None:
        """Note the last state, after everything was delivered that will be."""
        writing, self._writing = self._writing, None
        if writing is not None and not writing.done():
            await asyncio.wait([writing])
        snapshot = self._snapshot(is_catching_up)
        if snapshot.has_entries or snapshot.checkpoint != self._saved:
            try:
                self._store.flush()
                self._write(snapshot)
                self._wrote(snapshot)
                peer = self._note_for_peer()
                self._file.save(msgspec.structs.replace(snapshot.checkpoint, peer=peer))
            except (CometError, OSError) as error:
                # The next start finds in the log what this save would have said.
                self._note_unsaved(str(error))
        self.lanes.close()

    def _snapshot(self, is_catching_up: bool) -> _Snapshot:
        if not is_catching_up:
            self._walk_from = self._store.max_physical
        self._gone += self.lanes.let_go()
        checkpoint = TimerCheckpoint(
            lanes=[lane.state() for lane in self.lanes],
            queue_end=self._store.max_offset(TIMER_TOPIC, 0),
            log_end=self._walk_from,
            peer=self._saved.peer,
        )
        changes = [(lane, lane.waiting.changes()) for lane in self.lanes]
        return _Snapshot(checkpoint, changes, list(self._gone))

    def _is_due(self, snapshot: _Snapshot) -> bool:
        if snapshot.has_entries or _done(snapshot.checkpoint) != _done(self._saved):
            return True
        has_grown = snapshot.checkpoint.log_end - self._saved.log_end >= GROWTH_BYTES_MAX
        return has_grown and any(lane.waiting.count for lane in self.lanes)

    def _write(self, snapshot: _Snapshot) -> None:
        for lane, changes in snapshot.changes:
            for change in changes:
                lane.files.write(*change)
            lane.files.sync()
        self._file.save(snapshot.checkpoint)
        # Not before: a crash on the way must find the old checkpoint with all of its entries.
        before = {state.number: state.counts for state in self._saved.lanes}
        for (lane, _), state in zip(snapshot.changes, snapshot.checkpoint.lanes, strict=True):
            if not state.counts.keys() >= before.get(lane.number, {}).keys():
                lane.files.remove_all_but(state.counts)
        for lane in snapshot.gone:
            self.lanes.remove(lane)

    def _wrote(self, snapshot: _Snapshot) -> None:
        for lane, changes in snapshot.changes:
            lane.waiting.written(changes)
        self._gone = [lane for lane in self._gone if lane not in snapshot.gone]
        self._saved = snapshot.checkpoint
        self._is_unsaved = False

    def _records(self, start: int, end: int) -> Iterator[Record]:
        """The records of the timer topic; entries that stand in for lost ones are passed over."""
        for first in range(start, end, READ_COUNT):
            count = min(READ_COUNT, end - first)
            entries = self._store.entries(TIMER_TOPIC, 0, first, count)
            for offset, (physical_offset, _, _) in enumerate(entries, first):
                record = self._store.decoded_at(physical_offset)
                if record is not None and (record.topic, record.queue_offset) == (
                    TIMER_TOPIC,
                    offset,
                ):
                    yield record

    def _wake(self, record: Record) -> int | None:
        due = due_ms(record)
        return None if due is None else wake_ms(due, record.store_timestamp, self._window_ms())

    def _note_for_peer(self) -> str:
        """Tell a RocketMQ broker that might come next where to go on. The fingerprint of what was written."""
        queue_offset = self._store.max_offset(TIMER_TOPIC, 0)
        waiting = [lane.waiting for lane in self.lanes]
        oldest = [place for one in waiting if (place := one.oldest()) is not None]
        if oldest and (record := self._store.decoded_at(min(oldest))) is not None:
            queue_offset = record.queue_offset
        read_ms = min(max(wake_of(one.done[0]) for one in waiting), self._clock.wall_ms())
        content = self._for_peer(read_ms, queue_offset)
        self._files.replace(self._peer_path, content)
        return _fingerprint(content)

    def for_slave(self) -> bytes:
        """In the same form what is done: everything that is due before the time that it names. Reads no index."""
        before_ms = min(lane.waiting.done_before_ms(lane.now_ms()) for lane in self.lanes)
        queue_offset = self._store.max_offset(TIMER_TOPIC, 0)
        return self._for_peer(min(before_ms, self._clock.wall_ms()) - 1, queue_offset)

    def _for_peer(self, read_ms: int, queue_offset: int) -> bytes:
        return PeerProgress.decode(self._peer_bytes()).moved(
            read_ms=max(read_ms // PRECISION_MS_MAX * PRECISION_MS_MAX, 0),
            queue_offset=queue_offset,
            now_ms=self._clock.wall_ms(),
        )

    def _peer_bytes(self) -> bytes:
        return self._files.read(self._peer_path) if self._files.exists(self._peer_path) else b""

    def _note_unsaved(self, reason: str) -> None:
        if not self._is_unsaved:
            self._is_unsaved = True
            log.warning("timers not saved reason=%s; they will be tried again", reason)


def _done(checkpoint: TimerCheckpoint) -> dict[int, Position]:
    return {lane.number: lane.done for lane in checkpoint.lanes}


def _fingerprint(content: bytes) -> str:
    return sha256(content).hexdigest() if content else ""
