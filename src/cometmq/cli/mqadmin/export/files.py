"""Where exports are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from cometmq.base.errors import UsageError

FOLDER: Final = "/tmp/rocketmq/export"


def save_document(folder: str, name: str, document: Any) -> str:
    """The path of the file. Raises UsageError if it cannot be written."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    return save_text(str(Path(folder) / name), text)


def save_text(path: str, text: str) -> str:
    """The path. Raises UsageError if it cannot be written."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return path


def read_text(path: str) -> str:
    """Raises UsageError if the file cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: {error}") from None
