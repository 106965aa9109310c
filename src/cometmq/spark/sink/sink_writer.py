"""One task's rows into the brokers: which queue each goes to, in what requests, and which are there already.

Each queue has at most one request under way, so that the rows of a queue keep their order whatever is sent again. All
queues together have several, so that the brokers need not wait for the task, nor the task for them.

A row's unique key is a hash of what is sent, of the sink and the batch. When a partition is repeated, the brokers are
asked which keys they hold of it, and each of those is left out once. So the order of the rows does not matter, nor
which queue they went to. When the whole batch is begun anew by another run, it is checked first (``sink_repeat``).
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import chain
from typing import Final

import pyarrow as pa

from cometmq.client.core.namespace import wrap
from cometmq.client.core.send.queue_selector import hash_index
from cometmq.client.errors import BrokerNotKnown
from cometmq.client.sync.bulk_client import BrokerLink
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import SINK, UNIQ_KEY
from cometmq.model.messages.sink_mark import SinkMark
from cometmq.spark.client import open_client
from cometmq.spark.retry import until_done
from cometmq.spark.sink.sink_errors import BadRow, NotRepeatable, SinkStalled
from cometmq.spark.sink.sink_lane import BrokerLane
from cometmq.spark.sink.sink_options import BATCH_BYTES_MAX, SinkOptions
from cometmq.spark.sink.sink_repeat import WAY_OUT, Spool, wait_for_others
from cometmq.spark.sink.sink_request import Request
from cometmq.spark.sink.sink_rows import RowReader, SinkRow

KEY_BYTES: Final = 16
_KEY_START: Final = f"{UNIQ_KEY}\x01".encode()
ELEMENT_BYTES: Final = 22
"""What a batch adds to body and properties of a message."""
BATCH_COUNT_MAX: Final = 1000
REQUESTS_MAX: Final = 64
"""Under way to one broker: batches, and delayed messages, each of which is a request of its own."""
BUFFER_BYTES_MAX: Final = 32 << 20
"""In requests that are not full yet, of all queues together."""


class _QueueTarget:
    """A queue and what is to go there next."""

    __slots__ = ("filling", "lane", "queue", "sent", "size_bytes", "wire_topic")

    def __init__(self, queue: MessageQueue, wire_topic: str, lane: BrokerLane) -> None:
        self.queue = queue
        self.wire_topic = wire_topic
        self.lane = lane
        self.filling: Request | None = None
        self.size_bytes = 0
        self.sent: Request | None = None


class _TopicTarget:
    __slots__ = ("index", "queues")

    def __init__(self, queues: list[_QueueTarget], index: int) -> None:
        self.queues = queues
        self.index = index % len(queues)

    def go_on(self) -> None:
        self.index = (self.index + 1) % len(self.queues)


class SinkWriter:
    """Use it as ``writer.write(batches)``, then ``close``.

    Args:
        run: the same for all partitions of a batch, and another one when the batch is begun anew.
    """

    def __init__(self, options: SinkOptions, mark: SinkMark, run: str) -> None:
        self.written = 0
        self.left_out = 0
        """Rows that an earlier attempt had stored."""
        self._options = options
        self._mark = mark
        self._attempt = uuid.uuid4().hex
        self._run = run
        self._client = open_client(options.connection)
        self._lanes: dict[str, BrokerLane] = {}
        self._topics: dict[str, _TopicTarget] = {}
        self._stored: Counter[bytes] = Counter()
        self._delayed_seen: Counter[bytes] = Counter()
        self._buffered_bytes = 0
        self._key_base = blake2b(f"{mark.sink}/{mark.batch}".encode(), digest_size=KEY_BYTES)
        self._mark_text = f"{SINK}\x01{mark}\x02"
        self._use_text("", "")

    @property
    def addresses(self) -> list[str]:
        """Of the brokers that were written to."""
        return [self._address(name) for name in self._lanes]

    def write(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Return once every row is acknowledged.

        Raises:
            BadRow: a row that can never be a message; rows before it may have been written.
            NotRepeatable: an earlier run has begun the batch with other rows in this partition.
            CometError: brokers or name servers refuse or fail for longer than they may.
        """
        left = iter(batches)
        reader: RowReader | None = None
        for batch in left:
            if reader is None:
                reader = RowReader(batch.schema, self._options)
            self._open_all(reader.topics(batch))
            if any(lane.needs_check for lane in self._lanes.values()):
                self._write_checked(reader, chain([batch], left))
                break
            for row in reader.rows(batch):
                self._add(row)
        for topic in self._topics.values():
            for target in topic.queues:
                self._submit(target)
        for lane in self._lanes.values():
            lane.settle_all()

    def close(self) -> None:
        self._client.close()

    def _write_checked(self, reader: RowReader, batches: Iterable[pa.RecordBatch]) -> None:
        """Nothing is written before it is clear that no row comes twice. Raises NotRepeatable."""
        spool = Spool()
        try:
            for batch in batches:
                self._open_all(reader.topics(batch))
                spool.add(batch)
            spool.end()
            self._check(row for batch in spool.batches() for row in reader.rows(batch))
            for batch in spool.batches():
                for row in reader.rows(batch):
                    self._add(row)
        finally:
            spool.close()

    def _check(self, rows: Iterable[SinkRow]) -> None:
        stored = self._stored.copy()
        delayed_seen = self._delayed_seen.copy()
        missing = bytearray()
        are_comparable = True
        for row in rows:
            key = self._key(row)
            if stored[key] > 0:
                stored[key] -= 1
            else:
                missing += key
                are_comparable &= not row.is_delayed
        self._delayed_seen = delayed_seen
        if (strange := stored.total()) > 0:
            mark = self._mark
            raise NotRepeatable(
                f"sink {mark.sink} batch {mark.batch} partition {mark.partition}: an earlier run has stored {strange} "
                "rows that are not among its rows now: the batch is cut differently, its rows differ, or two writes of "
                f"it share a sinkId. Nothing of this partition was written. {WAY_OUT}"
            )
        lanes = [lane for lane in self._lanes.values() if lane.needs_check]
        for lane in lanes:
            lane.confirm()
        if missing:
            wait_for_others(
                lanes,
                missing,
                are_comparable=are_comparable,
                seconds=self._options.retry_seconds,
                monotonic=time.monotonic,
                sleep=time.sleep,
            )

    def _add(self, row: SinkRow) -> None:
        topic = self._topics[row.topic]
        key = self._key(row)
        if self._stored and self._stored[key] > 0:
            self._stored[key] -= 1
            self.left_out += 1
            return
        self.written += 1
        properties = b"%b%b%b" % (_KEY_START, key.hex().upper().encode(), self._key_end)
        # A copy: a view would keep the whole batch of rows for as long as this one waits for others.
        element = (0, bytes(row.body), properties)
        is_sharded = row.sharding is not None
        if row.sharding is not None:
            target = topic.queues[hash_index(row.sharding, len(topic.queues))]
        else:
            target = topic.queues[topic.index]
        if row.is_delayed:
            self._submit_single(target, key, element)
            if not is_sharded:
                topic.go_on()
            return
        size_bytes = ELEMENT_BYTES + len(row.body) + len(properties)
        if size_bytes > BATCH_BYTES_MAX:
            raise BadRow(
                f"a message of {size_bytes} bytes to topic {row.topic!r}; expected at most {BATCH_BYTES_MAX}"
            )
        if target.filling is not None and (
            target.size_bytes + size_bytes > self._options.batch_bytes
            or len(target.filling.keys) >= BATCH_COUNT_MAX
        ):
            self._submit(target)
            if not is_sharded:
                topic.go_on()
                target = topic.queues[topic.index]
        if target.filling is None:
            target.filling = Request(target.queue, target.wire_topic, is_batch=True)
        target.filling.keys.append(key)
        target.filling.elements.append(element)
        target.size_bytes += size_bytes
        self._buffered_bytes += size_bytes
        if self._buffered_bytes > BUFFER_BYTES_MAX:
            targets = [target for topic in self._topics.values() for target in topic.queues]
            self._submit(max(targets, key=lambda target: target.size_bytes))

    def _use_text(self, topic: str, text: str) -> None:
        """What all rows with the same properties have in common is made once."""
        self._topic, self._text = topic, text
        self._text_hasher = self._key_base.copy()
        self._text_hasher.update(f"\0{topic}\0{len(text)}\0{text}".encode())
        self._key_end = f"\x02{self._mark_text}{text}".encode()

    def _key(self, row: SinkRow) -> bytes:
        if row.text != self._text or row.topic != self._topic:
            self._use_text(row.topic, row.text)
        if row.identity is not None:
            hasher = self._key_base.copy()
            hasher.update(f"\0id\0{row.topic}\0{row.identity}".encode())
        else:
            hasher = self._text_hasher.copy()
            hasher.update(row.body)
        if row.is_delayed:
            # The broker tells delayed messages of one time apart by their keys.
            plain = hasher.digest()
            hasher.update(b"\0%d/%d" % (self._mark.partition, self._delayed_seen[plain]))
            self._delayed_seen[plain] += 1
        return hasher.digest()

    def _submit(self, target: _QueueTarget) -> None:
        request = target.filling
        if request is None:
            return
        target.filling = None
        self._buffered_bytes -= target.size_bytes
        target.size_bytes = 0
        if target.sent is not None:
            target.lane.settle(target.sent)
        while target.lane.under_way >= REQUESTS_MAX:
            target.lane.settle_oldest()
        target.sent = request
        target.lane.submit(request)

    def _submit_single(
        self, target: _QueueTarget, key: bytes, element: tuple[int, bytes, bytes]
    ) -> None:
        while target.lane.under_way >= REQUESTS_MAX:
            target.lane.settle_oldest()
        request = Request(target.queue, target.wire_topic, is_batch=False)
        request.keys.append(key)
        request.elements.append(element)
        target.lane.submit(request)

    def _open_all(self, topics: Iterable[str]) -> None:
        for topic in topics:
            if topic not in self._topics:
                self._topics[topic] = self._find(topic)

    def _find(self, topic: str) -> _TopicTarget:
        """The queues of a topic; their brokers are asked what they hold of this batch before anything is sent there."""
        wire_topic = wrap(self._options.connection.namespace, topic)
        # The brokers may be starting again, and are in no route then.
        queues = until_done(
            lambda: self._client.publish_queues(topic, queues_of_new=self._options.topic_queues),
            patience=lambda _: self._options.retry_seconds,
            give_up=lambda cause, seconds: SinkStalled(
                f"topic {topic!r} could not be written to for {seconds:g} s (retryTimeout): {cause}"
            ),
            monotonic=time.monotonic,
            sleep=time.sleep,
        )
        for name in sorted({queue.broker_name for queue in queues}):
            if name not in self._lanes:
                self._lanes[name] = self._open(name, topic)
        targets = [
            _QueueTarget(queue, wire_topic, self._lanes[queue.broker_name]) for queue in queues
        ]
        # Tasks side by side begin at different queues.
        return _TopicTarget(targets, self._mark.partition)

    def _open(self, broker_name: str, topic: str) -> BrokerLane:
        is_first = True

        def connect() -> BrokerLink:
            nonlocal is_first
            if not is_first:
                # It may have come up elsewhere.
                self._client.look_again(topic)
            is_first = False
            return self._client.link(self._address(broker_name), self._options.send_seconds)

        lane = BrokerLane(broker_name, connect, self._options, self._mark, self._attempt, self._run)
        try:
            self._stored += lane.open()
        except BaseException:
            lane.close()
            raise
        return lane

    def _address(self, broker_name: str) -> str:
        for place in self._client.places(broker_name):
            if place.is_master:
                return place.address
        raise BrokerNotKnown(f"no master of broker {broker_name!r} is known")
