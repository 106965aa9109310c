"""Which batch each lane of a sink is at, and who may write it. Pure: no I/O, no time.

A lane is what one partition of a sink writes to this broker. Spark repeats a batch after a failure, and may run two
attempts of one partition at a time; so whoever writes opens the lane first. Opening

- makes the writer the only one whose sends are taken: an older attempt that is still running is refused from then on;
- tells where the rows of this batch begin that earlier attempts have stored, so that the writer can leave them out.

Nothing is kept per row: the log holds the rows. The lanes are bounded in number, the least recently opened go first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from cometmq.model.sink import SinkMark
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.meta.sink_lanes import LaneRow

log = logging.getLogger("cometmq.broker")

LANES_MAX: Final = 20_000


class Lane:
    __slots__ = ("batch", "first_offset", "partition", "sink", "writer")

    def __init__(self, sink: str, partition: int, batch: int, first_offset: int) -> None:
        self.sink = sink
        self.partition = partition
        self.batch = batch
        self.first_offset = first_offset
        """No row of the batch lies before this offset of the log."""
        self.writer: str | None = None


class SinkRecord:
    def __init__(self, lanes_max: int = LANES_MAX) -> None:
        self._lanes_max = lanes_max
        # By order of use, the least recent first.
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._writers: dict[str, Lane] = {}

    def load(self, rows: Iterable[LaneRow]) -> None:
        """Lanes as they were saved."""
        for row in rows:
            self._add(Lane(*row))

    def note(self, mark: SinkMark, physical_offset: int) -> None:
        """A row that the log holds; rows come in the order of the log. Of an older batch than known: a late copy."""
        lane = self._lanes.get((mark.sink, mark.partition))
        if lane is None or mark.batch > lane.batch:
            self._add(Lane(mark.sink, mark.partition, mark.batch, physical_offset))

    def open(self, mark: SinkMark, writer: str, *, is_again: bool, log_end: int) -> int:
        """Let a writer write a batch of a lane. The offset at which rows of that batch may begin; ``log_end`` for none.

        Raises:
            Refused: the sink is further already, or a later writer has the lane.
        """
        lane = self._lanes.get((mark.sink, mark.partition))
        if lane is None or mark.batch > lane.batch:
            lane = Lane(mark.sink, mark.partition, mark.batch, log_end)
        elif mark.batch < lane.batch:
            raise Refused(
                ResponseCode.INVALID_PARAMETER,
                f"sink {mark.sink} partition {mark.partition} has written batch {lane.batch} already and "
                f"cannot go back to batch {mark.batch}; a query that starts anew needs a sink id of its own",
            )
        elif is_again and lane.writer is not None and _attempt(lane.writer) != _attempt(writer):
            raise Refused(
                ResponseCode.ILLEGAL_OPERATION,
                f"sink {mark.sink} partition {mark.partition} batch {mark.batch} is written by a later attempt",
            )
        self._add(lane)
        lane.writer = writer
        self._writers[writer] = lane
        return min(lane.first_offset, log_end)

    def admit(self, writer: str) -> None:
        """Raises Refused unless a lane is open for the writer."""
        if writer not in self._writers:
            raise Refused(
                ResponseCode.ILLEGAL_OPERATION,
                "no lane of a sink is open for this writer: a later attempt has it, or the broker was restarted; "
                "open it again",
            )

    def close(self, sink: str) -> int:
        """Forget a sink. How many lanes it had."""
        keys = [key for key in self._lanes if key[0] == sink]
        for key in keys:
            self._remove(key)
        return len(keys)

    def close_writers(self) -> None:
        """Nobody writes any more, until a lane is opened again."""
        self._writers.clear()
        for lane in self._lanes.values():
            lane.writer = None

    def rows(self) -> Iterator[LaneRow]:
        """The lanes, to be saved."""
        for lane in self._lanes.values():
            yield LaneRow(lane.sink, lane.partition, lane.batch, lane.first_offset)

    def __len__(self) -> int:
        return len(self._lanes)

    def _add(self, lane: Lane) -> None:
        """Put a lane in place of what was known of it, as the one used last."""
        key = (lane.sink, lane.partition)
        self._remove(key)
        while len(self._lanes) >= self._lanes_max:
            oldest = next(iter(self._lanes))
            log.warning(
                "lane of a sink forgotten sink=%s partition=%d reason=more-than-%d-lanes",
                *oldest,
                self._lanes_max,
            )
            self._remove(oldest)
        self._lanes[key] = lane

    def _remove(self, key: tuple[str, int]) -> None:
        lane = self._lanes.pop(key, None)
        if lane is not None and lane.writer is not None:
            self._writers.pop(lane.writer, None)
            lane.writer = None


def _attempt(writer: str) -> str:
    """Who writes, without the number of the connection: ``attempt.3`` is ``attempt`` on its fourth connection."""
    return writer.rpartition(".")[0] or writer
