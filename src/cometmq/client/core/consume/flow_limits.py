"""When a queue has enough unfinished messages in memory that pulling must pause. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cometmq.client.core.consume.process_queue import ProcessQueue

MIB: Final = 1024 * 1024
NO_LIMIT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """``span_max`` is None for orderly consumption, where messages finish in order anyway."""

    count_max: int
    size_mib_max: int
    span_max: int | None

    def exceeded(self, queue: ProcessQueue) -> str | None:
        """Which limit the queue is above, in words for a log; None while it may be pulled."""
        if queue.count > self.count_max:
            return f"{queue.count} messages cached, at most {self.count_max}"
        if queue.size_bytes > self.size_mib_max * MIB:
            return f"{queue.size_bytes // MIB} MiB cached, at most {self.size_mib_max}"
        if self.span_max is not None and queue.span > self.span_max:
            return f"offsets over a span of {queue.span} unfinished, at most {self.span_max}"
        return None


def limits_of_queue(
    queue_limits: FlowLimits,
    *,
    topic_count_max: int = NO_LIMIT,
    topic_size_mib_max: int = NO_LIMIT,
    queue_count: int,
) -> FlowLimits:
    """The limits of one queue when a topic's limits, where set, are shared evenly by the queues that are held."""
    shares = max(1, queue_count)
    return FlowLimits(
        count_max=queue_limits.count_max
        if topic_count_max == NO_LIMIT
        else max(1, topic_count_max // shares),
        size_mib_max=queue_limits.size_mib_max
        if topic_size_mib_max == NO_LIMIT
        else max(1, topic_size_mib_max // shares),
        span_max=queue_limits.span_max,
    )
