"""Removes files in a separate thread, with a pause after each: unlinking a gigabyte keeps a disk busy."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from cometmq.base.ports import Files

logger = logging.getLogger("cometmq.store")


class FileRemover:
    """Owner thread only; the worker only unlinks."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._stopping = threading.Event()
        self._worker: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def remove(self, paths: Sequence[str], pause_seconds: float, *, in_background: bool) -> None:
        """Remove files in this order. A crash or ``stop`` in between leaves the rest, which the next start finds."""
        if not paths:
            return
        self._join()
        if not in_background:
            self._remove(paths, 0)
            return
        self._worker = threading.Thread(
            target=self._remove, args=(paths, pause_seconds), name="cometmq-file-remove"
        )
        self._worker.start()

    def stop(self) -> None:
        self._stopping.set()
        self._join()

    def _remove(self, paths: Sequence[str], pause_seconds: float) -> None:
        for path in paths:
            try:
                self._files.remove(path)
            except OSError as error:
                logger.error("file not removed path=%s error=%s", path, error)
                return
            logger.info("file removed path=%s reason=expired", path)
            if pause_seconds and self._stopping.wait(pause_seconds):
                return

    def _join(self) -> None:
        if self._worker is not None:
            self._worker.join()
            self._worker = None
