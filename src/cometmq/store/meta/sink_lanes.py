"""What sinks have written, without reading the log: ``config/sinkLanes.json``, our own file.

The lanes are valid as of ``logOffset``; rows that were stored later are after it. While no sink writes, the file says
so (``isWriting`` false), and then there is nothing after that offset, however far the log has grown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.base.ports import Files
from cometmq.store.meta.json_file import BadContent, JsonFile


class LaneRow(NamedTuple):
    sink: str
    partition: int
    batch: int
    first_offset: int
    run: str = ""


class SinkLanesContent(msgspec.Struct, rename="camel"):
    is_writing: bool
    log_offset: int
    lanes: list[LaneRow]

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Raises RemoteProtocolError."""
        try:
            return msgspec.json.decode(body, type=cls)
        except msgspec.MsgspecError as error:
            raise RemoteProtocolError(f"expected lanes of sinks as body, found {error}") from None

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def cut(self, log_end: int) -> SinkLanesContent:
        """As it is for a log that ends there: rows behind it do not exist, and others may come in their place."""
        lanes = [lane._replace(first_offset=min(lane.first_offset, log_end)) for lane in self.lanes]
        return SinkLanesContent(self.is_writing, min(self.log_offset, log_end), lanes)


class SinkLanesFile:
    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._file = JsonFile(f"{directory}/sinkLanes.json", files)

    def load(self) -> SinkLanesContent | None:
        """The content, or None if no sink has written here yet.

        Raises:
            CorruptFile: neither the file nor its backup can be read; nothing was changed.
        """
        self._files.make_directory(self._directory)
        return self._file.load(_read)

    def saving(
        self, lanes: Iterable[LaneRow], log_offset: int, *, is_writing: bool
    ) -> Callable[[], None]:
        """Render the content and return the disk part of a save, for a worker thread. It may raise DiskFull."""
        content = SinkLanesContent(is_writing, log_offset, list(lanes)).encode()

        def write() -> None:
            self._file.save(content)

        return write


def _read(content: dict[str, Any]) -> SinkLanesContent:
    try:
        return msgspec.convert(content, SinkLanesContent)
    except msgspec.ValidationError as error:
        raise BadContent(str(error)) from None
