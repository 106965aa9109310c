"""What the Spark source tells its user beyond what brokers and the network say.

BadOption (ConfigError)    an option that is unknown, or whose value cannot be used
DataLost                   messages that were to be read are gone
ReadStalled                a queue gave nothing for longer than ``readTimeout`` although it holds more
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from cometmq.base.errors import CometError, ConfigError
from cometmq.model.message_queue import MessageQueue

logger = logging.getLogger("cometmq.spark")


class BadOption(ConfigError):
    """The text names the option, what was expected, what came, and what to do."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets ``wanted_start`` up to ``wanted_end`` were to be read; the broker has those from ``first`` to ``end``."""

    queue: MessageQueue
    wanted_start: int
    wanted_end: int
    first: int
    end: int

    def __str__(self) -> str:
        queue = self.queue
        return (
            f"topic={queue.topic} broker={queue.broker_name} queue={queue.queue_id}: "
            f"wanted offsets {self.wanted_start} to {self.wanted_end}, "
            f"available are {self.first} to {self.end} (ends not included)"
        )


class DataLost(CometError):
    """Messages that were to be read are gone: expired, or their topic was deleted."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        super().__init__(losses)
        self.losses = tuple(losses)

    def __str__(self) -> str:
        lines = "\n  ".join(map(str, self.losses))
        return (
            f"messages that were to be read are no longer there:\n  {lines}\n"
            "They expired (a broker's fileReservedTime) or their topic was deleted and made anew. To read on with what "
            "is left, set the option failOnDataLoss to false; to be asked no more, read sooner or keep messages longer."
        )


def check_losses(losses: Sequence[Loss], *, fails: bool) -> None:
    """Log losses, or raise DataLost if there are any and a read ``fails`` for them (the option failOnDataLoss)."""
    if losses and fails:
        raise DataLost(losses)
    for loss in losses:
        logger.warning("messages are gone %s", loss)


class ReadStalled(CometError):
    """A broker did not give what it must have, for longer than was allowed."""

    retryable = True
