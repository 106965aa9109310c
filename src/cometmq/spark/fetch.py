"""Ranges of queues into Arrow batches: what a task does.

    bulk pull:      ask ─ take ─ ask for the next ─ decode ─ yield ─ take ─ …
    ordinary pulls: the same with several asked ahead, decoded together

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

import pyarrow as pa

from cometmq.base.errors import CometError
from cometmq.client.core.namespace import wrap
from cometmq.model.flags import PullFlag
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.pull import BulkPullHeader, PullMessageHeader, PullMessageReply
from cometmq.protocol.reply_errors import RequestCodeNotSupported, error_for
from cometmq.spark.bulk_pull import ask, take
from cometmq.spark.cluster import Cluster, Place, open_connection
from cometmq.spark.connection import BlockingConnection
from cometmq.spark.decode import decode
from cometmq.spark.errors import DataLost, Loss, ReadStalled
from cometmq.spark.frames import Data, Ints
from cometmq.spark.ranges import Range
from cometmq.spark.retry import PASSING
from cometmq.spark.source_options import SourceOptions

logger = logging.getLogger("cometmq.spark")

BULK_COUNT: Final = 16_384
PULL_COUNT: Final = 1024
"""Asked for per ordinary pull; RocketMQ's broker gives 32 unless told otherwise."""

PULLS_AHEAD: Final = 8
PAUSE_SECONDS: Final = 0.2
ANSWER_SECONDS: Final = 10.0
"""What is read may have to come from a disk that others use too."""

_PULLED: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A range, and where its broker was when it was planned."""

    range: Range
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Pulled:
    """What came for the offsets up to ``next_offset``. ``sizes`` is None where they are not known."""

    code: int
    next_offset: int
    first: int
    end: int
    records: Data = b""
    sizes: Ints | None = None


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
        self._connections: dict[str, BlockingConnection] = {}
        self._without_bulk: set[str] = set()
        tags = options.filter.tags
        self._tag = " || ".join(tags) if tags else None

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

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

    def _pulls(self, address: str, wanted: Range) -> Iterator[Pulled]:
        """Steps from one address up to the end of the range, or to the first that brought nothing."""
        if address not in self._without_bulk:
            try:
                yield from self._bulk_pulls(address, wanted)
                return
            except RequestCodeNotSupported:
                logger.info("no bulk pull at %s, ordinary pulls serve", address)
                self._without_bulk.add(address)
        yield from self._plain_pulls(address, wanted)

    def _bulk_pulls(self, address: str, wanted: Range) -> Iterator[Pulled]:
        connection = self._connection(address)
        offset = wanted.start
        number: int | None = ask(connection, self._bulk_header(wanted, offset))
        while number is not None:
            reply = take(connection, number)
            pulled = Pulled(
                reply.code,
                reply.next_offset,
                reply.min_offset,
                reply.max_offset,
                reply.records,
                reply.sizes,
            )
            number = None
            if reply.code == ResponseCode.SUCCESS and offset < reply.next_offset < wanted.end:
                offset = reply.next_offset
                number = ask(connection, self._bulk_header(wanted, offset))
            yield pulled

    def _plain_pulls(self, address: str, wanted: Range) -> Iterator[Pulled]:
        connection = self._connection(address)
        offset, step = wanted.start, 0
        while offset < wanted.end:
            # Without a filter, where the next pulls begin is known as soon as one has told how many come at once.
            ahead = PULLS_AHEAD if step and self._options.filter.is_all else 1
            starts = range(offset, wanted.end, max(step, 1))[:ahead]
            numbers = [connection.send(self._pull_request(wanted, at)) for at in starts]
            replies = [_plain_reply(connection.receive(number), address) for number in numbers]
            found: list[Pulled] = []
            for at, pulled in zip(starts, replies, strict=True):
                # The one before may be shorter than foreseen; the rest is then asked for again.
                if pulled.code != ResponseCode.SUCCESS or at != offset:
                    break
                found.append(pulled)
                offset = pulled.next_offset
                step = offset - at
            if not found:
                yield replies[0]
                return
            yield _joined(found)

    def _checked(self, place: Place, wanted: Range, pulled: Pulled) -> Pulled:
        """The same; raises when something is missing that must not be."""
        offset = wanted.start
        if pulled.code == ResponseCode.SUCCESS and pulled.next_offset > offset:
            return pulled
        if pulled.code == ResponseCode.PULL_RETRY_IMMEDIATELY and pulled.next_offset > offset:
            if self._options.filter.is_all:
                # Nothing matched although everything does: what was there is being removed.
                self._lost(wanted, offset, pulled)
            return pulled
        if pulled.first > offset:
            self._lost(wanted, offset, pulled)
            return replace(pulled, next_offset=min(pulled.first, wanted.end))
        if pulled.end < wanted.end and place.is_master:
            # The master itself has less than it had when the range was planned.
            self._lost(wanted, max(offset, pulled.end), pulled)
            return replace(pulled, next_offset=wanted.end)
        raise _Stalled(
            f"{place.address} answered {pulled.code} with offsets {pulled.first} to {pulled.end}"
        )

    def _lost(self, wanted: Range, offset: int, pulled: Pulled) -> None:
        loss = Loss(wanted.queue, offset, wanted.end, pulled.first, pulled.end)
        if self._options.fail_on_data_loss:
            raise DataLost([loss])
        logger.warning("messages are gone %s", loss)

    def _batch(self, wanted: Range, pulled: Pulled) -> pa.RecordBatch | None:
        if pulled.code != ResponseCode.SUCCESS:
            return None
        options = self._options
        batch = decode(
            pulled.records,
            pulled.sizes,
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
        cluster = Cluster(self._options.connection)
        try:
            cluster.queues(left.queue.topic)
            return cluster.places(left.queue.broker_name)
        except CometError as error:
            logger.warning("no route topic=%s reason=%s", left.queue.topic, error)
            return ()
        finally:
            cluster.close()

    def _connection(self, address: str) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = open_connection(
                address, self._options.connection, seconds_min=ANSWER_SECONDS
            )
            self._connections[address] = connection
        return connection

    def _forget(self, address: str) -> None:
        if (connection := self._connections.pop(address, None)) is not None:
            connection.close()

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
        return Command(RequestCode.PULL_MESSAGE, encode_fields(header))


def _plain_reply(reply: Command, address: str) -> Pulled:
    if reply.code not in _PULLED:
        raise error_for(reply, address)
    header = decode_fields(PullMessageReply, reply.ext)
    return Pulled(
        reply.code, header.next_begin_offset, header.min_offset, header.max_offset, reply.body
    )


def _joined(pulls: Sequence[Pulled]) -> Pulled:
    if len(pulls) == 1:
        return pulls[0]
    return replace(pulls[-1], records=b"".join(pulled.records for pulled in pulls))
