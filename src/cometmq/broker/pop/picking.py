"""In which order a pop looks into the queues of a topic and of its retry topics. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cometmq.broker.pop.pop_topics import ANY_QUEUE


class Source(NamedTuple):
    topic: str
    queue_count: int


def pick_order(
    main: Source, retries: Sequence[Source], queue_id: int, chance: int, retry_percent: int
) -> list[tuple[str, int]]:
    """Topics and queues, the first to be taken of first.

    Messages to be tried again come first in some of the pops and last in the others, so that neither of the two kinds
    starves the other. Each pop starts at another queue.

    Args:
        queue_id: the one wanted of the topic itself, or -1.
        chance: from 0 to 99, a new one for each pop.
    """
    own = [(main.topic, queue_id)] if queue_id != ANY_QUEUE else _rotated(main, chance)
    again = [place for source in retries for place in _rotated(source, chance)]
    return again + own if chance < retry_percent else own + again


def _rotated(source: Source, start: int) -> list[tuple[str, int]]:
    count = source.queue_count
    return [(source.topic, (start + at) % count) for at in range(count)]
