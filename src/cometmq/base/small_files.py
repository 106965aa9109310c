"""Files that are read and written as a whole, on every system: what clients need of a disk.

``base.disk`` adds what the store needs, which only Linux has.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cometmq.base.errors import DiskFull
from cometmq.base.ports import TEMPORARY_SUFFIX

_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SystemSmallFiles:
    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def replace(self, path: str, data: bytes) -> None:
        temporary = path + TEMPORARY_SUFFIX
        with disk_errors(path):
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            self.sync_directory(os.path.dirname(path))

    def make_directory(self, path: str) -> None:
        with disk_errors(path):
            os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        # Windows opens no directories; there the file system's own journal has to do.
        if hasattr(os, "O_DIRECTORY"):
            fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


@contextmanager
def disk_errors(path: str) -> Iterator[None]:
    """Makes DiskFull of the errors that mean it."""
    try:
        yield
    except OSError as error:
        refuse_if_full(error, path)
        raise


def refuse_if_full(error: OSError, path: str) -> None:
    """Raises DiskFull if that is what the error means."""
    if error.errno in _NO_SPACE:
        raise DiskFull(f"no space left to write {path}") from error
