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
from cometmq.base.log_rates import LineRates, LogLimits, peer_of

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
FILE_COUNT: Final = 10
TELL_SECONDS: Final = 60.0
"""How often the number of lines left out is logged."""

TRACEBACK_CHARS_MAX: Final = 20_000

METRICS: Final = "cometmq.metrics"
"""The logger of metrics (metricsExporterType=LOG): its lines are long, and come as often as a setting says, whatever
peers do."""

_LEFT_OUT: Final = "log lines left out count=%d peers=%s cause=%r"


def configure(
    level: str = "INFO",
    file: str | None = None,
    *,
    file_bytes_max: int = FILE_BYTES_MAX,
    file_count: int = FILE_COUNT,
    limits: LogLimits | None = None,
    label: str = "",
) -> None:
    """Send all log lines of the process to ``file``, or to standard error; replaces what was configured before.

    A full file becomes ``file.1``, that one ``file.2`` and so on; ``file_count`` of them are kept in addition to
    ``file``. A label is put behind each logger's name, where several processes log to one place.

    Raises:
        ConfigError: an unknown level, or a file that cannot be written.
    """
    if level.upper() not in LEVELS:
        raise ConfigError(f"log level must be one of {', '.join(LEVELS)}, not {level!r}")
    to_stderr = logging.StreamHandler(sys.stderr)
    handler = _file_handler(file, file_bytes_max, file_count) if file else to_stderr
    limits = limits or LogLimits()
    handler.setFormatter(LineFormatter(limits.line_chars_max, label))
    handler.addFilter(RateFilter(limits.lines_per_peer_max))
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


def left_out_count() -> int:
    """How many lines were left out since the start."""
    return sum(
        rates.left_out_count
        for handler in logging.getLogger().handlers
        for rates in handler.filters
        if isinstance(rates, RateFilter)
    )


class RateFilter(logging.Filter):
    """Limits the rate of lines by cause and peer. Debug lines always pass: somebody asked for them."""

    def __init__(self, lines_per_peer_max: int = LogLimits().lines_per_peer_max) -> None:
        super().__init__()
        self.left_out_count = 0
        self._rates = LineRates(lines_per_peer_max)
        self._lock = threading.Lock()
        self._told_at = monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG or record.msg is _LEFT_OUT or record.name == METRICS:
            return True
        now = monotonic()
        cause = str(record.msg)
        with self._lock:
            is_admitted = self._rates.admit(cause, peer_of(cause, record.args), now)
            self.left_out_count += not is_admitted
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

    def __init__(self, chars_max: int = LogLimits().line_chars_max, label: str = "") -> None:
        self._chars_max = chars_max
        name = f"%(name)s[{label}]" if label else "%(name)s"
        super().__init__(f"%(asctime)s %(levelname)s {name} %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{seconds}.{int(record.msecs):03d}Z"

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Messages contain names chosen by peers, which must neither forge a log line nor control a terminal.
        text = _escaped(super().formatMessage(record))
        return text if record.name == METRICS else _cut(text, self._chars_max)

    def formatException(self, ei: logging._SysExcInfoType) -> str:
        # Indented, so that no line of an error's text can be mistaken for an event.
        text = _cut(super().formatException(ei), TRACEBACK_CHARS_MAX)
        return "\n".join("  " + _escaped(line) for line in text.split("\n"))


def _cut(text: str, chars_max: int) -> str:
    more = len(text) - chars_max
    return text if more <= 0 else f"{text[:chars_max]}... and {more} characters more"


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
