"""A store's files as arrays: entries of its queues, and which files of its log hold many records at once.

``store.files`` reads them; here bytes become arrays.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cometmq.base.disk import SystemFiles
from cometmq.spark.columns.frames import Ints, big_endian
from cometmq.spark.log.log_options import LogOptions
from cometmq.store.files.log_files import LogFiles
from cometmq.store.files.queue_entry import ENTRY_FIELDS
from cometmq.store.files.queue_files import QueueFiles
from cometmq.store.files.store_directory import StoreDirectory

_ENTRY: Final = big_endian(ENTRY_FIELDS)


def open_directory(options: LogOptions) -> StoreDirectory:
    """The directory that the options name; ``close`` it. Raises NoStore."""
    return StoreDirectory(options.path, SystemFiles(), log_paths=options.log_paths)


def entries_of(queue: QueueFiles, start: int, end: int) -> Ints:
    """Entries with the fields of ``ENTRY_FIELDS``; those that are not there, or no longer, are zero."""
    return np.frombuffer(queue.entries(start, end), _ENTRY)


def files_of(log: LogFiles, physical: Ints) -> Ints:
    """The number of the file of each offset; -1 for those that no file holds."""
    if not log.starts:
        return np.full(len(physical), -1, dtype=np.int64)
    numbers: Ints = np.searchsorted(np.array(log.starts), physical, side="right") - 1
    is_held = (numbers >= 0) & (physical < np.array(log.ends)[numbers])
    return np.where(is_held, numbers, -1)


def holds(log: LogFiles, physical: Ints, sizes: Ints) -> Ints:
    """Whether the whole of each record is in one file."""
    numbers = files_of(log, physical)
    if not log.ends:
        return numbers >= 0
    return (numbers >= 0) & (physical + sizes <= np.array(log.ends)[numbers])
