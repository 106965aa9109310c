"""Positions that users name - words, times, numbers - into offsets of queues, by asking the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.client.aio.bulk.raw_pull import read_pull
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.client.core.namespace import wrap
from cometmq.client.core.queue_answers import Bounds
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.model.flags import PullFlag
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.record import decode_record
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.fields import Header
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.spark.queue_offsets import AtOffset, AtTime, Positions, Word, positions_of
from cometmq.spark.source.source_options import SourceOptions

_STEPS_MAX: Final = 64
"""Halvings of a range of offsets, which have 63 bits."""


def resolve(
    client: BulkClient,
    options: SourceOptions,
    name: str,
    positions: Positions | None,
    default: Word,
    bounds: Mapping[MessageQueue, Bounds],
) -> dict[MessageQueue, int]:
    """An offset for each queue. Numbers come out as given, whether or not the queue holds them.

    Args:
        name: of the option, for complaints.
        default: for queues about which ``positions`` says nothing.

    Raises:
        BadOption: a place is named that does not exist.
        CometError: a broker could not be asked.
    """
    wanted = positions_of(name, positions, default, bounds)
    of_group = [queue for queue, position in wanted.items() if position is Word.GROUP]
    committed = client.committed(options.group, of_group) if of_group else {}
    times = {
        queue: position.timestamp_ms
        for queue, position in wanted.items()
        if isinstance(position, AtTime)
    }
    by_time = _first_at(client, options, times, bounds) if times else {}
    offsets: dict[MessageQueue, int] = {}
    for queue, position in wanted.items():
        if position is Word.GROUP:
            found = committed[queue]
            if found is not None:
                # What the group left behind may have expired since, long before this query: no loss of ours.
                offsets[queue] = max(found, bounds[queue].first)
                continue
            position = options.group_fallback
        if isinstance(position, AtOffset):
            offsets[queue] = position.offset
        elif isinstance(position, AtTime):
            offsets[queue] = by_time[queue]
        elif position is Word.EARLIEST:
            offsets[queue] = bounds[queue].first
        else:
            offsets[queue] = bounds[queue].end
    return offsets


def _first_at(
    client: BulkClient,
    options: SourceOptions,
    times: Mapping[MessageQueue, int],
    bounds: Mapping[MessageQueue, Bounds],
) -> dict[MessageQueue, int]:
    """The first offset stored at a time or later, whichever neighbour a broker names."""
    found: dict[MessageQueue, int] = {}
    for queue, guess in client.offsets_by_time(times).items():
        low, high = bounds[queue].first, bounds[queue].end
        clock = _StoreTimes(client, options, queue)
        # All before `low` are too early, none from `high` on is. A good guess leaves nothing between them.
        for probe in (guess, guess - 1):
            if low <= probe < high:
                if clock.at(probe) < times[queue]:
                    low = probe + 1
                else:
                    high = probe
        for _ in range(_STEPS_MAX):
            if low >= high:
                break
            middle = (low + high) // 2
            if clock.at(middle) < times[queue]:
                low = middle + 1
            else:
                high = middle
        found[queue] = low
    return found


class _StoreTimes:
    """When messages of a queue were stored, one pull each."""

    def __init__(self, client: BulkClient, options: SourceOptions, queue: MessageQueue) -> None:
        self._client = client
        self._options = options
        self._queue = queue

    def at(self, offset: int) -> int:
        """Of the first message at the offset or behind it; -1 when it has just expired."""

        def header(queue: MessageQueue) -> Header:
            return PullMessageHeader(
                consumer_group=wrap(self._options.connection.namespace, self._options.group),
                topic="",
                queue_id=queue.queue_id,
                queue_offset=offset,
                max_msg_nums=1,
                sys_flag=int(PullFlag.SUBSCRIPTION),
                subscription="*",
            )

        answers = self._client.ask([self._queue], RequestCode.PULL_MESSAGE, header)
        answers.raise_first()
        reply, place = answers.replies[self._queue]
        pulled = read_pull(reply, place.address)
        if pulled.status in (PullStatus.OFFSET_ILLEGAL, PullStatus.NO_MATCHED_MSG):
            return -1
        if pulled.status is not PullStatus.FOUND:
            raise RemoteProtocolError(
                f"{place.address} said {pulled.status} of offset {offset}, which {self._queue} must hold"
            )
        return decode_record(pulled.records, check_crc=False).store_timestamp
