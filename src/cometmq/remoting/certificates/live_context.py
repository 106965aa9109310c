"""A TLS context that follows its files: certificates are renewed without a restart.

Servers and clients hold one ``LiveContext`` for their whole life. Each handshake asks it for the context of the moment,
which it makes again when a file has changed. Connections that are open stay as they are. Files that cannot be used, for
example a certificate whose key has not been written yet, are logged, and the old context stays.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from cometmq.base.errors import ConfigError

logger = logging.getLogger("cometmq.remoting")

_Stamp = tuple[int, int, int] | None


class LiveContext(ssl.SSLContext):
    """Event loops take it for a context; all that they call on it are the two ``wrap`` methods.

    Args:
        make: builds a context from the files. Raises ConfigError.
        paths: the files; a link is followed.
        seconds: how often they are looked at, at most.
    """

    def __new__(
        cls, make: Callable[[], ssl.SSLContext], paths: Sequence[str], seconds: float
    ) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(
        self, make: Callable[[], ssl.SSLContext], paths: Sequence[str], seconds: float
    ) -> None:
        """Raises ConfigError: the files cannot be used."""
        self._make = make
        self._paths = [path for path in paths if path]
        self._seconds = seconds
        # Before the files are read: what changes meanwhile is seen next time.
        self._seen = self._stamps()
        self._looked_at = time.monotonic()
        self._current = make()

    def refresh(self) -> None:
        """Look whether the files have changed, unless that was done lately."""
        now = time.monotonic()
        if now - self._looked_at < self._seconds:
            return
        self._looked_at = now
        stamps = self._stamps()
        if stamps == self._seen:
            return
        self._seen = stamps
        files = ",".join(self._paths)
        try:
            self._current = self._make()
        except ConfigError as error:
            logger.error("certificates not reloaded, the old ones stay reason=%s", error)
        else:
            logger.info("certificates reloaded files=%s", files)

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        self.refresh()
        return self._current.wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        self.refresh()
        return self._current.wrap_socket(*args, **options)

    def _stamps(self) -> list[_Stamp]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> _Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
