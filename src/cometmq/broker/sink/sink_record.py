"""Which batch each lane of a sink is at, and who may write it. Pure: no I/O, no time.

A lane is what one partition of a sink writes to this broker. Spark repeats a batch after a failure, and may run two
attempts of one partition at a time; so whoever writes opens the lane first. Opening

- makes the writer the only one whose sends are taken: an older attempt that is still running is refused from then on;
- tells where the rows of this batch begin that earlier attempts have stored, so that the writer can leave them out.

A row is left out by the partition that has stored it. That is right as long as a partition holds the same rows each
time. The attempts of one run of a batch see to that; another run, after a crash, may have cut the batch differently. So
the first writer of a lane in another run has to check that the rows that lie there are among its own, and say so, and
the lanes that were not yet checked are told to the others: no row of theirs may be written by somebody else. The first
writer of another run also ends all writers of the run before.

Nothing is kept per row: the log holds the rows. The lanes are bounded in number, the least recently opened go first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from cometmq.model.messages.sink_mark import SinkMark
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.meta.sink_lanes import LaneRow

log = logging.getLogger("cometmq.broker")

LANES_MAX: Final = 20_000
NAMED_MAX: Final = 10
"""How many of the lanes that were not checked are named."""


class Lane:
    __slots__ = ("batch", "first_offset", "partition", "run", "sink", "writer")

    def __init__(
        self, sink: str, partition: int, batch: int, first_offset: int, run: str = ""
    ) -> None:
        self.sink = sink
        self.partition = partition
        self.batch = batch
        self.first_offset = first_offset
        """No row of the batch lies before this offset of the log."""
        self.writer: str | None = None
        self.run = run
        """That has written all of it, or has checked what others wrote; empty when a kill of the broker came since."""


class Run:
    """The last to begin a batch of a sink. ``unchecked`` are the lanes that others wrote before, by partition."""

    __slots__ = ("batch", "batch_offset", "is_after_another", "name", "unchecked")

    def __init__(self, batch: int, name: str, lanes: Iterable[Lane]) -> None:
        self.batch = batch
        self.name = name
        self.unchecked = {
            lane.partition: lane for lane in lanes if lane.batch == batch and lane.run != name
        }
        self.batch_offset = min((one.first_offset for one in self.unchecked.values()), default=0)
        self.is_after_another = any(lane.run for lane in self.unchecked.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """``unchecked`` names other partitions of the batch; the rows of all of them lie behind ``batch_offset``."""

    first_offset: int
    batch_offset: int
    is_checked: bool
    unchecked: tuple[int, ...] = ()
    is_other_run: bool = False


class SinkRecord:
    def __init__(self, lanes_max: int = LANES_MAX) -> None:
        self._lanes_max = lanes_max
        # By order of use, the least recent first.
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._of_sink: dict[str, dict[int, Lane]] = {}
        self._runs: dict[str, Run] = {}
        self._writers: dict[str, Lane] = {}

    def load(self, rows: Iterable[LaneRow]) -> None:
        """Lanes as they were saved, in place of all that is known."""
        for known in (self._lanes, self._of_sink, self._runs, self._writers):
            known.clear()
        for row in rows:
            self._add(Lane(*row))

    def note(self, mark: SinkMark, physical_offset: int) -> None:
        """A row that the log holds; rows come in the order of the log. Of an older batch than known: a late copy."""
        lane = self._lanes.get((mark.sink, mark.partition))
        if lane is None or mark.batch > lane.batch:
            self._add(Lane(mark.sink, mark.partition, mark.batch, physical_offset))

    def open(
        self,
        mark: SinkMark,
        writer: str,
        *,
        is_again: bool,
        log_end: int,
        run: str = "",
        is_checked: bool = False,
    ) -> Opened:
        """Let a writer write a batch of a lane. Where rows of that batch may begin: at ``log_end`` if there are none.

        Raises:
            Refused: the sink is further already, or a later writer or run has the lane.
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
        current = self._runs.get(mark.sink)
        is_other = current is None or (current.batch, current.name) != (mark.batch, run)
        is_later = lane.writer is not None and _attempt(lane.writer) != _attempt(writer)
        if is_again and (is_later or (is_other and current is not None)):
            raise Refused(
                ResponseCode.ILLEGAL_OPERATION,
                f"sink {mark.sink} partition {mark.partition} batch {mark.batch} is written by a later attempt",
            )
        if current is None or is_other:
            current = self._begin(mark, run)
        if is_checked:
            current.unchecked.pop(mark.partition, None)
        self._add(lane)
        if mark.partition not in current.unchecked:
            lane.run = run
        lane.writer = writer
        self._writers[writer] = lane
        return _opened(lane, current, log_end)

    def _begin(self, mark: SinkMark, run: str) -> Run:
        lanes = self._of_sink.get(mark.sink, {})
        begun = self._runs[mark.sink] = Run(mark.batch, run, lanes.values())
        for lane in lanes.values():
            if lane.batch == mark.batch:
                self._end_writer(lane)
        return begun

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
        partitions = list(self._of_sink.get(sink, ()))
        for partition in partitions:
            self._remove((sink, partition))
        return len(partitions)

    def close_writers(self) -> None:
        """Nobody writes any more, until a lane is opened again."""
        self._writers.clear()
        for lane in self._lanes.values():
            lane.writer = None

    def rows(self) -> Iterator[LaneRow]:
        """The lanes, to be saved."""
        for lane in self._lanes.values():
            yield LaneRow(lane.sink, lane.partition, lane.batch, lane.first_offset, lane.run)

    def __len__(self) -> int:
        return len(self._lanes)

    def _add(self, lane: Lane) -> None:
        """Put a lane in place of what was known of it, as the one used last."""
        key = (lane.sink, lane.partition)
        before = self._lanes.pop(key, None)
        if before is not None:
            self._end_writer(before)
        self._lanes[key] = lane
        self._of_sink.setdefault(lane.sink, {})[lane.partition] = lane
        while len(self._lanes) > self._lanes_max:
            oldest = next(iter(self._lanes))
            log.warning(
                "lane of a sink forgotten sink=%s partition=%d reason=more-than-%d-lanes",
                *oldest,
                self._lanes_max,
            )
            self._remove(oldest)

    def _remove(self, key: tuple[str, int]) -> None:
        lane = self._lanes.pop(key, None)
        if lane is None:
            return
        self._end_writer(lane)
        of_sink = self._of_sink[lane.sink]
        del of_sink[lane.partition]
        if lane.sink in self._runs:
            self._runs[lane.sink].unchecked.pop(lane.partition, None)
        if not of_sink:
            del self._of_sink[lane.sink]
            self._runs.pop(lane.sink, None)

    def _end_writer(self, lane: Lane) -> None:
        if lane.writer is not None:
            self._writers.pop(lane.writer, None)
            lane.writer = None


def _opened(lane: Lane, run: Run, log_end: int) -> Opened:
    first_offset = min(lane.first_offset, log_end)
    if not run.name:
        # An older sink, which knows of no runs.
        return Opened(first_offset=first_offset, batch_offset=log_end, is_checked=True)
    others = (partition for partition in run.unchecked if partition != lane.partition)
    unchecked = tuple(islice(others, NAMED_MAX))
    return Opened(
        first_offset=first_offset,
        batch_offset=min(run.batch_offset, log_end) if unchecked else log_end,
        is_checked=lane.partition not in run.unchecked,
        unchecked=unchecked,
        is_other_run=bool(unchecked) and run.is_after_another,
    )


def _attempt(writer: str) -> str:
    """Who writes, without the number of the connection: ``attempt.3`` is ``attempt`` on its fourth connection."""
    return writer.rpartition(".")[0] or writer
