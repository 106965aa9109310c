"""Files with definitions of topics or groups, as RocketMQ's tool reads them: a JSON array."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

import msgspec

from cometmq.base.errors import UsageError

T = TypeVar("T")

FILE_BYTES_MAX: Final = 64 * 1024 * 1024


def read_definitions(path: str, kind: type[T], example: str) -> list[T]:
    """Raises UsageError for a file that cannot be read, or has something else in it."""
    file = Path(path)
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise UsageError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    try:
        definitions = [msgspec.convert(one, kind) for one in msgspec.json.decode(data, type=list)]
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: expected a JSON array such as {example}: {error}") from None
    if not definitions:
        raise UsageError(f"{path}: expected a JSON array such as {example}, got an empty one")
    return definitions
