"""Loads parts of files into memory, in threads that do nothing else.

A thread reads the bytes into a buffer that nobody looks at. What counts is that they are in the page cache afterwards:
whoever reads them next, at once or through a mapping, does not wait for the disk. The threads share nothing with the
store but the paths of its files, which they open for themselves, so that a file may be closed or removed meanwhile.
While they wait for the disk, they do not hold the interpreter's lock.

Thread rule: one thread, the owner of the store, calls everything here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Final, NamedTuple

from cometmq.base.ports import Files

logger = logging.getLogger("cometmq.store")

THREADS: Final = 4
"""A disk reads for some at once as fast as for one."""

WAITING_MAX: Final = 64
"""Loads that are under way or wait for a thread. Bounds what one more load waits for."""

_PIECE: Final = memoryview(bytearray(1 << 20))
"""Where all threads put what they read. It is not used."""


class Stretch(NamedTuple):
    """Bytes of a file. Those ``ahead`` of them are loaded, too, but nobody waits until they are there."""

    path: str
    position: int
    size_bytes: int
    ahead_bytes: int = 0


class Loader:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: set[Future[None]] = set()

    def load(self, stretches: Sequence[Stretch]) -> Future[None] | None:
        """Begin to load; the result is done when all are in memory, or cannot be read.

        None: too much is being loaded already.
        """
        self._under_way = {one for one in self._under_way if not one.done()}
        if len(self._under_way) >= WAITING_MAX:
            return None
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "cometmq-store-load")
        future = self._threads.submit(self._load, stretches)
        self._under_way.add(future)
        return future

    def stop(self) -> None:
        """Wait for the threads; loads that have not begun are cancelled."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        self._under_way.clear()

    def _load(self, stretches: Sequence[Stretch]) -> None:
        for path, of_file in groupby(stretches, lambda one: one.path):
            try:
                self._load_from(path, list(of_file))
            except OSError as error:
                # The read that follows meets the same error, and knows what to say about it.
                logger.debug("not loaded path=%s reason=%s", path, error)

    def _load_from(self, path: str, stretches: Sequence[Stretch]) -> None:
        file = self._files.open(path, mapped=False, writable=False)
        try:
            # All are asked for before the first is waited for.
            for stretch in stretches:
                file.prefetch(stretch.position, stretch.size_bytes + stretch.ahead_bytes)
            for stretch in stretches:
                position, left = stretch.position, stretch.size_bytes
                while left > 0 and (done := file.read_into(position, _PIECE[:left])):
                    position += done
                    left -= done
        finally:
            file.close()
