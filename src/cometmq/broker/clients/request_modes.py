"""How groups are to consume topics by the operator's will: ``config/messageRequestMode.json`` of RocketMQ 5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from cometmq.base.ports import Files
from cometmq.protocol.bodies.pop import MessageRequestModes, SetMessageRequestModeBody
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.store.meta.json_file import JsonFile, pretty

MODES_MAX: Final = 5000
"""Each is an operator's decision about a topic and a group; the file is written whole."""


class RequestModes:
    """Owned by the event loop. ``TableSaver`` writes the file."""

    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._file = JsonFile(f"{directory}/messageRequestMode.json", files)
        self.modes = MessageRequestModes()
        self.on_change: Callable[[], None] | None = None
        self._change_count = self._saved_count = 0
        self._sent: bytes | None = None

    def load(self) -> None:
        """Raises CorruptFile when neither the file nor its backup can be read."""
        loaded = self._file.load(_read)
        if loaded is not None:
            self.modes = loaded
            self._sent = None

    def get(self, topic: str, group: str) -> SetMessageRequestModeBody | None:
        return self.modes.message_request_mode_map.get(topic, {}).get(group)

    def set(self, mode: SetMessageRequestModeBody) -> None:
        """Raises Refused when there are too many."""
        table = self.modes.message_request_mode_map
        if self.get(mode.topic, mode.consumer_group) is None:
            count = sum(map(len, table.values()))
            if count >= MODES_MAX:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"the broker knows the request modes of {count} groups and topics, no more than {MODES_MAX}"
                    " are kept",
                )
        table.setdefault(mode.topic, {})[mode.consumer_group] = mode
        self._changed()

    def replace_all(self, modes: MessageRequestModes) -> None:
        """Become a copy of another broker's table. Raises Refused when there are too many."""
        count = sum(map(len, modes.message_request_mode_map.values()))
        if count > MODES_MAX:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"request modes of {count} groups and topics, no more than {MODES_MAX} are kept",
            )
        if modes != self.modes:
            self.modes = modes
            self._changed()

    def encode(self) -> bytes:
        """Everything as a slave requests it, every few seconds; put together once per change."""
        if self._sent is None:
            self._sent = self.modes.encode()
        return self._sent

    def _changed(self) -> None:
        self._change_count += 1
        self._sent = None
        if self.on_change is not None:
            self.on_change()

    def unsaved(self) -> Callable[[], None] | None:
        """A save of what there is now, for a worker thread; None when nothing changed."""
        if self._change_count == self._saved_count:
            return None
        content = msgspec.to_builtins(self.modes)
        changes = self._change_count

        def write() -> None:
            self._files.make_directory(self._directory)
            # To render takes most of the time: some 80 ms for as many as there may be.
            self._file.save(pretty(content).encode())
            self._saved_count = changes

        return write


def _read(content: dict[str, Any]) -> MessageRequestModes:
    return msgspec.convert(content, MessageRequestModes, strict=False)
