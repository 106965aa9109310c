"""Files that only their owner may read, written so that a crash leaves the old or the new one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.ports import TEMPORARY_SUFFIX
from cometmq.base.small_files import SystemSmallFiles, disk_errors

PRIVATE: Final = 0o600
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def replace_private(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Make ``data`` the whole content, durably. Raises DiskFull, OSError; then the old content is still there."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with disk_errors(str(path)):
        # One that a crash has left behind may have another mode.
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
        SystemSmallFiles().sync_directory(str(path.parent))


def check_private(path: Path) -> None:
    """Raises ConfigError if others may read or write it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & _OTHERS:
        raise ConfigError(
            f"{path} may be read by others (mode {mode:04o}): whoever has it has the secrets of all accounts; "
            f"run chmod 600 {path}, and change the secrets if somebody may have read it"
        )
