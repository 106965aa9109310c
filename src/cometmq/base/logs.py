"""Where a server's log lines go: standard error for systemd and containers, or a file that rotates.

One line per event: ``2026-11-16T09:30:00.123Z INFO cometmq.namesrv broker registered name=broker-a``.
Called once by a server's ``__main__``; libraries and tests never configure logging.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

from cometmq.base.errors import ConfigError

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
FILE_COUNT: Final = 10


def configure(
    level: str = "INFO",
    file: str | None = None,
    *,
    file_bytes_max: int = FILE_BYTES_MAX,
    file_count: int = FILE_COUNT,
) -> None:
    """Send all log lines of the process to ``file``, or to standard error; replaces what was configured before.

    A full file becomes ``file.1``, that one ``file.2`` and so on; ``file_count`` of them are kept beside ``file``.

    Raises:
        ConfigError: an unknown level, or a file that cannot be written.
    """
    if level.upper() not in LEVELS:
        raise ConfigError(f"log level must be one of {', '.join(LEVELS)}, not {level!r}")
    to_stderr = logging.StreamHandler(sys.stderr)
    handler = _file_handler(file, file_bytes_max, file_count) if file else to_stderr
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())


class LineFormatter(logging.Formatter):
    """Time (UTC, ISO 8601 with milliseconds), level, logger, message. Only a traceback takes further lines."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Messages carry names that peers chose; a line break in one must not forge a log line.
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


def _file_handler(file: str, bytes_max: int, count: int) -> logging.Handler:
    # Imported here: it brings sockets and queues along, which a log on standard error does not need.
    from logging.handlers import RotatingFileHandler

    try:
        return RotatingFileHandler(file, maxBytes=bytes_max, backupCount=count, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"log file {file} cannot be written: {error.strerror}") from None
