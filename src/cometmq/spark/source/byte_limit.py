"""Rows that fit into a number of bytes: sizes of stored records, as a broker tells them.

Our broker tells the size of each record without sending it, so that the limit holds exactly. RocketMQ's does not; there
a few messages are pulled and the others taken to be as large as those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from cometmq.base.errors import CometError
from cometmq.client.aio.bulk.raw_pull import read_bulk_pull, read_pull
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.core.namespace import wrap
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.model.flags import PullFlag
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header
from cometmq.protocol.headers.pull import BulkPullHeader, PullMessageHeader
from cometmq.protocol.reply_errors import BrokerReplyError, RequestCodeNotSupported
from cometmq.spark.columns.frames import Ints, walk
from cometmq.spark.source.source_options import SourceOptions

ASKED_BYTES: Final = 8 << 20
ASKED_COUNT: Final = 16_384
ROUNDS_MAX: Final = 64
"""Times that each queue is asked for more sizes; a trigger that needs more takes less than it might."""

SAMPLE_COUNT: Final = 32

SizesOf = Callable[
    [Mapping[MessageQueue, int], Mapping[MessageQueue, int]], Mapping[MessageQueue, Ints]
]
"""From how many rows of each queue are wanted, and its part of the bytes, to the sizes of its first records."""


class ByteLimit:
    def __init__(self, client: BulkClient, options: SourceOptions) -> None:
        self._client = client
        self._options = options

    def within(
        self,
        starts: Mapping[MessageQueue, int],
        rows: Mapping[MessageQueue, int],
        limit_bytes: int,
        *,
        turn: int = 0,
    ) -> dict[MessageQueue, int]:
        """How many rows of each queue from ``starts`` on fit, at most ``rows``; at least one row in all.

        Raises:
            CometError: a broker refuses; one that does not answer gives no rows.
        """
        return within_bytes(
            rows,
            limit_bytes,
            lambda wanted, parts: self._sizes(starts, wanted, parts),
            turn=turn,
        )

    def _sizes(
        self,
        starts: Mapping[MessageQueue, int],
        rows: Mapping[MessageQueue, int],
        parts: Mapping[MessageQueue, int],
    ) -> dict[MessageQueue, Ints]:
        """Sizes of records from the start of each queue on, enough of them to use its part up."""
        queues = {
            queue: _Sizes(starts[queue], starts[queue] + count, parts[queue])
            for queue, count in rows.items()
        }
        for _ in range(ROUNDS_MAX):
            asked = [queue for queue, sizes in queues.items() if sizes.is_open]
            if not asked:
                break

            def header(queue: MessageQueue) -> Header:
                return self._header(queue, queues[queue].next_offset, queues[queue].end)

            answers = self._client.ask(asked, RequestCode.BULK_PULL, header)
            for queue in answers.failures:
                queues[queue].is_open = False
            for queue, (reply, place) in answers.replies.items():
                self._take(queue, queues[queue], reply, place.address, parts[queue])
        return {queue: np.concatenate(sizes.told) for queue, sizes in queues.items() if sizes.told}

    def _take(
        self, queue: MessageQueue, sizes: _Sizes, reply: Command, address: str, part: int
    ) -> None:
        """Note what a broker told of a queue, of which so many bytes are wanted."""
        try:
            told = read_bulk_pull(reply, address, sizes_only=True)
        except RequestCodeNotSupported:
            each = self._typical(queue, sizes.next_offset)
            count = min(sizes.end - sizes.next_offset, part // each + 1)
            sizes.add(np.full(count, each, np.int64), sizes.end)
            return
        except CometError:
            told = None
        if told is not None and told.status is PullStatus.FOUND and told.sizes is not None:
            sizes.add(np.array(told.sizes, dtype=np.int64), told.next_offset)
        else:
            # Whatever is wrong there, the task that reads it says it better.
            sizes.add(np.zeros(1, np.int64), sizes.end)

    def _typical(self, queue: MessageQueue, offset: int) -> int:
        """The size of messages at a place, rounded up; 1 when there are none."""

        def header(queue: MessageQueue) -> Header:
            return PullMessageHeader(
                consumer_group=wrap(self._options.connection.namespace, self._options.group),
                topic="",
                queue_id=queue.queue_id,
                queue_offset=offset,
                max_msg_nums=SAMPLE_COUNT,
                sys_flag=int(PullFlag.SUBSCRIPTION),
                subscription="*",
            )

        answers = self._client.ask([queue], RequestCode.PULL_MESSAGE, header)
        answers.raise_first()
        reply, place = answers.replies[queue]
        try:
            records = read_pull(reply, place.address).records
        except BrokerReplyError:
            records = b""
        return -(-len(records) // len(walk(records))) if records else 1

    def _header(self, queue: MessageQueue, offset: int, end: int) -> Header:
        return BulkPullHeader(
            consumer_group=wrap(self._options.connection.namespace, self._options.group),
            topic="",
            queue_id=queue.queue_id,
            offset=offset,
            end_offset=end,
            max_bytes=ASKED_BYTES,
            max_count=ASKED_COUNT,
            sizes_only=True,
        )


class _Sizes:
    """What is known of a queue's records from a place on."""

    def __init__(self, start: int, end: int, wanted_bytes: int) -> None:
        self.next_offset = start
        self.end = end
        self.told: list[Ints] = []
        self.is_open = True
        self._wanted_bytes = wanted_bytes

    def add(self, sizes: Ints, next_offset: int) -> None:
        self.told.append(sizes)
        self._wanted_bytes -= int(sizes.sum())
        self.is_open = self._wanted_bytes >= 0 and self.next_offset < next_offset < self.end
        self.next_offset = next_offset


def within_bytes(
    rows: Mapping[MessageQueue, int],
    limit_bytes: int,
    sizes_of: SizesOf,
    *,
    turn: int = 0,
) -> dict[MessageQueue, int]:
    """How many rows of each queue fit, at most ``rows``; at least one row in all."""
    wanted = {queue: count for queue, count in rows.items() if count > 0}
    total = sum(wanted.values())
    # In proportion to what is there, so that queues are drained at the same pace.
    parts = {queue: limit_bytes * count // total for queue, count in wanted.items()}
    sizes = sizes_of(wanted, parts)
    return {**dict.fromkeys(rows, 0), **fitting(sizes, parts, limit_bytes, turn=turn)}


def fitting(
    sizes: Mapping[MessageQueue, Ints],
    parts: Mapping[MessageQueue, int],
    limit_bytes: int,
    *,
    turn: int = 0,
) -> dict[MessageQueue, int]:
    """How many of the first records of each queue fit together: one of each if they can, then by their parts."""
    queues = sorted(sizes)
    queues = queues[turn % len(queues) :] + queues[: turn % len(queues)] if queues else []
    taken = dict.fromkeys(queues, 0)
    left = limit_bytes
    for queue in queues:
        first = int(sizes[queue][0])
        if first <= left:
            taken[queue], left = 1, left - first
    if queues and not any(taken.values()):
        # One message is larger than the limit; without it nothing would ever move.
        return {**taken, queues[0]: 1}
    # First each its part, then whoever comes first what the others left of theirs.
    for allowed in (parts, dict.fromkeys(queues, limit_bytes)):
        for queue in queues:
            if not taken[queue]:
                continue
            ends = np.cumsum(sizes[queue][taken[queue] :])
            room = min(left, allowed[queue] - int(sizes[queue][: taken[queue]].sum()))
            count = int(np.searchsorted(ends, room, side="right"))
            if count:
                taken[queue] += count
                left -= int(ends[count - 1])
    return taken
