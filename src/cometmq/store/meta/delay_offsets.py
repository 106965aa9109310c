"""How far each delay level has been delivered: ``config/delayOffset.json``.

RocketMQ's part of the content is the offset by level. Our addition is ``logOffset``: where the log ended when these
offsets were valid, so that later deliveries are found after it. A RocketMQ broker that takes over drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cometmq.base.errors import RemoteProtocolError
from cometmq.base.ports import Clock, Files
from cometmq.protocol import fastjson
from cometmq.store.meta.json_file import BadContent, JsonFile, pretty, table_in

UNKNOWN: Final = -1
"""The log offset of a table written by another broker."""
_LOG_OFFSET: Final = "logOffset"


class DelayOffsetTable:
    """The file and its last content. Thread rule: as in ``consumer_offsets``."""

    def __init__(self, directory: str, files: Files, clock: Clock) -> None:
        self._directory = directory
        self._files = files
        self._clock = clock
        self._file = JsonFile(f"{directory}/delayOffset.json", files)
        self._other_content: dict[str, Any] = {}
        self.offsets: dict[int, int] = {}
        """By level: the first message that has not been delivered yet."""
        self.log_offset = 0
        """Everything delivered beyond ``offsets`` is at or after this; ``UNKNOWN`` if it was not recorded."""

    def load(self) -> None:
        """Read the file, or its backup; without either, nothing was delivered yet, or it can be found in the log.

        Raises:
            CorruptFile: neither can be read; nothing was changed.
        """
        self._files.make_directory(self._directory)
        self._file.load(self._read)

    def saving(self, offsets: Mapping[int, int], log_offset: int) -> Callable[[], None]:
        """Render the content and return the disk part of a save, for a worker thread. It may raise DiskFull."""
        if isinstance(version := self._other_content.get("dataVersion"), dict):
            counter = int(version.get("counter", 0)) + 1
            self._other_content["dataVersion"] = {
                **version,
                "counter": counter,
                "timestamp": self._clock.wall_ms(),
            }
        kept = dict(offsets)
        content = pretty({**self._content(kept), _LOG_OFFSET: log_offset}).encode()

        def write() -> None:
            self._file.save(content)
            self.offsets = kept
            self.log_offset = log_offset

        return write

    def copying(self, data: bytes, log_offset: int) -> Callable[[], None]:
        """Become a copy of another broker's table, and return the disk part of its save; it may raise DiskFull.

        Raises:
            RemoteProtocolError: it is no such table.
        """
        content = fastjson.loads(data, limits=fastjson.BODY)
        if not isinstance(content, dict):
            raise RemoteProtocolError("expected offsets by delay level")
        try:
            self._read({**content, _LOG_OFFSET: log_offset})
        except BadContent as error:
            raise RemoteProtocolError(str(error)) from None
        self.offsets = {level: max(offset, 0) for level, offset in self.offsets.items()}
        kept = pretty({**self._content(self.offsets), _LOG_OFFSET: log_offset}).encode()
        return lambda: self._file.save(kept)

    def encode(self, offsets: Mapping[int, int]) -> bytes:
        """RocketMQ's content on one line, as a replica requests it."""
        return fastjson.dumps(self._content(offsets))

    def _content(self, offsets: Mapping[int, int]) -> dict[str, Any]:
        return dict(sorted({**self._other_content, "offsetTable": dict(offsets)}.items()))

    def _read(self, content: dict[str, Any]) -> None:
        table = table_in(content, "offsetTable")
        try:
            offsets = {int(level): int(offset) for level, offset in table.items()}
            log_offset = int(content.get(_LOG_OFFSET, UNKNOWN))
        except (TypeError, ValueError):
            raise BadContent("expected offsets by delay level") from None
        self.offsets = offsets
        self.log_offset = log_offset
        self._other_content = {
            key: value for key, value in content.items() if key not in ("offsetTable", _LOG_OFFSET)
        }
