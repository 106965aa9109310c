"""Writes the audit log: a bounded queue, a thread, and a file that rotates. Nobody waits for the disk.

What does not fit into the queue, or cannot be written, is counted; the next line that is written says how many are
missing before it. So is what was left out on purpose.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
from pathlib import Path
from typing import Final

from cometmq.access.audit.audit_line import missing_line
from cometmq.access.private_files import PRIVATE
from cometmq.base.ports import Clock

log = logging.getLogger("cometmq.access")

LINES_MAX: Final = 2000
"""That wait for the disk."""


class AuditLog:
    """``start`` it once, ``stop`` it once; ``add`` from any thread in between."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        file_bytes_max: int,
        file_count: int,
        lines_max: int = LINES_MAX,
    ) -> None:
        self.path = path
        self._clock = clock
        self._file_bytes_max = file_bytes_max
        self._file_count = file_count
        self._lines: queue.Queue[bytes | None] = queue.Queue(lines_max)
        self._lost = 0
        self._left_out = 0
        self._lost_lock = threading.Lock()
        self._is_failing = False
        self._thread = threading.Thread(target=self._run, name="cometmq-audit", daemon=True)

    def start(self) -> None:
        """Raises OSError: the file cannot be written."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write([])
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Never waits."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._count_lost(1)

    def leave_out(self) -> None:
        """Count a line that is not worth its place."""
        with self._lost_lock:
            self._left_out += 1

    def stop(self) -> None:
        """Write what waits, and return."""
        self._lines.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = [self._lines.get()]
            while len(batch) < LINES_MAX:
                try:
                    batch.append(self._lines.get_nowait())
                except queue.Empty:
                    break
            lines = [line for line in batch if line is not None]
            try:
                self._write(lines)
            except OSError as error:
                self._count_lost(len(lines))
                if not self._is_failing:
                    log.error("audit log not written file=%s reason=%s", self.path, error)
                self._is_failing = True
            else:
                self._is_failing = False
            if None in batch:
                return

    def _write(self, lines: list[bytes]) -> None:
        with self._lost_lock:
            lost, left_out = self._lost, self._left_out
        if left_out:
            lines = [missing_line("leftOut", left_out, self._clock.wall_ms()), *lines]
        if lost:
            log.warning("audit log has lost lines count=%d file=%s", lost, self.path)
            lines = [missing_line("lost", lost, self._clock.wall_ms()), *lines]
        descriptor = os.open(
            self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE
        )
        with os.fdopen(descriptor, "ab") as file:
            file.write(b"".join(line + b"\n" for line in lines))
            size_bytes = file.tell()
        with self._lost_lock:
            self._lost -= lost
            self._left_out -= left_out
        if size_bytes >= self._file_bytes_max:
            self._rotate()

    def _rotate(self) -> None:
        """The full file becomes ``.1``, that one ``.2``, and so on; the oldest goes."""
        for number in range(self._file_count - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                self._numbered(number).replace(self._numbered(number + 1))
        self.path.replace(self._numbered(1))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _count_lost(self, count: int) -> None:
        with self._lost_lock:
            self._lost += count

    def __repr__(self) -> str:
        return f"<AuditLog {self.path} waiting={self._lines.qsize()} lost={self._lost}>"
