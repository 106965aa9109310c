"""Ranges of queues into Arrow batches: what a task does.

    bulk pull:      start ─ finish ─ start the next ─ decode ─ yield ─ finish ─ …
    ordinary pulls: the same with several started ahead, decoded together

The next range is asked for before the last one is decoded, so that the broker and the network work meanwhile. At most
one reply of a bulk pull, or ``PULLS_AHEAD`` of ordinary ones, is in memory beside the batch that is being handed out,
however long the range.

A read that fails on its way goes on where it stopped, at another address of the broker or later, until nothing came for
``readTimeout``. A broker that does not know the bulk pull is RocketMQ's own: ordinary pulls serve there.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from cometmq.base.errors import CometError
from cometmq.client.aio.bulk.broker_link import StartedCall
from cometmq.client.aio.bulk.raw_pull import (
    RawPulled,
    bulk_pull_request,
    pull_request,
    read_bulk_pull,
    read_pull,
)
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.core.broker_order import Place
from cometmq.client.core.namespace import wrap
from cometmq.client.sync.bulk_client import BrokerLink
from cometmq.model.flags import PullFlag
from cometmq.protocol.command import Command
from cometmq.protocol.headers.pull import BulkPullHeader, PullMessageHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported
from cometmq.remoting.large_body import LentMemory
from cometmq.spark.client import open_client
from cometmq.spark.columns.decode import decode
from cometmq.spark.errors import Loss, ReadStalled, check_losses
from cometmq.spark.retry import PASSING
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import SourceOptions

logger = logging.getLogger("cometmq.spark")

BULK_COUNT: Final = 16_384
PULL_COUNT: Final = 1024
"""Asked for per ordinary pull; RocketMQ's broker gives 32 unless told otherwise."""

PULLS_AHEAD: Final = 8
PAUSE_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 10.0
"""What is read may have to come from a disk that others use too."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A range, and where its broker was when it was planned."""

    range: Range
    places: tuple[Place, ...]


class _Stalled(CometError):
    """The broker has less than it must have; perhaps it is a replica that has yet to catch up."""


class Fetcher:
    """Reads ranges one after the other; ``close`` it. Not thread-safe."""

    def __init__(
        self,
        options: SourceOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._client = open_client(options.connection)
        self._links: dict[str, BrokerLink] = {}
        # Of the records that were last pulled: they are decoded before the next come.
        self._memory = LentMemory()
        self._without_bulk: set[str] = set()
        tags = options.filter.tags
        self._tag = " || ".join(tags) if tags else None

    def close(self) -> None:
        self._links.clear()
        self._client.close()

    def read(self, wanted: Sequence[Wanted]) -> Iterator[pa.RecordBatch]:
        """The rows of all ranges, in order.

        Raises:
            DataLost: some of them are gone, and ``failOnDataLoss`` is set.
            ReadStalled: no address of a broker gave anything for ``readTimeout``.
            CometError: a broker refuses.
        """
        for one in wanted:
            yield from self._read_range(one)

    def _read_range(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        left = wanted.range
        places = deque(wanted.places)
        deadline = self._clock() + self._options.read_seconds
        failure: CometError = _Stalled(f"no route names broker {left.queue.broker_name!r}")
        while left.start < left.end:
            if not places:
                # All were tried: later, and perhaps the broker is elsewhere by then.
                self._pause(left, deadline, failure)
                places.extend(self._places_now(left) or wanted.places)
                continue
            place = places.popleft()
            try:
                for pulled in self._pulls(place.address, left):
                    step = self._checked(place, left, pulled)
                    batch = self._batch(left, step)
                    left = replace(left, start=min(step.next_offset, left.end))
                    deadline = self._clock() + self._options.read_seconds
                    if batch is not None:
                        yield batch
                places.appendleft(place)
            except (*PASSING, _Stalled) as error:
                failure = error
                self._forget(place.address)
                logger.warning(
                    "read interrupted topic=%s broker=%s queue=%d offset=%d reason=%s",
                    left.queue.topic,
                    left.queue.broker_name,
                    left.queue.queue_id,
                    left.start,
                    error,
                )

    def _pulls(self, address: str, wanted: Range) -> Iterator[RawPulled]:
        """Steps from one address up to the end of the range, or to the first that brought nothing."""
        if address not in self._without_bulk:
            try:
                yield from self._bulk_pulls(address, wanted)
                return
            except RequestCodeNotSupported:
                logger.info("no bulk pull at %s, ordinary pulls serve", address)
                self._without_bulk.add(address)
        yield from self._plain_pulls(address, wanted)

    def _bulk_pulls(self, address: str, wanted: Range) -> Iterator[RawPulled]:
        link = self._link(address)
        offset = wanted.start
        started: StartedCall | None = self._ask(link, wanted, offset)
        while started is not None:
            pulled = read_bulk_pull(link.finish(started), address)
            started = None
            if pulled.status is PullStatus.FOUND and offset < pulled.next_offset < wanted.end:
                offset = pulled.next_offset
                started = self._ask(link, wanted, offset)
            yield pulled
            self._memory.give_back(pulled.records)

    def _ask(self, link: BrokerLink, wanted: Range, offset: int) -> StartedCall:
        return link.start(bulk_pull_request(self._bulk_header(wanted, offset)), self._memory)

    def _plain_pulls(self, address: str, wanted: Range) -> Iterator[RawPulled]:
        link = self._link(address)
        offset, step = wanted.start, 0
        while offset < wanted.end:
            # Without a filter, where the next pulls begin is known as soon as one has told how many come at once.
            ahead = PULLS_AHEAD if step and self._options.filter.is_all else 1
            starts = range(offset, wanted.end, max(step, 1))[:ahead]
            started = [link.start(self._pull_request(wanted, at)) for at in starts]
            replies = [read_pull(link.finish(one), address) for one in started]
            found: list[RawPulled] = []
            for at, pulled in zip(starts, replies, strict=True):
                # The one before may be shorter than foreseen; the rest is then asked for again.
                if pulled.status is not PullStatus.FOUND or at != offset:
                    break
                found.append(pulled)
                offset = pulled.next_offset
                step = offset - at
            if not found:
                yield replies[0]
                return
            yield _joined(found)

    def _checked(self, place: Place, wanted: Range, pulled: RawPulled) -> RawPulled:
        """The same; raises when something is missing that must not be."""
        offset = wanted.start
        if pulled.status is PullStatus.FOUND and pulled.next_offset > offset:
            return pulled
        if pulled.status is PullStatus.NO_MATCHED_MSG and pulled.next_offset > offset:
            if self._options.filter.is_all:
                # Nothing matched although everything does: what was there is being removed.
                self._lost(wanted, offset, pulled)
            return pulled
        # A replica may have begun later than its master.
        if pulled.min_offset > offset and place.is_master:
            self._lost(wanted, offset, pulled)
            return replace(pulled, next_offset=min(pulled.min_offset, wanted.end))
        if pulled.max_offset < wanted.end and place.is_master:
            # The master itself has less than it had when the range was planned.
            self._lost(wanted, max(offset, pulled.max_offset), pulled)
            return replace(pulled, next_offset=wanted.end)
        raise _Stalled(
            f"{place.address} answered {pulled.status} with offsets {pulled.min_offset} to {pulled.max_offset}"
        )

    def _lost(self, wanted: Range, offset: int, pulled: RawPulled) -> None:
        loss = Loss(wanted.queue, offset, wanted.end, pulled.min_offset, pulled.max_offset)
        check_losses([loss], fails=self._options.fail_on_data_loss)

    def _batch(self, wanted: Range, pulled: RawPulled) -> pa.RecordBatch | None:
        if pulled.status is not PullStatus.FOUND:
            return None
        options = self._options
        sizes = None if pulled.sizes is None else np.frombuffer(pulled.sizes, np.intc)
        batch = decode(
            pulled.records,
            sizes,
            options.columns,
            wanted.queue.broker_name,
            first_offset=wanted.start,
            last_offset=wanted.end - 1,
            tag=self._tag,
        )
        if options.connection.namespace and "topic" in options.columns:
            at = options.columns.index("topic")
            names = pa.repeat(pa.scalar(wanted.queue.topic), batch.num_rows)
            batch = batch.set_column(at, batch.schema.field(at), names)
        if options.filter.is_all:
            expected = min(pulled.next_offset, wanted.end) - wanted.start
            if batch.num_rows < expected:
                self._lost(wanted, wanted.start, pulled)
        return batch if batch.num_rows else None

    def _pause(self, left: Range, deadline: float, failure: CometError) -> None:
        if self._clock() >= deadline:
            queue = left.queue
            raise ReadStalled(
                f"topic={queue.topic} broker={queue.broker_name} queue={queue.queue_id}: wanted offsets "
                f"{left.start} to {left.end}, nothing came for {self._options.read_seconds:g} s, at last: {failure}; "
                "see whether the broker or a replica of it runs, or raise readTimeout"
            ) from failure
        self._sleep(PAUSE_SECONDS)

    def _places_now(self, left: Range) -> tuple[Place, ...]:
        try:
            self._client.queues(left.queue.topic)
        except CometError as error:
            logger.warning("no route topic=%s reason=%s", left.queue.topic, error)
            return ()
        return self._client.places(left.queue.broker_name)

    def _link(self, address: str) -> BrokerLink:
        link = self._links.get(address)
        if link is None:
            seconds = max(self._options.connection.call_seconds, ANSWER_SECONDS)
            link = self._links[address] = self._client.link(address, seconds)
        return link

    def _forget(self, address: str) -> None:
        if (link := self._links.pop(address, None)) is not None:
            link.close()
            # A reply that nobody reads may lie in the old one.
            self._memory = LentMemory()

    def _bulk_header(self, wanted: Range, offset: int) -> BulkPullHeader:
        options = self._options
        namespace = options.connection.namespace
        return BulkPullHeader(
            consumer_group=wrap(namespace, options.group),
            topic=wrap(namespace, wanted.queue.topic),
            queue_id=wanted.queue.queue_id,
            offset=offset,
            end_offset=wanted.end,
            max_bytes=options.pull_bytes,
            max_count=BULK_COUNT,
            subscription=options.filter.expression,
            expression_type=options.filter.kind,
        )

    def _pull_request(self, wanted: Range, offset: int) -> Command:
        options = self._options
        namespace = options.connection.namespace
        header = PullMessageHeader(
            consumer_group=wrap(namespace, options.group),
            topic=wrap(namespace, wanted.queue.topic),
            queue_id=wanted.queue.queue_id,
            queue_offset=offset,
            max_msg_nums=min(wanted.end - offset, PULL_COUNT),
            sys_flag=int(PullFlag.SUBSCRIPTION),
            subscription=options.filter.expression,
            expression_type=options.filter.kind,
            broker_name=wanted.queue.broker_name,
        )
        return pull_request(header)


def _joined(pulls: Sequence[RawPulled]) -> RawPulled:
    if len(pulls) == 1:
        return pulls[0]
    return replace(pulls[-1], records=b"".join(pulled.records for pulled in pulls))
