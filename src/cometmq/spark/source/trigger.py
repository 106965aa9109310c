"""What one trigger of a stream takes: within its limits, and not before there is enough. No I/O of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cometmq.client.core.queue_answers import Bounds
from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import check_losses
from cometmq.spark.queue_offsets import Offsets
from cometmq.spark.read_options import ReadOptions
from cometmq.spark.source.admission import Patience, share
from cometmq.spark.source.batch_end import Outlook, look_ahead

WithinBytes = Callable[[Outlook, Mapping[MessageQueue, int], int, int], dict[MessageQueue, int]]
"""How many of these rows of an outlook fit into so many bytes; the last argument is the ``turn`` of ``share``."""


class Trigger:
    """
    Args:
        within_bytes: applies the limit of bytes.
        clock: monotonic seconds.
    """

    def __init__(
        self, options: ReadOptions, within_bytes: WithinBytes, clock: Callable[[], float]
    ) -> None:
        self._options = options
        self._within_bytes = within_bytes
        self._clock = clock
        self._patience = Patience(options.min_rows, options.max_delay_seconds)
        self.target: Offsets | None = None
        """Where the stream ends; None while it goes on."""

    def take(
        self, start: Offsets, bounds: Mapping[MessageQueue, Bounds], *, is_limited: bool
    ) -> tuple[Outlook, Mapping[MessageQueue, int]]:
        """What there is to read, and how many rows of each queue to take now.

        Raises:
            DataLost: messages that were to be read are gone, and ``failOnDataLoss`` is set.
        """
        outlook = look_ahead(start, bounds, self.target)
        check_losses(outlook.losses, fails=self._options.fail_on_data_loss)
        is_waiting = is_limited and self.target is None
        if is_waiting and not self._patience.is_over(outlook.rows, self._clock()):
            # Queues that are new enter all the same: their rows count from then on, and can be taken with the others.
            return outlook, {}
        return outlook, self._shares(outlook, start, is_limited)

    def _shares(
        self, outlook: Outlook, start: Offsets, is_limited: bool
    ) -> Mapping[MessageQueue, int]:
        shares = {queue: one.rows for queue, one in outlook.ranges.items()}
        if not is_limited:
            return shares
        turn = sum(start.values())
        if self._options.max_rows is not None:
            shares = share(shares, self._options.max_rows, turn=turn)
        if self._options.max_bytes is not None:
            shares = self._within_bytes(outlook, shares, self._options.max_bytes, turn)
        return shares
