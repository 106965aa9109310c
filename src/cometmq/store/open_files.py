"""A bounded set of open files: the least recently used one is closed to open another.

Forty thousand queues have forty thousand files; the number of descriptors is limited, and others need some
(``base.descriptors``). Thread rule: the owner of the store.
"""

from __future__ import annotations

import errno
from typing import Final

from cometmq.base.ports import File, Files

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE)


class OpenFiles:
    def __init__(
        self,
        files: Files,
        limit: int,
        descriptors_below: int | None = None,
        *,
        writable: bool = True,
    ) -> None:
        """
        Args:
            descriptors_below: descriptors must be below this number, as long as there is an open file that can be
                closed.
        """
        self._files = files
        self._limit = limit
        self._writable = writable
        self._descriptors_below = (
            files.open_max() if descriptors_below is None else descriptors_below
        )
        self._open: dict[str, File] = {}

    def get(self, path: str) -> File:
        """The existing file, opened if necessary. It only stays open until the next call: do not keep it."""
        file = self._open.pop(path, None)
        if file is None:
            file = self._opened(path)
        # Reinserted at the end: the front of the dict is the least recently used.
        self._open[path] = file
        return file

    def prefetch(self, path: str, position: int) -> None:
        """Start loading a page of a file into memory, if the file is open."""
        if (file := self._open.get(path)) is not None:
            file.prefetch(position)

    def create(self, path: str, size_bytes: int) -> File:
        """A new sparse file; its directory is created if necessary. Raises DiskFull."""
        while True:
            try:
                file = self._files.create(path, size_bytes, allocate=False)
                break
            except FileNotFoundError:
                self._files.make_directory(path.rpartition("/")[0])
            except OSError as error:
                self._close_one(error)
        if self._is_above(file):
            file.close()
            file = self._opened(path)
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

    def _opened(self, path: str) -> File:
        while True:
            try:
                file = self._files.open(path, mapped=False, writable=self._writable)
            except OSError as error:
                self._close_one(error)
                continue
            if not self._is_above(file):
                self._make_room()
                return file
            file.close()
            self._close_oldest()

    def _is_above(self, file: File) -> bool:
        """Whether it uses a descriptor reserved for others and could use one of ours instead."""
        return file.descriptor >= self._descriptors_below and bool(self._open)

    def _close_one(self, error: OSError) -> None:
        """Make room if the error is a lack of descriptors; otherwise raise it."""
        if error.errno not in _EXHAUSTED or not self._open:
            raise error
        self._close_oldest()

    def _make_room(self) -> None:
        while len(self._open) >= self._limit:
            self._close_oldest()

    def _close_oldest(self) -> None:
        self._open.pop(next(iter(self._open))).close()
