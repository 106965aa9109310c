"""Where a server's log lines go: standard error for systemd and containers, or a file that rotates.

One line per event: ``2026-11-16T09:30:00.123Z INFO cometmq.namesrv broker registered name=broker-a``.
Lines with the same cause are rate-limited (``log_rates``); those left out are counted.
Called once by a server's ``__main__``; libraries and tests never configure logging.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from time import monotonic
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.log_rates import LineRates, peer_of

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
FILE_COUNT: Final = 10
TELL_SECONDS: Final = 60.0
"""How often the number of lines left out is logged."""

_LEFT_OUT: Final = "log lines left out count=%d peers=%s cause=%r"


def configure(
    level: str = "INFO",
    file: str | None = None,
    *,
    file_bytes_max: int = FILE_BYTES_MAX,
    file_count: int = FILE_COUNT,
) -> None:
    """Send all log lines of the process to ``file``, or to standard error; replaces what was configured before.

    A full file becomes ``file.1``, that one ``file.2`` and so on; ``file_count`` of them are kept in addition to
    ``file``.

    Raises:
        ConfigError: an unknown level, or a file that cannot be written.
    """
    if level.upper() not in LEVELS:
        raise ConfigError(f"log level must be one of {', '.join(LEVELS)}, not {level!r}")
    to_stderr = logging.StreamHandler(sys.stderr)
    handler = _file_handler(file, file_bytes_max, file_count) if file else to_stderr
    handler.setFormatter(LineFormatter())
    handler.addFilter(RateFilter())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())


def tell_left_out() -> None:
    """Log now how many lines have been left out since this was last logged."""
    for handler in logging.getLogger().handlers:
        for rates in handler.filters:
            if isinstance(rates, RateFilter):
                rates.tell()


class RateFilter(logging.Filter):
    """Limits the rate of lines by cause and peer. Debug lines always pass: somebody asked for them."""

    def __init__(self) -> None:
        super().__init__()
        self._rates = LineRates()
        self._lock = threading.Lock()
        self._told_at = monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG or record.msg is _LEFT_OUT:
            return True
        now = monotonic()
        cause = str(record.msg)
        with self._lock:
            is_admitted = self._rates.admit(cause, peer_of(cause, record.args), now)
        if now - self._told_at > TELL_SECONDS:
            self.tell()
        return is_admitted

    def tell(self) -> None:
        with self._lock:
            self._told_at = monotonic()
            told = self._rates.take_left_out()
        for cause, count, peers in told:
            logging.getLogger("cometmq.logs").warning(
                _LEFT_OUT, count, ",".join(peers) or "none", cause
            )


class LineFormatter(logging.Formatter):
    """Time (UTC, ISO 8601 with milliseconds), level, logger, message. Only a traceback takes further lines."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Messages contain names chosen by peers, which must neither forge a log line nor control a terminal.
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: logging._SysExcInfoType) -> str:
        # Indented, so that no line of an error's text can be mistaken for an event.
        return "\n".join("  " + _escaped(line) for line in super().formatException(ei).split("\n"))


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )


def _file_handler(file: str, bytes_max: int, count: int) -> logging.Handler:
    # Imported here, because it imports sockets and queues, which a log on standard error does not need.
    from logging.handlers import RotatingFileHandler

    try:
        return RotatingFileHandler(file, maxBytes=bytes_max, backupCount=count, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"log file {file} cannot be written: {error.strerror}") from None
