"""A store on a faulty disk, next to the list that it is compared with.

``StoreSimulation`` does what a broker does to a store. After every crash it restarts and compares everything: after a
process kill, all acknowledged messages must be there; after a power loss, all below the flushed watermark. The store
runs without its threads, so that the same steps and seed give the same run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cometmq.base.errors import DiskFull, StoreClosed, StoreError
from cometmq.model.messages.record import decode_record
from cometmq.store.log.new_messages import NewMessage, NewMessages, Stored, StoredMessages
from cometmq.store.message_store import MessageStore
from cometmq.store.queues.extended_queues import FilterBits, no_bits
from cometmq.store.store_config import StoreConfig
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage
from cometmq.testing.store_model import StoreModel

logger = logging.getLogger("cometmq.testing")

PLENTY: Final = 1 << 40

PlannedCrash = tuple[int, Moment, Outage]
"""In which disk call, at which moment of it, and which kind of outage."""


class StoreSimulation:
    def __init__(
        self,
        config: StoreConfig,
        model: StoreModel,
        *,
        store_host: bytes,
        seed: int,
        filter_bits: FilterBits = no_bits,
    ) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock, seed=seed)
        self.model = model
        self.config = config
        self._store_host = store_host
        self._filter_bits = filter_bits
        self._outage = Outage.PROCESS_KILL
        self._crashes_in_recovery: list[PlannedCrash] = []
        self._in_flight: list[NewMessage] = []
        self._topic_in_flight = ""
        self._end_before = 0
        self._promised_below = 0
        self.is_space_short = False
        self.puts_since_crash = 0
        self.store = self._new_store()
        self.store.load()

    def put(self, batch: list[NewMessage]) -> None:
        """Append messages of one queue, if they fit into a file."""
        size_bytes = sum(map(self.model.record_bytes, batch))
        if size_bytes + 8 > self.config.log.file_bytes:
            return
        self.puts_since_crash += 1
        self._in_flight = batch
        self._end_before = self.store.max_physical
        answers: list[Stored] = []

        def send() -> None:
            answers.extend(self.store.put_all(batch))

        if self._do(send):
            for message, stored in zip(batch, answers, strict=True):
                self.model.keep(message, stored)
        self._in_flight = []

    def put_each(self, messages: list[NewMessage]) -> None:
        """Append independent messages of any queues, while there is space."""
        self.puts_since_crash += 1
        self._in_flight = messages
        self._end_before = self.store.max_physical
        answers: list[StoredMessages | Exception] = []
        new = NewMessages.of(messages)
        if self._do(lambda: answers.extend(self.store.append_each(new))):
            stored: list[Stored] = []
            for outcome in answers:
                assert isinstance(outcome, StoredMessages), outcome
                stored += outcome.each()
            for message, one in zip(messages, stored, strict=True):
                self.model.keep(message, one)
        self._in_flight = []

    def flush(self) -> None:
        if self._do(self.store.flush) and not self.is_space_short:
            assert self.store.watermarks.flushed.value == self.store.max_physical

    def maintain(self) -> None:
        self._do(self._maintain)

    def delete_topic(self, topic: str) -> None:
        self._topic_in_flight = topic
        if self._do(lambda: self.store.delete_topic(topic)):
            self.model.topic_ends[topic] = self.store.max_physical
        self._topic_in_flight = ""

    def stop_and_start(self) -> None:
        if not self._do(self.store.close):
            return
        while not self._try_to_load():
            if self.files.is_down:
                self._come_back()
                return
            self.make_space()
        self.model.check_everything(self.store)

    def start_again(self) -> None:
        """Start after a stop; the store finds whatever has changed on the disk since."""
        if self._try_to_load():
            self.model.check_everything(self.store)
        else:
            self._come_back()

    def crash(self, outage: Outage) -> None:
        """Crash now, between two disk calls."""
        self._outage = outage
        self.files.crash_now()
        self._come_back()

    def prepare_crash(
        self,
        calls: int,
        moment: Moment,
        outage: Outage,
        in_recovery: list[PlannedCrash] | None = None,
    ) -> None:
        """Crash in a later disk call, and again during recovery as ``in_recovery`` says."""
        self.files.crash_in(calls, moment)
        self._outage = outage
        self._crashes_in_recovery = in_recovery or []

    def flush_with_a_failing_sync(self, *, after: int = 0) -> None:
        """Flush; the sync after the first ``after`` ones fails. From then on the store guarantees nothing new.

        A crash during this is a power loss. After a mere kill, the next process would trust the page cache, in which
        the kernel keeps the pages that it failed to write as if they had been written.
        """
        self.files.fail_syncs(1, after=after)
        flushed = self.store.watermarks.flushed.value
        try:
            self.store.flush()
        except Crashed:
            self._crashes_in_recovery = []
            self.crash(Outage.POWER_LOSS)
        except StoreError:
            if after == 0:
                assert self.store.watermarks.flushed.value == flushed

    def fail_sync_and_lose_power(self) -> None:
        self.flush_with_a_failing_sync()
        self.crash(Outage.POWER_LOSS)

    def run_out_of_space(self, free_bytes: int) -> None:
        self.files.set_free(free_bytes)
        self.is_space_short = True

    def make_space(self) -> None:
        self.files.set_free(PLENTY)
        self.is_space_short = False
        # The store retries a full disk only after a while.
        self.clock.advance(10)

    def finish(self) -> None:
        self.files.cancel_crash()
        self.model.check_everything(self.store)

    def _new_store(self) -> MessageStore:
        return MessageStore(
            self.config,
            store_host=self._store_host,
            files=self.files,
            clock=self.clock,
            filter_bits=self._filter_bits,
        )

    def _do(self, action: Callable[[], None]) -> bool:
        """Whether it completed; on return, the store has recovered from any crash."""
        try:
            action()
        except Crashed as crash:
            logger.info("crashed where=%s", crash)
            self._come_back()
            return False
        except (DiskFull, StoreClosed):
            assert self.is_space_short
            return False
        return True

    def _maintain(self) -> None:
        try:
            self.store.maintain()
        finally:
            start = self.store.min_physical
            # The file being written is kept, whatever happens.
            assert start <= self.store.max_physical
            self.model.deleted_below = max(self.model.deleted_below, start)

    def _come_back(self) -> None:
        """Restart as planned, then check what is left."""
        self.puts_since_crash = 0
        self._note_promise()
        has_lost_power = self._outage is Outage.POWER_LOSS
        self.files.restart(self._outage)
        for calls, moment, outage in self._crashes_in_recovery:
            self.files.crash_in(calls, moment)
            if self._try_to_load():
                break
            if self.files.is_down:
                has_lost_power |= outage is Outage.POWER_LOSS
                self.files.restart(outage)
        else:
            self.files.cancel_crash()
            if not self._try_to_load():
                self.make_space()
                assert self._try_to_load()
        self.files.cancel_crash()
        self._crashes_in_recovery = []
        self.model.forget_lost(self.store, self._promised_below if has_lost_power else PLENTY)
        self._adopt_messages_in_flight()
        self._adopt_deletion_in_flight()
        self.model.check_everything(self.store)

    def _try_to_load(self) -> bool:
        self._note_promise()
        self.store = self._new_store()
        try:
            self.store.load()
        except Crashed as crash:
            logger.info("crashed while recovering where=%s", crash)
            return False
        except DiskFull:
            assert self.is_space_short
            return False
        return True

    def _note_promise(self) -> None:
        self._promised_below = max(self._promised_below, self.store.watermarks.flushed.value)

    def _adopt_messages_in_flight(self) -> None:
        """A put that never returned may be there or not, but only completely; of a batch, only a first part."""
        position = self._end_before
        file_bytes = self.config.log.file_bytes
        for message in self._in_flight:
            for start in (position, position - position % file_bytes + file_bytes):
                found = self.store.record_at(start)
                if found is not None:
                    record = decode_record(found)
                    size_bytes = record.size_bytes
                    stored = Stored(start, size_bytes, record.queue_offset, record.store_timestamp)
                    assert bytes(found) == self.model.keep(message, stored).raw
                    position = start + size_bytes
                    break
            else:
                break
        self._in_flight = []

    def _adopt_deletion_in_flight(self) -> None:
        topic = self._topic_in_flight
        if topic and not any(
            self.store.max_offset(*queue) for queue in self.model.queues if queue[0] == topic
        ):
            self.model.topic_ends[topic] = self.store.max_physical
        self._topic_in_flight = ""
