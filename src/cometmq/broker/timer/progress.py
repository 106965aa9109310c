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
from typing import Final

import msgspec

from cometmq.base.errors import CometError
from cometmq.base.ports import Clock, Files
from cometmq.broker.timer.delivery import TimerDelivery
from cometmq.broker.timer.forms import TimedName, due_ms, recalled_by, wake_ms
from cometmq.broker.timer.peer import PeerProgress
from cometmq.model.names import TIMER_TOPIC
from cometmq.model.record import BadRecord, Record, decode_record
from cometmq.model.timer_properties import PRECISION_MS_MAX
from cometmq.store.message_store import MessageStore
from cometmq.store.timer.bucket_files import BucketFiles
from cometmq.store.timer.checkpoint import CheckpointFile, TimerCheckpoint
from cometmq.store.timer.entry import wake_of
from cometmq.store.timer.waiting import Change, Waiting

log = logging.getLogger("cometmq.broker")

GROWTH_BYTES_MAX: Final = 256 << 20
"""How much the log may grow while messages wait before the same is saved again: a start walks over what came after."""
FLUSH_SECONDS_MAX: Final = 30.0
"""How long a save waits for the disk before it gives up until the next time."""
READ_COUNT: Final = 1000


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
        self._buckets = BucketFiles(directory, files)
        self._file = CheckpointFile(directory, files)
        self._saved = TimerCheckpoint()
        self._walk_from = 0
        """While entries are in the index that only the log knows to be delivered: where it says so."""
        self._writing: asyncio.Task[None] | None = None
        self._is_unsaved = False

    def recover(self) -> tuple[Waiting, dict[int, int]]:
        """What waits, and which of it is delivered already, by physical offset with its time."""
        peer_bytes = self._peer_bytes()
        saved = self._file.load()
        peer = PeerProgress()
        if saved is None or saved.peer != _fingerprint(peer_bytes):
            # Nobody was here before, or a RocketMQ broker was since.
            peer = PeerProgress.decode(peer_bytes)
            saved = TimerCheckpoint(peer=_fingerprint(peer_bytes))
        self._buckets.load(saved.counts)
        queue_end = self._store.max_offset(TIMER_TOPIC, 0)
        queue_start = max(
            min(saved.queue_offset, queue_end), self._store.min_offset(TIMER_TOPIC, 0)
        )
        waiting = Waiting(self._buckets, dict(saved.counts), saved.done)
        walk_from = saved.log_offset
        if not saved.counts and (first := self._store.entries(TIMER_TOPIC, 0, queue_start, 1)):
            # A copy lies behind its original.
            walk_from = max(walk_from, first[0][0])
        delivered: dict[int, int] = {}
        if waiting.count or queue_start < queue_end:
            for record in self._store.copied_since(walk_from, TIMER_TOPIC):
                delivered[record.physical_offset] = self._wake(record) or 0
        added = 0
        rolled: dict[TimedName, int] = {}
        if peer:
            rolled = peer.rolled(self._records(queue_start, queue_end))
        for record in self._records(queue_start, queue_end):
            wake = self._wake(record)
            if wake is None or (peer and peer.has_delivered(record, rolled)):
                continue
            waiting.add(wake, record.physical_offset, is_recall=recalled_by(record) is not None)
            added += 1
        self._saved = saved
        self._walk_from = walk_from
        log.info(
            "timers recovered waiting=%d read=%d delivered=%d", waiting.count, added, len(delivered)
        )
        return waiting, delivered

    async def save(self, waiting: Waiting, delivery: TimerDelivery) -> None:
        """Note durably what is new, if anything is; the next time will do if the disk is full or slow."""
        checkpoint, changes = self._snapshot(waiting, delivery)
        if not self._is_due(checkpoint, changes, waiting):
            return
        if not await self._flushed(self._store.max_physical):
            self._note_unsaved("the log is not on disk yet")
            return
        # A cancelled wait does not end the thread, and the last save must not meet it.
        self._writing = asyncio.create_task(
            asyncio.to_thread(self._write, checkpoint, changes), name="timer-save"
        )
        try:
            await asyncio.shield(self._writing)
        except (CometError, OSError) as error:
            self._note_unsaved(str(error))
        else:
            self._wrote(waiting, checkpoint, changes)

    async def save_at_stop(self, waiting: Waiting, delivery: TimerDelivery) -> None:
        """Note the last state, after everything was delivered that will be."""
        writing, self._writing = self._writing, None
        if writing is not None and not writing.done():
            await asyncio.wait([writing])
        checkpoint, changes = self._snapshot(waiting, delivery)
        if changes or checkpoint != self._saved:
            try:
                self._store.flush()
                self._write(checkpoint, changes)
                self._wrote(waiting, checkpoint, changes)
                peer = self._note_for_peer(waiting)
                self._file.save(msgspec.structs.replace(checkpoint, peer=peer))
            except (CometError, OSError) as error:
                # The next start finds in the log what this save would have said.
                self._note_unsaved(str(error))
        self._buckets.close()

    def _snapshot(
        self, waiting: Waiting, delivery: TimerDelivery
    ) -> tuple[TimerCheckpoint, list[Change]]:
        if not delivery.is_catching_up:
            self._walk_from = self._store.max_physical
        counts = waiting.counts()
        checkpoint = TimerCheckpoint(
            done=waiting.done,
            queue_offset=self._store.max_offset(TIMER_TOPIC, 0),
            log_offset=self._walk_from,
            counts=counts,
            peer=self._saved.peer,
        )
        return checkpoint, waiting.changes()

    def _is_due(self, checkpoint: TimerCheckpoint, changes: list[Change], waiting: Waiting) -> bool:
        if changes or checkpoint.done != self._saved.done:
            return True
        has_grown = checkpoint.log_offset - self._saved.log_offset >= GROWTH_BYTES_MAX
        return has_grown and waiting.count > 0

    def _write(self, checkpoint: TimerCheckpoint, changes: list[Change]) -> None:
        for change in changes:
            self._buckets.write(*change)
        self._buckets.sync()
        self._file.save(checkpoint)
        # Not before: a crash on the way must find the old checkpoint with all of its entries.
        if not checkpoint.counts.keys() >= self._saved.counts.keys():
            self._buckets.remove_all_but(checkpoint.counts)

    def _wrote(self, waiting: Waiting, checkpoint: TimerCheckpoint, changes: list[Change]) -> None:
        waiting.written(changes)
        self._saved = checkpoint
        self._is_unsaved = False

    def _records(self, start: int, end: int) -> Iterator[Record]:
        """The records of the timer topic; entries that stand in for lost ones are passed over."""
        for first in range(start, end, READ_COUNT):
            count = min(READ_COUNT, end - first)
            entries = self._store.entries(TIMER_TOPIC, 0, first, count)
            for offset, (physical_offset, _, _) in enumerate(entries, first):
                record = self._record(physical_offset)
                if record is not None and (record.topic, record.queue_offset) == (
                    TIMER_TOPIC,
                    offset,
                ):
                    yield record

    def _record(self, physical_offset: int) -> Record | None:
        view = self._store.record_at(physical_offset)
        try:
            return None if view is None else decode_record(view, check_crc=False)
        except BadRecord:
            return None

    def _wake(self, record: Record) -> int | None:
        due = due_ms(record)
        return None if due is None else wake_ms(due, record.store_timestamp, self._window_ms())

    def _note_for_peer(self, waiting: Waiting) -> str:
        """Tell a RocketMQ broker that might come next where to go on. The fingerprint of what was written."""
        queue_offset = self._store.max_offset(TIMER_TOPIC, 0)
        oldest = waiting.oldest()
        if oldest is not None and (record := self._record(oldest)) is not None:
            queue_offset = record.queue_offset
        content = PeerProgress.decode(self._peer_bytes()).moved(
            read_ms=wake_of(waiting.done[0]) // PRECISION_MS_MAX * PRECISION_MS_MAX,
            queue_offset=queue_offset,
            now_ms=self._clock.wall_ms(),
        )
        self._files.replace(self._peer_path, content)
        return _fingerprint(content)

    def _peer_bytes(self) -> bytes:
        return self._files.read(self._peer_path) if self._files.exists(self._peer_path) else b""

    async def _flushed(self, log_offset: int) -> bool:
        is_flushed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def done(is_in_time: bool) -> None:
            if not is_flushed.done():
                is_flushed.set_result(is_in_time)

        self._store.watermarks.flushed.when(
            log_offset, done, self._clock.monotonic() + FLUSH_SECONDS_MAX
        )
        return await is_flushed

    def _note_unsaved(self, reason: str) -> None:
        if not self._is_unsaved:
            self._is_unsaved = True
            log.warning("timers not saved reason=%s; they will be tried again", reason)


def _fingerprint(content: bytes) -> str:
    return sha256(content).hexdigest() if content else ""
