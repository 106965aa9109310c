"""What a read is to return, and what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from cometmq.store.queues.extended_queues import TagFilter
from cometmq.store.read.read_results import GetStatus

RecordFilter = Callable[[memoryview], bool]


class Wanted(NamedTuple):
    """Which records a read returns.

    Attributes:
        tags: judges the tag hash of an entry; None accepts all.
        code_min: entries with a lower code hold no tag hash, and are not judged by ``tags``.
        record: judges the record itself; None accepts all.
    """

    tags: TagFilter | None
    code_min: int
    record: RecordFilter | None


ALL: Final = Wanted(None, 0, None)


class Limits(NamedTuple):
    """How much a read returns. The first record is always returned; the limits apply from the second one on.

    Records below the physical offset ``on_disk_below`` have probably left the page cache and have limits of their own.
    """

    memory_count: int
    memory_bytes: int
    disk_count: int
    disk_bytes: int
    on_disk_below: int


class Collected(NamedTuple):
    """``examined`` entries are done with, ``sizes`` has the size of each record returned in ``parts``."""

    status: GetStatus
    examined: int
    parts: list[memoryview]
    sizes: list[int]
    total_bytes: int
    last_physical: int
    """The record of the last entry looked at, returned or not."""
