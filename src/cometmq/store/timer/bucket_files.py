"""The files of the timer index: for each time span, a sequence of segments with consecutive entries.

    timer/<bucket>-<segment>      sparse, SEGMENT_ENTRIES entries of 16 bytes each

The checkpoint says how many entries of a bucket count; what follows is garbage from before a crash.

Thread rule: ``write``, ``sync`` and ``remove_all_but`` belong to one thread at a time, ``read`` may run in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cometmq.base.ports import Files
from cometmq.store.open_files import OpenFiles
from cometmq.store.timer.entry import ENTRY_BYTES

SEGMENT_ENTRIES: Final = 65_536
SEGMENT_BYTES: Final = SEGMENT_ENTRIES * ENTRY_BYTES
OPEN_FILES_MAX: Final = 128
SINGLE_SYNCS_MAX: Final = 16
"""Above this many changed files, one sync of the whole partition is cheaper."""


class BucketFiles:
    def __init__(self, directory: str, files: Files) -> None:
        self.directory = directory
        self._files = files
        self._open = OpenFiles(files, OPEN_FILES_MAX)
        self._changed: set[str] = set()
        self._has_new_names = False

    def load(self, counts: Mapping[int, int]) -> None:
        """Start using the directory: files not needed for these entry counts are removed."""
        self._files.make_directory(self.directory)
        self.remove_all_but(counts)

    def write(self, bucket: int, first: int, data: bytes) -> None:
        """Write whole entries to a bucket, from entry ``first`` on. Raises DiskFull."""
        at = 0
        while at < len(data):
            segment, within = divmod(first + at // ENTRY_BYTES, SEGMENT_ENTRIES)
            start = within * ENTRY_BYTES
            part = data[at : at + SEGMENT_BYTES - start]
            path = self._path(bucket, segment)
            if not self._files.exists(path):
                self._open.create(path, SEGMENT_BYTES)
                self._has_new_names = True
            self._open.get(path).write_at(start, part)
            self._changed.add(path)
            at += len(part)

    def sync(self) -> None:
        """Return once everything written is on disk."""
        if len(self._changed) > SINGLE_SYNCS_MAX:
            self._files.sync_partition(self.directory)
        else:
            for path in sorted(self._changed):
                self._open.get(path).sync()
            if self._has_new_names:
                self._files.sync_directory(self.directory)
        self._changed.clear()
        self._has_new_names = False

    def read(self, bucket: int, first: int, count: int) -> bytes:
        """Up to ``count`` entries that were written before; fewer at the end of a segment."""
        segment, within = divmod(first, SEGMENT_ENTRIES)
        file = self._files.open(self._path(bucket, segment), mapped=False, writable=False)
        try:
            return file.read_at(
                within * ENTRY_BYTES, min(count, SEGMENT_ENTRIES - within) * ENTRY_BYTES
            )
        finally:
            file.close()

    def remove_all_but(self, counts: Mapping[int, int]) -> None:
        """Remove the files that are not needed for these entry counts by bucket."""
        for name in self._files.names(self.directory):
            bucket, _, segment = name.partition("-")
            if not (bucket.isdecimal() and segment.isdecimal()):
                continue
            if int(segment) * SEGMENT_ENTRIES >= counts.get(int(bucket), 0):
                path = f"{self.directory}/{name}"
                self._open.remove(path)
                self._changed.discard(path)

    def close(self) -> None:
        self._open.close()

    def _path(self, bucket: int, segment: int) -> str:
        return f"{self.directory}/{bucket:010d}-{segment:05d}"
