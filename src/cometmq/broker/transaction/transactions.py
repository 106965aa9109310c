"""Transactions as the rest of the broker sees them: store a half message, end it, and ask about those nobody ends.

    send (TRAN_MSG) ──> half ──commit────────────────────> committed message + mark
                          │ └──rollback──────────────────> mark
                          └──no word for a while─────────> copy + mark, and a producer of the group is asked (39)
                               └──asked too often, too old─> discarded message + mark
                                    ├──an operator wants it checked anew─> half
                                    └──commit after all──────────────────> committed message + mark

As long as no producer of the group is connected nobody is asked, nothing is stored and nothing counts.

A transaction is open as long as its newest half message has no mark; the open ones are kept in memory (``open_table``).
What ends it, or replaces the half message, is stored together with the mark, in one write with nothing in between. So
the first decision counts: any later one finds the transaction closed, over restarts, too. A crash in the middle of that
write leaves the first part as the last record of the log, which is where ``start`` looks.

Transactions are begun and ended at any time. What runs between ``start`` and ``stop`` are the checks, and the positions
that move on; a start reads from the log what is open, as a slave that has become the master must.

Files are those of RocketMQ and can be handed over either way: its half topic, its marks (op messages) and the positions
of ``CID_RMQ_SYS_TRANS`` in both. The positions move on with the oldest open transaction, and not before the disk has
the decisions they pass over: after a power loss those would be missing, and nobody would ask again. What RocketMQ does
not do is to mark a half message that a copy replaces; it may ask twice, and deliver twice, after a crash.
A message that is immune for long holds the positions back, since it is not copied before it is checked.

Parts: ``transaction_forms`` (what is stored), ``verdict`` (when to ask), ``open_at_start`` (what is open then),
``questions`` (who is asked), ``late_end`` (a commit of what was discarded). Owned by the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from cometmq.base.errors import DiskFull, RecordTooLarge
from cometmq.base.ports import Clock
from cometmq.broker.broker_stats import TRANSACTION, BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.metrics.transaction_counts import TransactionCounts
from cometmq.broker.transaction.late_end import last_form
from cometmq.broker.transaction.open_at_start import (
    Positions,
    are_ahead,
    open_half,
    open_transactions,
    save_positions,
    unmarked_by_crash,
)
from cometmq.broker.transaction.open_table import OPEN_MAX, OpenHalf, OpenTable
from cometmq.broker.transaction.transaction_forms import (
    QUEUE_ID,
    TEXT_BYTES_SPARE,
    committed_form,
    copy_form,
    discarded_form,
    half_form,
    identity_of,
    mark_form,
    reopened_form,
)
from cometmq.broker.transaction.verdict import Verdict, immunity_ms, judge
from cometmq.model.messages.properties import (
    CHECK_IMMUNITY_SECONDS,
    PRODUCER_GROUP,
    TEXT_BYTES_MAX,
    parse_properties,
)
from cometmq.model.messages.record import Record
from cometmq.model.names import HALF_OP_TOPIC, HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.consumer_offsets import OffsetTable

log = logging.getLogger("cometmq.broker")

TURN_COUNT_MAX: Final = 32
"""Transactions looked at in one turn of the loop; the rest of a round comes behind other work."""
STOP_SECONDS_MAX: Final = 5.0
"""How long a stop waits for the disk to note how far it came; without that the next start reads a little more."""
UNASKED_LOG_SECONDS: Final = 60.0
"""How often at most the log says that there is nobody to ask."""
_HOUR_MS: Final = 3_600_000


class Decision(Enum):
    COMMIT = "commit"
    ROLLBACK = "rollback"


class Questions(Protocol):
    def can_ask(self, group: str, topic: str) -> bool:
        """Whether a producer of the group is connected that may publish to the topic."""
        ...

    def ask(self, half: Record) -> None:
        """Ask a producer what became of a half message; there must be one."""
        ...


class Topics(Protocol):
    """What is needed of ``TopicCreation``."""

    def restore(self, topic: str, queue_count: int) -> None: ...

    def system_topic(self, topic: str) -> None: ...


class Transactions:
    """Asks between ``start`` and ``stop``, any number of times."""

    def __init__(
        self,
        *,
        live: LiveConfig,
        store: MessageStore,
        offsets: OffsetTable,
        topics: Topics,
        questions: Questions,
        stats: BrokerStats,
        clock: Clock,
    ) -> None:
        self._live = live
        self._store = store
        self._offsets = offsets
        self._topics = topics
        self._questions = questions
        self._stats = stats
        self._clock = clock
        self._open = OpenTable()
        self._is_running = False
        self._task: asyncio.Task[None] | None = None
        self._unasked_logged_at: float | None = None
        self.tally = stats.topic_put(HALF_TOPIC, TRANSACTION)
        """Whoever puts a half message counts it here; once it is committed it counts for its own topic."""
        self.counts = TransactionCounts()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def open_by_topic(self) -> Counter[str]:
        return Counter(half.topic for half in self._open.all())

    def start(self) -> None:
        """Go on where the checks stopped last, however they stopped.

        A crash may have cut the end off a decision, so nothing else may be stored since: this comes first of all.
        """
        if self._task is not None:
            return
        self.resume()
        self._task = asyncio.create_task(self._check_again_and_again(), name="transaction-checks")

    def resume(self) -> None:
        """Take up the open transactions, without checks by the clock."""
        if self._is_running:
            return
        self._is_running = True
        for topic in self._store.topics():
            if topic in (HALF_TOPIC, HALF_OP_TOPIC, TRANSACTION_DISCARD_TOPIC):
                self._topics.system_topic(topic)
        is_ahead = are_ahead(self._store, self._offsets)
        # Before the mark: a copy whose predecessor a crash left unmarked takes its place all the same.
        self._open = open_transactions(self._store, self._offsets)
        if is_ahead:
            log.warning("positions of transactions were ahead of the log open=%d", len(self._open))
            # At once: when the log has grown, nobody could tell any more.
            self._save_now()
        cut_off = unmarked_by_crash(self._store)
        if cut_off is not None:
            self._store.put(mark_form(cut_off.queue_offset, self._clock.wall_ms()))
            half = self._open.find(identity_of(cut_off))
            if half is not None and half.queue_offset == cut_off.queue_offset:
                self._open.close(half)
            log.info("transaction ended by a crash queue_offset=%d", cut_off.queue_offset)
        if len(self._open):
            log.info("transactions open count=%d", len(self._open))

    async def stop(self) -> None:
        """Ask nobody any more, and note how far it came."""
        if not self._is_running:
            return
        self._is_running = False
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        saved = asyncio.Event()
        self.save(saved.set)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await saved.wait()
        except TimeoutError:
            log.warning("positions of transactions not saved reason=the log is not on disk yet")

    def put_half(self, message: NewMessage, *, is_wait: bool) -> Stored:
        """Store a message that is delivered when its transaction is committed. Raises as ``MessageStore.put``.

        Raises:
            Refused: too many transactions are open, or its properties leave no room for those of later checks.
        """
        self._require_room()
        pairs = parse_properties(message.properties.decode())
        half = half_form(message, pairs, is_wait=is_wait)
        if len(half.properties) + TEXT_BYTES_SPARE > TEXT_BYTES_MAX:
            raise RecordTooLarge(
                f"properties of {len(half.properties)} bytes, at most "
                f"{TEXT_BYTES_MAX - TEXT_BYTES_SPARE} in a transaction"
            )
        self._topics.system_topic(HALF_TOPIC)
        self._topics.system_topic(HALF_OP_TOPIC)
        stored = self._store.put(half)
        self._open.add(
            OpenHalf(
                identity=stored.queue_offset,
                queue_offset=stored.queue_offset,
                physical_offset=stored.physical_offset,
                born_ms=message.born_timestamp,
                immunity_ms=immunity_ms(pairs.get(CHECK_IMMUNITY_SECONDS)),
                check_count=0,
                group=sys.intern(pairs.get(PRODUCER_GROUP, "")),
                marks_before=self._marks_end,
                topic=sys.intern(message.topic),
            )
        )
        return stored

    def _require_room(self) -> None:
        if self._open.is_full:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"{OPEN_MAX} transactions are open; end some of them first",
            )

    def check_anew(self, physical_offset: int) -> Stored:
        """Begin to count the checks of a transaction anew.

        An open one is named by any of its half messages, a discarded one by its message in the discard topic. That
        becomes a half message again, each time it is named here.

        Raises:
            Refused: there is no such message, or its transaction has ended.
            As ``MessageStore.put``: nothing has changed.
        """
        discarded = self._store.decoded_at(physical_offset, TRANSACTION_DISCARD_TOPIC)
        if discarded is not None:
            return self._reopen(discarded)
        named = self.half_at(physical_offset)
        half = None if named is None else self._open.find(identity_of(named))
        newest = None if half is None else self._half(half)
        if half is None or newest is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"expected a half message of an open transaction, or a message of {TRANSACTION_DISCARD_TOPIC}, "
                f"at offset {physical_offset}; "
                + ("there is none" if named is None else "its transaction has ended"),
            )
        return self._copy(half, newest, 0)[0]

    def _reopen(self, discarded: Record) -> Stored:
        self._require_room()
        if committed_form(discarded) is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"the message at offset {discarded.physical_offset} names no topic and queue that it could go to",
            )
        marks_before = self._marks_end
        stored = self._store.put(reopened_form(discarded))
        reopened = self._store.decoded_at(stored.physical_offset, HALF_TOPIC)
        assert reopened is not None, stored
        self._open.add(open_half(reopened, stored.queue_offset, marks_before))
        return stored

    def half_at(self, physical_offset: int) -> Record | None:
        """The half message, or a copy of one, that begins there."""
        return self._store.decoded_at(physical_offset, HALF_TOPIC)

    def end(self, half: Record, decision: Decision) -> Stored | None:
        """Decide a transaction by any of its half messages. None when it was decided before; then nothing happens.

        To discard it was the broker's decision, not the producer's: a commit that comes later counts.
        Returns where the decision is stored: what is durable up to there cannot be decided otherwise.

        Raises:
            Refused: the half message names no destination.
            As ``MessageStore.put``: the transaction stays open.
        """
        newest = self._open.find(identity_of(half))
        if newest is None:
            return self._commit_late(half) if decision is Decision.COMMIT else None
        mark = mark_form(newest.queue_offset, self._clock.wall_ms())
        is_commit = decision is Decision.COMMIT
        stored = self._commit(newest, mark) if is_commit else self._store.put(mark)
        self._open.close(newest)
        seconds = (self._clock.wall_ms() - newest.born_ms) / 1000
        self.counts.ended(newest.topic, seconds, is_commit=is_commit)
        return stored

    def _commit_late(self, half: Record) -> Stored | None:
        last = last_form(self._store, half)
        if last is None:
            return None
        if last.topic == HALF_TOPIC:
            # An operator had it checked anew, as a transaction of its own.
            reopened = self._open.find(identity_of(last))
            return None if reopened is None else self.end(last, Decision.COMMIT)
        stored = self._store_commit(last, mark_form(half.queue_offset, self._clock.wall_ms()))
        log.warning(
            "discarded transaction committed late queue_offset=%d discarded=%s@%d",
            identity_of(half),
            TRANSACTION_DISCARD_TOPIC,
            last.queue_offset,
        )
        return stored

    def _commit(self, newest: OpenHalf, mark: NewMessage) -> Stored:
        return self._store_commit(self._half(newest), mark)

    def _store_commit(self, half: Record | None, mark: NewMessage) -> Stored:
        message = None if half is None else committed_form(half)
        if message is None:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                "the prepared message is gone, or names no topic and queue that it could go to",
            )
        self._topics.restore(message.topic, message.queue_id + 1)
        committed, marked = self._store.put_all([message, mark])
        self._stats.topic_put(message.topic, TRANSACTION).add(committed.size_bytes)
        return marked

    async def check_round(self) -> None:
        """Look at every open transaction once: ask, discard, or leave it for the next round."""
        unasked: Counter[str] = Counter()
        for number, half in enumerate(self._open.all(), 1):
            if self._open.is_open(half):
                try:
                    if not self._look_at(half):
                        unasked[half.group] += 1
                except RecordTooLarge as error:
                    # A limit was lowered since it came. It waits until somebody ends it or raises the limit.
                    log.error("half message not checked half=%s reason=%s", half, error)
            if number % TURN_COUNT_MAX == 0:
                await asyncio.sleep(0)
        self._note_unasked(unasked)

    def _look_at(self, half: OpenHalf) -> bool:
        """False when there is nobody to ask about it."""
        settings = self._live.current.transactions
        verdict = judge(
            half,
            self._clock.wall_ms(),
            timeout_ms=settings.timeout_ms,
            check_max=settings.check_max,
            kept_ms=self._live.current.store.retention.reserved_hours * _HOUR_MS,
        )
        if verdict is Verdict.WAIT:
            return True
        if verdict is Verdict.CHECK and not self._questions.can_ask(half.group, half.topic):
            return False
        record = self._half(half)
        if record is None:
            log.error("half message lost half=%s", half)
            self._open.close(half)
        elif verdict is Verdict.CHECK:
            self._check(half, record)
        else:
            self._discard(half, record)
        return True

    def _check(self, half: OpenHalf, record: Record) -> None:
        _, copied = self._copy(half, record, half.check_count + 1)
        self._questions.ask(copied)

    def _note_unasked(self, unasked: Counter[str]) -> None:
        """Say for how many transactions nobody can be asked; once a minute, since it may last."""
        now = self._clock.monotonic()
        last = self._unasked_logged_at
        if not unasked or (last is not None and now - last < UNASKED_LOG_SECONDS):
            return
        self._unasked_logged_at = now
        log.warning(
            "nobody to ask about transactions count=%d groups=%d most=%s; they wait for a producer",
            unasked.total(),
            len(unasked),
            unasked.most_common(3),
        )

    def _copy(self, half: OpenHalf, record: Record, check_count: int) -> tuple[Stored, Record]:
        copy = copy_form(record, half.identity, check_count)
        mark = mark_form(half.queue_offset, self._clock.wall_ms())
        marks_before = self._marks_end
        stored, marked = self._store.put_all([copy, mark])
        copied = self._store.decoded_at(stored.physical_offset, HALF_TOPIC)
        assert copied is not None, stored
        self._open.add(open_half(copied, half.identity, marks_before))
        return marked, copied

    def _discard(self, half: OpenHalf, record: Record) -> None:
        self._topics.system_topic(TRANSACTION_DISCARD_TOPIC)
        mark = mark_form(half.queue_offset, self._clock.wall_ms())
        stored, _ = self._store.put_all([discarded_form(record), mark])
        self._open.close(half)
        log.warning(
            "transaction discarded queue_offset=%d checks=%d to=%s@%d",
            half.identity,
            half.check_count,
            TRANSACTION_DISCARD_TOPIC,
            stored.queue_offset,
        )

    def save(self, saved: Callable[[], None] | None = None) -> None:
        """Note where a later start has to begin, once the disk has what was decided up to now."""
        positions, log_end = self._positions(), self._store.max_physical

        def flushed(is_flushed: bool) -> None:
            if is_flushed and positions.half:
                save_positions(self._offsets, positions, log_end)
            if is_flushed and saved is not None:
                saved()

        self._store.watermarks.flushed.when(log_end, flushed, None)

    def _save_now(self) -> None:
        save_positions(self._offsets, self._positions(), self._store.max_physical)
        try:
            self._offsets.save_if_changed()
        except DiskFull as error:
            # Then the log does not grow either; it is tried again with the rest of the table.
            log.error("positions of transactions not saved reason=%s", error)

    def _positions(self) -> Positions:
        head = self._open.head()
        if head is not None:
            return Positions(head.queue_offset, head.marks_before)
        return Positions(self._store.max_offset(HALF_TOPIC, QUEUE_ID), self._marks_end)

    @property
    def _marks_end(self) -> int:
        return self._store.max_offset(HALF_OP_TOPIC, QUEUE_ID)

    def _half(self, half: OpenHalf) -> Record | None:
        return self._store.decoded_at(half.physical_offset, HALF_TOPIC)

    async def _check_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._live.current.transactions.check_interval_ms / 1000)
            try:
                await self.check_round()
                self.save()
            except Exception:
                log.exception("transactions not checked; they will be in the next round")

    def __repr__(self) -> str:
        return f"<Transactions {len(self._open)} open>"
