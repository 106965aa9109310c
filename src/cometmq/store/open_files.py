"""A bounded set of open files: the least recently used one is closed for the next.

Forty thousand queues have forty thousand files; the process may hold only so many descriptors.
Thread rule: the owner of the store.
"""

from __future__ import annotations

from cometmq.base.ports import File, Files


class OpenFiles:
    def __init__(self, files: Files, limit: int) -> None:
        self._files = files
        self._limit = limit
        self._open: dict[str, File] = {}

    def get(self, path: str) -> File:
        """The existing file, opened if need be. It stays open only until the next call: do not keep it."""
        file = self._open.pop(path, None)
        if file is None:
            file = self._files.open(path, mapped=False)
            self._make_room()
        # Back in at the end: the front of the dict is the least recently used.
        self._open[path] = file
        return file

    def prefetch(self, path: str, position: int) -> None:
        """Have a page of a file in memory soon, if the file is open."""
        if (file := self._open.get(path)) is not None:
            file.prefetch(position)

    def create(self, path: str, size_bytes: int) -> File:
        """A new sparse file; its directory is made if need be. Raises DiskFull."""
        try:
            file = self._files.create(path, size_bytes, allocate=False)
        except FileNotFoundError:
            self._files.make_directory(path.rpartition("/")[0])
            file = self._files.create(path, size_bytes, allocate=False)
        self._make_room()
        self._open[path] = file
        return file

    def get_or_create(self, path: str, size_bytes: int, may_be_missing: bool) -> File:
        if may_be_missing and not self._files.exists(path):
            return self.create(path, size_bytes)
        return self.get(path)

    def remove(self, path: str) -> None:
        self.drop(path)
        self._files.remove(path)

    def drop(self, path: str) -> None:
        """Close a file, for example because it is about to be removed."""
        if (file := self._open.pop(path, None)) is not None:
            file.close()

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def __len__(self) -> int:
        return len(self._open)

    def _make_room(self) -> None:
        while len(self._open) >= self._limit:
            oldest = next(iter(self._open))
            self._open.pop(oldest).close()
