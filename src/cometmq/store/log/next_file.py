"""The log file after the current one, created before it is needed.

Reserving a gigabyte can take a while on a busy disk, and an append must not wait for it: a worker creates the file
while the current one fills up, and the owner of the log takes it over when that one is full.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from cometmq.base.errors import DiskFull
from cometmq.base.ports import Clock, File, Files

logger = logging.getLogger("cometmq.store")

RETRY_SECONDS: Final = 1.0
"""Pause between two attempts on a full disk: each may take long before it fails."""


class NextFile:
    """Thread rule: the owner of the log calls everything; the worker only fills in the result."""

    def __init__(self, files: Files, file_bytes: int, clock: Clock) -> None:
        self._files = files
        self._file_bytes = file_bytes
        self._clock = clock
        self._path = ""
        self._worker: threading.Thread | None = None
        self._made: File | None = None
        self._error: Exception | None = None
        self._retry_at = 0.0
        self._reason = ""

    def ahead(self, path: str) -> None:
        """Start creating ``path``, unless that is in progress, done, or failed a moment ago."""
        if self._path == path or self._clock.monotonic() < self._retry_at:
            return
        assert self._worker is None, self
        self._path = path
        self._worker = threading.Thread(
            target=self._make, args=(path,), name="cometmq-log-allocate"
        )
        self._worker.start()

    def take(self, path: str) -> File:
        """The finished file; waits for the worker, or creates the file at once if none was requested.

        Raises:
            DiskFull: there is no space. A later call tries again.
        """
        if self._path != path:
            if self._clock.monotonic() < self._retry_at:
                raise DiskFull(self._reason)
            self._path = path
            self._make(path)
        self._join()
        self._path = ""
        made, self._made = self._made, None
        error, self._error = self._error, None
        if made is not None:
            return made
        assert error is not None
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS
        # Not always a lack of space: requests refused meanwhile get the same reason.
        self._reason = str(error)
        if not isinstance(error, DiskFull):
            self._reason = f"the next log file {path} cannot be made: {error}"
        logger.error("log file not created path=%s error=%s", path, error)
        raise DiskFull(self._reason) from error

    def discard(self) -> None:
        """Remove a file that was created but not used: a clean stop leaves no empty file."""
        self._join()
        if self._made is not None:
            self._made.close()
            self._files.remove(self._made.path)
            self._made = None
        self._path = ""
        self._error = None

    def _make(self, path: str) -> None:
        try:
            self._made = self._files.create(path, self._file_bytes, allocate=True)
        except (DiskFull, OSError) as error:
            self._error = error

    def _join(self) -> None:
        if self._worker is not None:
            self._worker.join()
            self._worker = None
