"""How groups are to consume topics by the operator's will: ``config/messageRequestMode.json`` of RocketMQ 5."""

from __future__ import annotations

from typing import Any

import msgspec

from cometmq.base.ports import Files
from cometmq.protocol.bodies.pop import MessageRequestModes, SetMessageRequestModeBody
from cometmq.store.meta.json_file import JsonFile, pretty


class RequestModes:
    """Owned by the event loop."""

    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._file = JsonFile(f"{directory}/messageRequestMode.json", files)
        self.modes = MessageRequestModes()

    def load(self) -> None:
        """Raises CorruptFile when neither the file nor its backup can be read."""
        loaded = self._file.load(_read)
        if loaded is not None:
            self.modes = loaded

    def get(self, topic: str, group: str) -> SetMessageRequestModeBody | None:
        return self.modes.message_request_mode_map.get(topic, {}).get(group)

    def set(self, mode: SetMessageRequestModeBody) -> None:
        """Remember and save."""
        of_topic = self.modes.message_request_mode_map.setdefault(mode.topic, {})
        of_topic[mode.consumer_group] = mode
        self._files.make_directory(self._directory)
        self._file.save(pretty(msgspec.to_builtins(self.modes)).encode())


def _read(content: dict[str, Any]) -> MessageRequestModes:
    return msgspec.convert(content, MessageRequestModes, strict=False)
