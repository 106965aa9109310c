"""The seam to the compiled twin of ``collect``: what is read nearly always, in a tenth of the time.

The twin takes records that are undamaged, in one log file, with IPv4 hosts and where their entries say. Anything else
is left to ``collect``, which does the whole read. Records that are small and apart from each other are copied into one
part: for the reply they would be joined anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from cometmq.native.choice import twin
from cometmq.store.log.commit_log import CommitLog
from cometmq.store.queues.consume_queue import ConsumeQueue
from cometmq.store.queues.consume_queues import ConsumeQueues
from cometmq.store.queues.extended_queues import TagFilter
from cometmq.store.read.hidden import Hidden
from cometmq.store.read.read_results import GetResult, GetStatus
from cometmq.store.read.soundness import Soundness
from cometmq.store.read.wanted import Collected, Limits, RecordFilter, Wanted
from cometmq.store.store_config import ReadConfig

JOINED_PART_BYTES_MAX: Final = 4096
"""Parts that are smaller than this on average are joined, as in a frame."""

_twin = twin("pulls")


class QueueReader(Protocol):
    """The twin of ``Reader.get``."""

    def apply(self, config: ReadConfig, cached_bytes: int, /) -> None:
        """Take new limits; so many bytes at the end of the log are in memory."""
        ...

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: TagFilter | None,
        record: RecordFilter | None,
        scan_max: int,
        may_wait: bool,
        /,
    ) -> GetResult | None:
        """None if something is unusual, or would perhaps wait for the disk and may not."""
        ...


def queue_reader(
    log: CommitLog,
    soundness: Soundness,
    queues: ConsumeQueues,
    hidden: Hidden,
    is_recent: Callable[[ConsumeQueue, int], bool],
    code_min: int,
    scan_min: int,
) -> QueueReader | None:
    """None if nothing is compiled."""
    if _twin is None:
        return None
    made: QueueReader = _twin.QueueReader(
        log,
        soundness,
        queues,
        hidden,
        is_recent,
        GetResult,
        GetStatus.FOUND,
        GetStatus.NO_MATCHED_MESSAGE,
        code_min,
        scan_min,
        JOINED_PART_BYTES_MAX,
    )
    return made


def gather(
    log: CommitLog,
    soundness: Soundness,
    queue: ConsumeQueue,
    data: bytes,
    offset: int,
    wanted: Wanted,
    limits: Limits,
) -> Collected | None:
    """What ``collect`` finds; None if that is for ``collect`` to find out, or if nothing is compiled."""
    if _twin is None:
        return None
    tags, code_min, record = wanted
    # Where everything is wanted, there is a faster way to check many than one by one.
    is_sound = None if tags is None and record is None else soundness.is_sound
    found = _twin.gather(
        log.view,
        log.end,
        soundness.hot_from,
        not soundness.checks_marks,
        is_sound,
        queue.queue_id,
        offset,
        queue.topic_field,
        data,
        tags,
        code_min,
        record,
        limits,
        JOINED_PART_BYTES_MAX,
    )
    if found is None:
        return None
    sizes = found[2]
    return Collected(GetStatus.FOUND if sizes else GetStatus.NO_MATCHED_MESSAGE, *found)
