"""The driver's side of a stream: what queues there are, how far they go, what the next batch takes, what is finished.

What is finished is committed to the consumer group when the next offset is asked for, which Spark does at every trigger
with the end of the last finished batch: neither early nor late, nor only when there is something new.

A query that runs on goes on without queues whose broker is away. Where that would be a wrong start, or an end too early
(``availableNow``), it waits for the broker, up to ``readTimeout``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from cometmq.base.errors import CometError, RemotingError
from cometmq.client.core.queue_answers import Bounds
from cometmq.client.errors import BrokerNotKnown, NoRoute
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.model.message_queue import MessageQueue
from cometmq.spark.client import open_client
from cometmq.spark.errors import ReadStalled
from cometmq.spark.queue_offsets import Offsets, Word
from cometmq.spark.retry import until_done
from cometmq.spark.source.batch_end import Outlook, ranges_between
from cometmq.spark.source.byte_limit import ByteLimit
from cometmq.spark.source.discovery import find_queues
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import SourceOptions
from cometmq.spark.source.start_positions import resolve
from cometmq.spark.source.trigger import Trigger

logger = logging.getLogger("cometmq.spark")

ANNOUNCE_SECONDS: Final = 30.0
"""How often brokers hear that the group is here; they forget it after 120 s."""

COMMIT_AGAIN_SECONDS: Final = 30.0
"""A commit is repeated so often while nothing changes: it may have been lost with a broker, or failed."""


TOPIC_SECONDS: Final = 10.0
"""How long a topic is waited for that no name server knows although there are brokers: its name may be wrong."""

Result = TypeVar("Result")


class StreamPlanner:
    """Args:
    client: whom to ask with; made from the options when there is none.
    clock: monotonic seconds.
    """

    def __init__(
        self,
        options: SourceOptions,
        *,
        client: BulkClient | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self.client = client or open_client(options.connection)
        self._trigger = Trigger(options, self._within_bytes, clock)
        self._byte_limit = ByteLimit(self.client, options)
        self._queues: list[MessageQueue] = []
        self._found_at: float | None = None
        self._group = _Group(options, self.client, clock)
        self._silent: set[str] = set()
        self.latest: Offsets | None = None
        """The ends of all queues that could be asked, when they last were."""

    def close(self) -> None:
        self.client.close()

    def initial(self) -> Offsets:
        """Where a query without a checkpoint starts.

        Raises:
            ReadStalled: a named topic does not exist, or not every broker could be asked, so that the start is not
                known.
        """
        return self._waiting(self._initial)

    def _initial(self) -> Offsets:
        bounds = self._bounds(is_patient=False)
        return resolve(
            self.client,
            self._options,
            "startingOffsets",
            self._options.start,
            # What JSON says nothing about is rather read than passed over.
            Word.LATEST if self._options.start is None else Word.EARLIEST,
            bounds,
        )

    def fix_target(self) -> None:
        """From now on nothing is read that is not there yet. Raises ReadStalled as ``initial`` does."""
        bounds = self._waiting(lambda: self._bounds(is_patient=False))
        self._trigger.target = {queue: now.end for queue, now in bounds.items()}

    def next(self, start: Offsets, *, is_limited: bool) -> Offsets:
        """Where the next batch ends; ``start`` itself when there is to be none.

        Raises:
            DataLost: messages that were to be read are gone, and ``failOnDataLoss`` is set.
            ReadStalled: there is a target, and a broker on the way to it does not answer.
            CometError: no name server answers and nothing is known yet.
        """
        if self._trigger.target is None:
            return self._next(start, is_limited)
        return self._waiting(lambda: self._next(start, is_limited))

    def _next(self, start: Offsets, is_limited: bool) -> Offsets:
        bounds = self._bounds(is_patient=self._trigger.target is None)
        self._group.finished(start, self._queues)
        outlook, shares = self._trigger.take(start, bounds, is_limited=is_limited)
        if self._trigger.target is not None and outlook.rows and not any(shares.values()):
            # Spark would take a batch without rows for the end.
            raise RemotingError(f"the brokers of {outlook.rows} messages do not answer")
        return outlook.ends(shares)

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """What the batch between two offsets reads. Its brokers are known then, if they are to be known at all."""
        ranges = ranges_between(start, end)
        if any(not self.client.places(one.queue.broker_name) for one in ranges):
            self._discover()
        return ranges

    def _waiting(self, step: Callable[[], Result]) -> Result:
        return until_done(
            step,
            patience=self._seconds_for,
            give_up=lambda error, seconds: ReadStalled(
                f"{error}; waited {seconds:g} s (readTimeout)"
            ),
            monotonic=self._clock,
            sleep=self._sleep,
        )

    def _seconds_for(self, error: CometError) -> float:
        """How long an error may last."""
        seconds = self._options.read_seconds
        is_topic = isinstance(error, NoRoute) and not isinstance(error, BrokerNotKnown)
        if is_topic and self.client.has_brokers():
            return min(seconds, TOPIC_SECONDS)
        return seconds

    def _within_bytes(
        self, outlook: Outlook, shares: Mapping[MessageQueue, int], limit_bytes: int, turn: int
    ) -> dict[MessageQueue, int]:
        starts = {queue: outlook.ranges[queue].start for queue in shares}
        return self._byte_limit.within(starts, shares, limit_bytes, turn=turn)

    def _bounds(self, *, is_patient: bool) -> dict[MessageQueue, Bounds]:
        """Args:
        is_patient: go on without queues whose broker does not answer.
        """
        if (
            self._found_at is None
            or self._clock() - self._found_at >= self._options.discovery_seconds
            or not is_patient
        ):
            self._discover()
        bounds, failures = self.client.bounds(self._queues)
        silent = {queue.broker_name for queue in failures}
        for queue, failure in failures.items():
            if not is_patient:
                raise failure
            if queue.broker_name not in self._silent:
                logger.warning("queues wait broker=%s reason=%s", queue.broker_name, failure)
                self._silent.add(queue.broker_name)
        self._silent &= silent
        self.latest = {queue: now.end for queue, now in bounds.items()}
        return bounds

    def _discover(self) -> None:
        try:
            found = find_queues(self.client, self._options)
        except CometError as error:
            # A query that runs does not end because name servers or a topic are away for a while.
            if self._found_at is None:
                raise
            kind = "topic away" if isinstance(error, NoRoute) else "queues not asked for anew"
            logger.warning("%s reason=%s", kind, error)
        else:
            # A queue that is no longer named is still read: its broker may be about to come back.
            self._queues = sorted({*self._queues, *found})
        self._found_at = self._clock()


class _Group:
    """Tells brokers what is finished, and that the group is there. Best effort: a failure is logged, not raised."""

    def __init__(
        self, options: SourceOptions, client: BulkClient, clock: Callable[[], float]
    ) -> None:
        self._options = options
        self._client = client
        self._clock = clock
        self._committed: dict[MessageQueue, int] = {}
        self._committed_at = -COMMIT_AGAIN_SECONDS
        self._announced_at = -ANNOUNCE_SECONDS
        self._announced: tuple[str, ...] = ()

    def finished(self, offsets: Offsets, queues: list[MessageQueue]) -> None:
        if not self._options.commits:
            return
        now = self._clock()
        self._announce(queues, now)
        is_time = now - self._committed_at >= COMMIT_AGAIN_SECONDS
        known = set(queues)
        changed = {
            queue: offset
            for queue, offset in offsets.items()
            if queue in known and (is_time or self._committed.get(queue) != offset)
        }
        if not changed:
            return
        failures = self._client.commit(self._options.group, changed)
        for queue, failure in failures.items():
            del changed[queue]
            logger.warning(
                "position not committed group=%s queue=%s reason=%s",
                self._options.group,
                queue,
                failure,
            )
        self._committed.update(changed)
        if is_time:
            self._committed_at = now

    def _announce(self, queues: list[MessageQueue], now: float) -> None:
        """Without a heartbeat there is no retry topic, and without that RocketMQ's tools do not show the group."""
        topics = tuple(sorted({queue.topic for queue in queues}))
        if topics == self._announced and now - self._announced_at < ANNOUNCE_SECONDS:
            return
        self._announced_at, self._announced = now, topics
        wanted = self._options.filter
        self._client.announce(self._options.group, topics, wanted.expression, wanted.kind)
