"""From where a query has got to, and what queues hold now, to where its next batch ends. No I/O.

a queue that is new          enters at its first offset, without rows: from the next batch on its start is recorded
a queue of a silent broker   stays where it is
messages expired unread      a loss; without ``failOnDataLoss`` they are skipped
the end moved backwards      of a replica: it has yet to catch up, wait. Of a master: the topic was made anew, a
                             loss; without ``failOnDataLoss`` the queue enters again at its first offset
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption, Loss, check_losses
from cometmq.spark.queue_offsets import Offsets, Positions, queue_text
from cometmq.spark.source.ranges import Range


@dataclass(slots=True)
class Outlook:
    """What there is to read, before any limit."""

    held: dict[MessageQueue, int] = field(default_factory=dict)
    """Where each queue stays if nothing of it is taken."""

    ranges: dict[MessageQueue, Range] = field(default_factory=dict)
    """What may be taken, by queue. Where messages expired it starts behind ``held``."""

    losses: list[Loss] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.ranges.values())

    def ends(self, shares: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """Where a batch ends that takes so many rows of each queue."""
        ends = dict(self.held)
        for queue, rows in shares.items():
            if rows:
                ends[queue] = self.ranges[queue].start + rows
        return ends


def look_ahead(
    start: Offsets, bounds: Mapping[MessageQueue, Bounds], target: Offsets | None = None
) -> Outlook:
    """Args:
    start: where the last batch ended.
    bounds: what the queues hold that could be asked.
    target: ends beyond which nothing is taken; queues that it does not name are left alone.
    """
    outlook = Outlook(held=dict(start))
    for queue, now in bounds.items():
        end = now.end
        if target is not None:
            if queue not in target:
                continue
            end = min(end, target[queue])
        at = start.get(queue)
        if at is None:
            outlook.held[queue] = now.first
            continue
        if at > now.end:
            if now.is_master:
                outlook.losses.append(Loss(queue, at, at, now.first, now.end))
                outlook.held[queue] = now.first
            continue
        if at < now.first:
            outlook.losses.append(Loss(queue, at, max(end, now.first), now.first, now.end))
            at = now.first
        if end > at:
            outlook.ranges[queue] = Range(queue, at, end)
    return outlook


class BatchOptions(Protocol):
    @property
    def start(self) -> Positions | None: ...

    @property
    def end(self) -> Positions | None: ...

    @property
    def fail_on_data_loss(self) -> bool: ...


def ranges_of_batch(
    options: BatchOptions,
    starts: Offsets,
    ends: Offsets,
    bounds: Mapping[MessageQueue, Bounds],
) -> list[Range]:
    """What ``spark.read`` reads.

    Raises:
        BadOption: the user wants to end before the start.
        DataLost: offsets are wanted that the queues do not hold, and ``failOnDataLoss`` is set.
    """
    ranges: list[Range] = []
    losses: list[Loss] = []
    for queue, held in bounds.items():
        start, end = starts[queue], ends[queue]
        if start > end and options.start is not None and options.end is not None:
            raise BadOption(
                f"options startingOffsets and endingOffsets: expected the start before the end, got {start} and "
                f"{end} for {queue_text(queue)}"
            )
        if (start < end and (start < held.first or end > held.end)) or start > held.end:
            losses.append(Loss(queue, start, end, held.first, held.end))
            start, end = max(start, held.first), min(end, held.end)
        ranges.append(Range(queue, start, end))
    check_losses(losses, fails=options.fail_on_data_loss)
    return ranges


def ranges_between(start: Offsets, end: Offsets) -> list[Range]:
    """What a batch reads. Queues that enter with it have no rows in it, nor have those that were made anew."""
    return [
        Range(queue, start[queue], at)
        for queue, at in end.items()
        if queue in start and at > start[queue]
    ]
